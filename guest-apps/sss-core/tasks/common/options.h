/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The options of one task: the JSON object in argv[1], read as guest-apps/common/options.h reads
 * those of Linux applications. Each option is taken once; what is left over at the end is unknown.
 * Anything wrong is one error line in the records and ends the task with status 2: an experiment
 * must never run with other settings than were asked for.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OPTIONS_BAD = 2 /* exit status */ };

/* Also takes what the node's init adds, "step" and "seed". `app` is in all lines of the records. */
void options_open(int argc, char **argv, const char *app);

long long options_integer(const char *name, long long absent, long long least, long long most);
bool options_boolean(const char *name, bool absent);
/* `absent` NULL: the option must be given. Into `text`. */
void options_text(const char *name, const char *absent, char *text, size_t size);
/* One of `words` (ended by NULL), as its index; the first is the default. */
int options_word(const char *name, const char *const *words);
/* An array of integers, at most `size` -> how many; 0 where it is absent. */
size_t options_integers(const char *name, long long least, long long most, long long *numbers,
                        size_t size);
/* An array of words as their indices, in its order, at most `size` -> how many; 0 where it is
 * absent. */
size_t options_word_list(const char *name, const char *const *words, int *indices, size_t size);
/* An array of words as a mask of indices; `absent` where it is not given. */
unsigned options_words(const char *name, const char *const *words, unsigned absent);
/* Goes into the object `name`, until options_leave; false where it is absent. */
bool options_enter(const char *name);
void options_leave(void);
/* Refuses what has not been taken. */
void options_check_all_taken(void);

long options_step(void); /* -1: a service */
uint64_t options_seed(void);
const char *options_app(void);

/* An error line in the records; the same, and the end with status 1 or, of an option, OPTIONS_BAD.
 */
void task_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void task_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void options_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
