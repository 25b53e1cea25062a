/* SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"

const char *const function_names[] = {
    "void",      "boolean",     "int",          "long",   "string_32", "string_512", "string_1024",
    "int_array", "float_array", "string_array", "person", "distance",  NULL};

size_t function_size(enum function function)
{
    static const uint16_t sizes[FUNCTIONS + 1] = {
        [FUNCTION_BOOLEAN] = 1,
        [FUNCTION_INT] = 4,
        [FUNCTION_LONG] = 8,
        [FUNCTION_STRING_32] = 32,
        [FUNCTION_STRING_512] = 512,
        [FUNCTION_STRING_1024] = FUNCTION_TEXT_BYTES,
        [FUNCTION_INT_ARRAY] = 4 * FUNCTION_ELEMENTS,
        [FUNCTION_FLOAT_ARRAY] = 4 * FUNCTION_ELEMENTS,
        [FUNCTION_STRING_ARRAY] = FUNCTION_WORD_BYTES * FUNCTION_ELEMENTS,
        [FUNCTION_PERSON] = FUNCTION_NAME_BYTES + 4 + 4,
        [FUNCTION_DISTANCE] = 2 * 4 * FUNCTION_DIMENSIONS,
    };

    return sizes[function];
}

#define LETTERS      "abcdefghijklmnopqrstuvwxyz"
#define THREE(text)  text text text
#define THIRTEEN(at) THREE(at) THREE(at) THREE(at) THREE(at) at

const char function_text[] = THREE(THIRTEEN(LETTERS)) "abcdefghij";

#define FIVE(f, n) f(n), f((n) + 1), f((n) + 2), f((n) + 3), f((n) + 4)
#define TWENTY_FIVE(f, n)                                                                          \
    FIVE(f, n), FIVE(f, (n) + 5), FIVE(f, (n) + 10), FIVE(f, (n) + 15), FIVE(f, (n) + 20)
#define HUNDRED(f, n)                                                                              \
    TWENTY_FIVE(f, n), TWENTY_FIVE(f, (n) + 25), TWENTY_FIVE(f, (n) + 50), TWENTY_FIVE(f, (n) + 75)
#define PLACE(n) (n)
#define HALF(n)  ((float)(n) / 2)

const int32_t function_ints[] = {HUNDRED(PLACE, 0), HUNDRED(PLACE, 100)};
const float function_floats[] = {HUNDRED(HALF, 0), HUNDRED(HALF, 100)};
const char function_word[] = "abcdef";
const struct function_person function_person = {"Nine char", 30, 70.5F};
const float function_points[2][FUNCTION_DIMENSIONS] = {{0, 0.5F, 1}, {3, 2.5F, 1}};
const double function_distance_value = 3.605551275463989; /* the square root of 13 */
