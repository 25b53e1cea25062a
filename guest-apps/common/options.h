/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * The options of one application: the JSON object in argv[1]. Each option is taken once, with its
 * default and its range; what is left over at the end is unknown. Anything wrong is reported on the
 * record stream with the option's name and what is allowed, and ends the program: an experiment
 * must never run with other settings than were asked for.
 */
struct options;

struct options *options_open(int argc, char **argv);

long long options_integer(struct options *options, const char *name, long long absent,
                          long long least, long long most);

bool options_boolean(struct options *options, const char *name, bool absent);

/* `absent` NULL: the option must be given. The text lives until options_close. */
const char *options_text(struct options *options, const char *name, const char *absent);

/* One of `words` (ended by NULL), as its index; the first is the default. */
int options_word(struct options *options, const char *name, const char *const *words);

/* An array of integers; NULL and 0 where it is absent. The caller frees it. */
long long *options_integers(struct options *options, const char *name, long long least,
                            long long most, size_t *count);

/* An array of words as their indices, in its order; NULL and 0 where it is absent. The caller frees
 * it. */
int *options_word_list(struct options *options, const char *name, const char *const *words,
                       size_t *count);

/* An array of words as a mask of indices; `absent` where it is not given. */
unsigned options_words(struct options *options, const char *name, const char *const *words,
                       unsigned absent);

/*
 * Refuses what was not taken. With SUNDIAL_CHECK_OPTIONS in its environment the program ends here
 * with status 0: its options are right.
 */
void options_check_all_taken(struct options *options);

void options_close(struct options *options);
