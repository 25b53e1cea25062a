/* SPDX-License-Identifier: Apache-2.0 */
#include "function_values.h"

#include <string.h>

_Static_assert((int)CALLS_DISTANCE == (int)FUNCTION_DISTANCE &&
                   (int)CALLS_ELEMENTS == (int)FUNCTION_ELEMENTS &&
                   (int)CALLS_TEXT == (int)FUNCTION_TEXT_BYTES &&
                   (int)CALLS_WORD == (int)FUNCTION_WORD_BYTES &&
                   (int)CALLS_NAME == (int)FUNCTION_NAME_BYTES &&
                   (int)CALLS_DIMENSIONS == (int)FUNCTION_DIMENSIONS,
               "the interface has room for the values");

xdrproc_t function_argument_filter(enum function function)
{
    static const xdrproc_t filters[FUNCTIONS + 1] = {
        [FUNCTION_VOID] = (xdrproc_t)xdr_void,
        [FUNCTION_BOOLEAN] = (xdrproc_t)xdr_bool,
        [FUNCTION_INT] = (xdrproc_t)xdr_int,
        [FUNCTION_LONG] = (xdrproc_t)xdr_quad_t,
        [FUNCTION_STRING_32] = (xdrproc_t)xdr_calls_text,
        [FUNCTION_STRING_512] = (xdrproc_t)xdr_calls_text,
        [FUNCTION_STRING_1024] = (xdrproc_t)xdr_calls_text,
        [FUNCTION_INT_ARRAY] = (xdrproc_t)xdr_calls_ints,
        [FUNCTION_FLOAT_ARRAY] = (xdrproc_t)xdr_calls_floats,
        [FUNCTION_STRING_ARRAY] = (xdrproc_t)xdr_calls_words,
        [FUNCTION_PERSON] = (xdrproc_t)xdr_calls_person,
        [FUNCTION_DISTANCE] = (xdrproc_t)xdr_calls_points,
    };

    return filters[function];
}

xdrproc_t function_result_filter(enum function function)
{
    return function == FUNCTION_DISTANCE ? (xdrproc_t)xdr_double
                                         : function_argument_filter(function);
}

static void empty_words(struct function_values *values)
{
    for (size_t i = 0; i < CALLS_ELEMENTS; i++)
        values->memory.words.places[i] = values->memory.words.bytes[i];
    values->value.words = (calls_words){.calls_words_val = values->memory.words.places};
}

static void empty_points(struct function_values *values)
{
    values->value.points = (calls_points){0};
    values->value.points.first.first_val = values->memory.points[0];
    values->value.points.second.second_val = values->memory.points[1];
}

void function_values_empty(struct function_values *values, enum function function)
{
    switch (function) {
    case FUNCTION_STRING_32:
    case FUNCTION_STRING_512:
    case FUNCTION_STRING_1024:
        values->value.text = values->memory.text;
        break;
    case FUNCTION_INT_ARRAY:
        values->value.ints = (calls_ints){.calls_ints_val = values->memory.ints};
        break;
    case FUNCTION_FLOAT_ARRAY:
        values->value.floats = (calls_floats){.calls_floats_val = values->memory.floats};
        break;
    case FUNCTION_STRING_ARRAY:
        empty_words(values);
        break;
    case FUNCTION_PERSON:
        memset(&values->value.person, 0, sizeof(values->value.person));
        values->value.person.name = values->memory.name;
        break;
    case FUNCTION_DISTANCE:
        empty_points(values);
        break;
    default:
        values->value.wide = 0;
        break;
    }
}

static void fill_words(struct function_values *values)
{
    for (size_t i = 0; i < CALLS_ELEMENTS; i++)
        memcpy(values->memory.words.bytes[i], function_word, sizeof(function_word));
    values->value.words.calls_words_len = CALLS_ELEMENTS;
}

static void fill_points(struct function_values *values)
{
    memcpy(values->memory.points, function_points, sizeof(function_points));
    values->value.points.first.first_len = CALLS_DIMENSIONS;
    values->value.points.second.second_len = CALLS_DIMENSIONS;
}

static void fill_person(struct function_values *values)
{
    memcpy(values->memory.name, function_person.name, sizeof(function_person.name));
    values->value.person.age = function_person.age;
    memcpy(&values->value.person.weight, &function_person.weight, sizeof(function_person.weight));
}

