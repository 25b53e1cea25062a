/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * guest-apps/common/options.h for tasks, over tasks/common/options.h, whose functions have the same
 * names: a task has one set of options, and texts and arrays are the caller's.
 */
#include <stdlib.h>

#include "tasks/common/options.h"

struct options;

static inline struct options *task_options_open(int argc, char **argv)
{
    options_open(argc, argv, argv[0]);
    return NULL;
}
#define options_open task_options_open

static inline long long task_options_integer(struct options *options, const char *name,
                                             long long absent, long long least, long long most)
{
    (void)options;
    return options_integer(name, absent, least, most);
}
#define options_integer task_options_integer

static inline int task_options_word(struct options *options, const char *name,
                                    const char *const *words)
{
    (void)options;
    return options_word(name, words);
}
#define options_word task_options_word

/* Until the next one. */
static inline const char *task_options_text(struct options *options, const char *name,
                                            const char *absent)
{
    static char text[64];

    (void)options;
    options_text(name, absent, text, sizeof(text));
    return text;
}
#define options_text task_options_text

static inline long long *task_options_integers(struct options *options, const char *name,
                                               long long least, long long most, size_t *count)
{
    enum { MOST = 1000 };
    long long *numbers = calloc(MOST, sizeof(*numbers));

    (void)options;
    if (numbers == NULL)
        task_fail("out of memory");
    *count = options_integers(name, least, most, numbers, MOST);
    return numbers;
}
#define options_integers task_options_integers

static inline int *task_options_word_list(struct options *options, const char *name,
                                          const char *const *words, size_t *count)
{
    enum { MOST = 64 };
    int *indices = calloc(MOST, sizeof(*indices));

    (void)options;
    if (indices == NULL)
        task_fail("out of memory");
    *count = options_word_list(name, words, indices, MOST);
    return indices;
}
#define options_word_list task_options_word_list

static inline void task_options_check_all_taken(struct options *options)
{
    (void)options;
    options_check_all_taken();
}
#define options_check_all_taken task_options_check_all_taken

static inline void options_close(struct options *options)
{
    (void)options;
}
