/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The golden jobs (harness/tests/seams/golden/jobs): what the harness writes, and edits of it that
 * a guest must refuse. GOLDEN is their folder; `guest` is the folder of one guest in it.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/job.h"

enum { GOLDEN_WORD = 512 };

/* A whole file with a NUL behind it; the caller frees it. */
static inline char *golden_read(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 2 * JOB_BYTES);

    if (file == NULL || fread(text, 1, 2 * JOB_BYTES - 1, file) == 0) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return text;
}

/* The golden job `name`, as "linux/host". */
static inline char *golden_job(const char *name)
{
    char path[1024];

    snprintf(path, sizeof(path), GOLDEN "/%s.json", name);
    return golden_read(path);
}

/* Each golden job of a guest -> how many. */
static inline unsigned golden_each(const char *guest,
                                   void (*see)(const char *name, const char *text))
{
    char path[1024], name[512];
    struct dirent *entry;
    unsigned count = 0;
    DIR *folder;

    snprintf(path, sizeof(path), GOLDEN "/%s", guest);
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char *text;

        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%.*s", guest, (int)strcspn(entry->d_name, "."),
                 entry->d_name);
        text = golden_job(name);
        see(name, text);
        free(text);
        count++;
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

/* `text` with its first `from` replaced by `to`; the caller frees it. */
static inline char *golden_edited(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    size_t size = strlen(text) + strlen(to) + 1;
    char *edited = malloc(size);

    if (at == NULL) {
        printf("no golden job has %s\n", from);
        exit(1);
    }
    snprintf(edited, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return edited;
}

static inline void golden_field(const struct json_value *line, const char *name,
                                char text[GOLDEN_WORD])
{
    struct json_value value;

    if (!json_field(line, name, &value) || !json_text(&value, text, GOLDEN_WORD)) {
        printf("malformed.jsonl: no %s in %.*s\n", name, (int)line->length, line->text);
        exit(1);
    }
}

/* Each job that a guest must refuse, with a word that its error must hold -> how many. */
static inline unsigned golden_each_malformed(const char *guest,
                                             void (*see)(const char *edit, const char *text,
                                                         const char *word))
{
    char *lines = golden_read(GOLDEN "/malformed.jsonl");
    unsigned count = 0;

    for (char *line = strtok(lines, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char name[GOLDEN_WORD], from[GOLDEN_WORD], to[GOLDEN_WORD], word[GOLDEN_WORD];
        struct json_value value;
        char *base, *text;

        if (json_check(line, strlen(line), &value) != NULL) {
            printf("malformed.jsonl: %s\n", line);
            exit(1);
        }
        golden_field(&value, "job", name);
        if (strncmp(name, guest, strlen(guest)) != 0)
            continue;
        golden_field(&value, "from", from);
        golden_field(&value, "to", to);
        golden_field(&value, "error", word);
        base = golden_job(name);
        text = golden_edited(base, from, to);
        see(line, text, word);
        free(text);
        free(base);
        count++;
    }
    free(lines);
    return count;
}
