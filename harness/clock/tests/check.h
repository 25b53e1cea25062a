// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
#pragma once

#include <stdio.h>
#include <stdlib.h>

// Ends the test with the place and the condition that does not hold.
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static unsigned tests_passed;

// Runs a test; one that fails ends the program.
#define RUN(test)                                                                                  \
    do {                                                                                           \
        test();                                                                                    \
        tests_passed++;                                                                            \
    } while (0)

// A small generator (xorshift64*), so that a failure can be repeated.
static inline unsigned long long next_random(unsigned long long *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dULL;
}
