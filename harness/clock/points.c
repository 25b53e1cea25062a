// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include "points.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool hexadecimal(const char *word, uint64_t *value)
{
    if (!*word || word[strspn(word, "0123456789abcdef")])
        return false;
    errno = 0;
    *value = strtoull(word, NULL, 16);
    return !errno;
}

static bool read_line(struct point *point, char *line)
{
    char *words[3];
    unsigned count = 0;
    for (char *rest, *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (count == 3)
            return false;
        words[count++] = word;
    }
    uint64_t bytes;
    if (count != 3 || !hexadecimal(words[0], &point->address) || !hexadecimal(words[1], &bytes) ||
        !bytes || bytes > UINT64_MAX - point->address)
        return false;
    point->end = point->address + bytes;
    bool both = strcmp(words[2], "both") == 0;
    point->entry = both || strcmp(words[2], "entry") == 0;
    point->exits = both || strcmp(words[2], "exit") == 0;
    return point->entry || point->exits;
}

static int by_address(const void *a, const void *b)
{
    uint64_t left = ((const struct point *)a)->address, right = ((const struct point *)b)->address;
    return (left > right) - (left < right);
}

unsigned points_parse(struct points *points, char *text)
{
    *points = (struct points){.all = calloc(POINTS_MOST, sizeof *points->all)};
    unsigned number = 0;
    for (char *line = text, *next; *line; line = next) {
        number++;
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = '\0';
        if (!points->all || points->count == POINTS_MOST)
            return number;
        struct point *point = &points->all[points->count++];
        if (!read_line(point, line))
            return number;
        point->number = number - 1;
    }
    if (points->count)
        qsort(points->all, points->count, sizeof *points->all, by_address);
    for (size_t i = 1; i < points->count; i++)
        if (points->all[i].address < points->all[i - 1].end)
            return points->all[i].number + 1;
    return 0;
}

const struct point *points_from(const struct points *points, uint64_t address)
{
    size_t low = 0, high = points->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (points->all[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low < points->count ? &points->all[low] : NULL;
}
