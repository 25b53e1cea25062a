/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * The twelve remote functions: what is passed, and what must come back. The harness and
 * python/sundial_guest write the same down by themselves. Functions 2 to 11 return their argument,
 * the last one the distance of two points.
 *
 * Nothing here passes floating-point numbers by value: tasks of SSS-CORE are compiled without the
 * registers for them.
 */
enum function {
    FUNCTION_VOID = 1,
    FUNCTION_BOOLEAN,
    FUNCTION_INT,
    FUNCTION_LONG,
    FUNCTION_STRING_32,
    FUNCTION_STRING_512,
    FUNCTION_STRING_1024,
    FUNCTION_INT_ARRAY,
    FUNCTION_FLOAT_ARRAY,
    FUNCTION_STRING_ARRAY,
    FUNCTION_PERSON,
    FUNCTION_DISTANCE,
    FUNCTIONS = FUNCTION_DISTANCE,
};

enum {
    FUNCTION_TEXT_BYTES = 1024,
    FUNCTION_ELEMENTS = 200, /* of an array */
    FUNCTION_WORD_BYTES = 6,
    FUNCTION_NAME_BYTES = 9,  /* of the person */
    FUNCTION_DIMENSIONS = 3,  /* of a point */
    FUNCTION_SIZE_MOST = 1200 /* of function_size */
};

/* Of function 1 first; ended by NULL. */
extern const char *const function_names[];

/* Bytes of the argument's values as C has them: the column `size` of samples. */
size_t function_size(enum function function);

/* ---- the arguments ---- */

enum { FUNCTION_BOOLEAN_VALUE = 1, FUNCTION_INT_VALUE = 123456789 };
#define FUNCTION_LONG_VALUE INT64_C(1234567890123456789)

/* The strings of functions 5 to 7 are its beginnings, of as many bytes as their sizes say. */
extern const char function_text[FUNCTION_TEXT_BYTES + 1];
extern const int32_t function_ints[FUNCTION_ELEMENTS];
extern const float function_floats[FUNCTION_ELEMENTS];
/* Each element of the array of strings. */
extern const char function_word[FUNCTION_WORD_BYTES + 1];

struct function_person {
    char name[FUNCTION_NAME_BYTES + 1];
    int32_t age;
    float weight;
};
extern const struct function_person function_person;

extern const float function_points[2][FUNCTION_DIMENSIONS];

/* ---- function 12 ---- */

extern const double function_distance_value;

/* Computes it: what its server does. */
void function_distance(const float first[FUNCTION_DIMENSIONS],
                       const float second[FUNCTION_DIMENSIONS], double *distance);