void function_values_fill(struct function_values *values, enum function function)
{
    size_t size = function_size(function);

    function_values_empty(values, function);
    switch (function) {
    case FUNCTION_VOID:
        break;
    case FUNCTION_BOOLEAN:
        values->value.truth = FUNCTION_BOOLEAN_VALUE;
        break;
    case FUNCTION_INT:
        values->value.number = FUNCTION_INT_VALUE;
        break;
    case FUNCTION_LONG:
        values->value.wide = FUNCTION_LONG_VALUE;
        break;
    case FUNCTION_STRING_32:
    case FUNCTION_STRING_512:
    case FUNCTION_STRING_1024:
        memcpy(values->memory.text, function_text, size);
        values->memory.text[size] = '\0';
        break;
    case FUNCTION_INT_ARRAY:
        memcpy(values->memory.ints, function_ints, size);
        values->value.ints.calls_ints_len = CALLS_ELEMENTS;
        break;
    case FUNCTION_FLOAT_ARRAY:
        memcpy(values->memory.floats, function_floats, size);
        values->value.floats.calls_floats_len = CALLS_ELEMENTS;
        break;
    case FUNCTION_STRING_ARRAY:
        fill_words(values);
        break;
    case FUNCTION_PERSON:
        fill_person(values);
        break;
    case FUNCTION_DISTANCE:
        fill_points(values);
        break;
    }
}

void *function_argument(struct function_values *values)
{
    return &values->value;
}

void *function_result(struct function_values *values, enum function function)
{
    return function == FUNCTION_DISTANCE ? (void *)&values->distance : &values->value;
}

static bool is_text(const char *text, size_t size)
{
    return strlen(text) == size && memcmp(text, function_text, size) == 0;
}

static bool are_words(const calls_words *words)
{
    bool right = words->calls_words_len == CALLS_ELEMENTS;

    for (size_t i = 0; right && i < CALLS_ELEMENTS; i++)
        right = strcmp(words->calls_words_val[i], function_word) == 0;
    return right;
}

static bool is_person(const calls_person *person)
{
    return strcmp(person->name, function_person.name) == 0 && person->age == function_person.age &&
           memcmp(&person->weight, &function_person.weight, sizeof(person->weight)) == 0;
}

static bool are_points(const calls_points *points)
{
    return points->first.first_len == CALLS_DIMENSIONS &&
           points->second.second_len == CALLS_DIMENSIONS &&
           memcmp(points->first.first_val, function_points[0], sizeof(function_points[0])) == 0 &&
           memcmp(points->second.second_val, function_points[1], sizeof(function_points[1])) == 0;
}

bool function_is_argument(const struct function_values *values, enum function function)
{
    size_t size = function_size(function);

    switch (function) {
    case FUNCTION_VOID:
        return true;
    case FUNCTION_BOOLEAN:
        return values->value.truth == FUNCTION_BOOLEAN_VALUE;
    case FUNCTION_INT:
        return values->value.number == FUNCTION_INT_VALUE;
    case FUNCTION_LONG:
        return values->value.wide == FUNCTION_LONG_VALUE;
    case FUNCTION_STRING_32:
    case FUNCTION_STRING_512:
    case FUNCTION_STRING_1024:
        return is_text(values->value.text, size);
    case FUNCTION_INT_ARRAY:
        return values->value.ints.calls_ints_len == CALLS_ELEMENTS &&
               memcmp(values->value.ints.calls_ints_val, function_ints, size) == 0;
    case FUNCTION_FLOAT_ARRAY:
        return values->value.floats.calls_floats_len == CALLS_ELEMENTS &&
               memcmp(values->value.floats.calls_floats_val, function_floats, size) == 0;
    case FUNCTION_STRING_ARRAY:
        return are_words(&values->value.words);
    case FUNCTION_PERSON:
        return is_person(&values->value.person);
    case FUNCTION_DISTANCE:
        return are_points(&values->value.points);
    }
    return false;
}

bool function_is_result(const struct function_values *values, enum function function)
{
    if (function != FUNCTION_DISTANCE)
        return function_is_argument(values, function);
    return memcmp(&values->distance, &function_distance_value, sizeof(values->distance)) == 0;
}

size_t function_execute(struct function_values *values, enum function function)
{
    const calls_points *points = &values->value.points;

    if (function != FUNCTION_DISTANCE)
        return function_size(function);
    function_distance(points->first.first_val, points->second.second_val, &values->distance);
    return sizeof(values->distance);
}
