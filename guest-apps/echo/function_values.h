/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Values of function_calls.x, and memory into which they are decoded: no call pays for memory. */
#include <rpc/rpc.h>
#include <stdbool.h>

#include "function_calls.h"
#include "functions.h"

/* Of one call. What its pointers point to is in it. */
struct function_values {
    union {
        bool_t truth;
        int number;
        quad_t wide;
        calls_text text;
        calls_ints ints;
        calls_floats floats;
        calls_words words;
        calls_person person;
        calls_points points;
    } value;
    double distance;
    union {
        char text[CALLS_TEXT + 1];
        int ints[CALLS_ELEMENTS];
        float floats[CALLS_ELEMENTS];
        struct {
            calls_word places[CALLS_ELEMENTS];
            char bytes[CALLS_ELEMENTS][CALLS_WORD + 1];
        } words;
        char name[CALLS_NAME + 1];
        float points[2][CALLS_DIMENSIONS];
    } memory;
};

/* The filters of a function's argument and result. */
xdrproc_t function_argument_filter(enum function function);
xdrproc_t function_result_filter(enum function function);

/* Makes it ready to decode an argument, or a result. */
void function_values_empty(struct function_values *values, enum function function);
/* Puts the argument into it. */
void function_values_fill(struct function_values *values, enum function function);

/* What the filters encode and decode. */
void *function_argument(struct function_values *values);
void *function_result(struct function_values *values, enum function function);

/* Whether it holds the argument that is passed, or the result that must come back. */
bool function_is_argument(const struct function_values *values, enum function function);
bool function_is_result(const struct function_values *values, enum function function);

/* Executes a function on its argument: bytes of the result's values as C has them. */
size_t function_execute(struct function_values *values, enum function function);
