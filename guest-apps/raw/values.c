/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they are");

static void put_person(uint8_t *at)
{
    memcpy(at, function_person.name, FUNCTION_NAME_BYTES);
    memcpy(at + FUNCTION_NAME_BYTES, &function_person.age, sizeof(function_person.age));
    memcpy(at + FUNCTION_NAME_BYTES + sizeof(function_person.age), &function_person.weight,
           sizeof(function_person.weight));
}

void values_put_argument(uint8_t *at, enum function function)
{
    static const int32_t number = FUNCTION_INT_VALUE;
    static const int64_t wide = FUNCTION_LONG_VALUE;
    size_t size = function_size(function);

    switch (function) {
    case FUNCTION_VOID:
        break;
    case FUNCTION_BOOLEAN:
        *at = FUNCTION_BOOLEAN_VALUE;
        break;
    case FUNCTION_INT:
        memcpy(at, &number, size);
        break;
    case FUNCTION_LONG:
        memcpy(at, &wide, size);
        break;
    case FUNCTION_STRING_32:
    case FUNCTION_STRING_512:
    case FUNCTION_STRING_1024:
        memcpy(at, function_text, size);
        break;
    case FUNCTION_INT_ARRAY:
        memcpy(at, function_ints, size);
        break;
    case FUNCTION_FLOAT_ARRAY:
        memcpy(at, function_floats, size);
        break;
    case FUNCTION_STRING_ARRAY:
        for (size_t done = 0; done < size; done += FUNCTION_WORD_BYTES)
            memcpy(at + done, function_word, FUNCTION_WORD_BYTES);
        break;
    case FUNCTION_PERSON:
        put_person(at);
        break;
    case FUNCTION_DISTANCE:
        memcpy(at, function_points, size);
        break;
    }
}

bool values_are_argument(const uint8_t *at, enum function function)
{
    uint8_t expected[FUNCTION_SIZE_MOST];

    values_put_argument(expected, function);
    return memcmp(at, expected, function_size(function)) == 0;
}

size_t values_result_size(enum function function)
{
    return function == FUNCTION_DISTANCE ? sizeof(function_distance_value)
                                         : function_size(function);
}

void values_execute_distance(const uint8_t *argument, uint8_t *result)
{
    float points[2][FUNCTION_DIMENSIONS];
    double distance;

    memcpy(points, argument, sizeof(points));
    function_distance(points[0], points[1], &distance);
    memcpy(result, &distance, sizeof(distance));
}

bool values_are_result(const uint8_t *at, enum function function)
{
    if (function != FUNCTION_DISTANCE)
        return values_are_argument(at, function);
    return memcmp(at, &function_distance_value, sizeof(function_distance_value)) == 0;
}
