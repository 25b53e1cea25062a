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
    char *words[4];
    unsigned count = 0;
    for (char *rest, *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (count == 4)
            return false;
        words[count++] = word;
    }
    uint64_t bytes, crc = 0;
    point->has_crc = count == 4;
    if (count < 3 || (point->has_crc && (!hexadecimal(words[3], &crc) || crc > UINT32_MAX)) ||
        !hexadecimal(words[0], &point->address) || !hexadecimal(words[1], &bytes) || !bytes ||
        bytes > UINT64_MAX - point->address)
        return false;
    point->end = point->address + bytes;
    point->crc = (uint32_t)crc;
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
    uint64_t reach = 0, without_crc = 0; // how far those before reach, and those without a CRC
    for (struct point *point = points->all; point < points->all + points->count; point++) {
        if (point->address < (point->has_crc ? without_crc : reach))
            return point->number + 1;
        if (point->end > reach)
            reach = point->end;
        if (!point->has_crc)
            without_crc = point->end;
        point->reach = reach;
    }
    return 0;
}

const struct point *points_from(const struct points *points, uint64_t address)
{
    size_t low = 0, high = points->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (points->all[middle].reach > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low < points->count ? &points->all[low] : NULL;
}

uint32_t points_crc(const uint8_t *bytes, size_t length)
{
    uint32_t crc = UINT32_MAX;
    while (length--) {
        crc ^= *bytes++;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}
