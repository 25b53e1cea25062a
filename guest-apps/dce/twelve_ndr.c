/* SPDX-License-Identifier: Apache-2.0 */
#include "twelve_ndr.h"

/* One description of each representation serves both: what writes reads the value, and the other
 * way round. */
struct pass {
    struct dce_ndr ndr;
    bool writes;
};

/* ---- types ---- */

static void pass_boolean(struct pass *pass, uint8_t *value)
{
    if (pass->writes)
        dce_ndr_put8(&pass->ndr, *value);
    else
        *value = dce_ndr_get8(&pass->ndr) != 0; /* any number but 0 is true */
}

/* Of four bytes, with or without a point. */
static void pass32(struct pass *pass, void *value)
{
    uint32_t bits;

    if (pass->writes) {
        memcpy(&bits, value, sizeof(bits));
        dce_ndr_put32(&pass->ndr, bits);
    } else {
        bits = dce_ndr_get32(&pass->ndr);
        memcpy(value, &bits, sizeof(bits));
    }
}

static void pass64(struct pass *pass, void *value)
{
    uint64_t bits;

    if (pass->writes) {
        memcpy(&bits, value, sizeof(bits));
        dce_ndr_put64(&pass->ndr, bits);
    } else {
        bits = dce_ndr_get64(&pass->ndr);
        memcpy(value, &bits, sizeof(bits));
    }
}

static void pass_string(struct pass *pass, char *text, size_t most)
{
    const char *read;

    if (pass->writes) {
        dce_ndr_put_string(&pass->ndr, text);
        return;
    }
    read = dce_ndr_get_string(&pass->ndr, most);
    if (read != NULL)
        memcpy(text, read, strlen(read) + 1);
}

/* A string behind it follows later: no function here has a string that is not there. */
static void pass_unique(struct pass *pass)
{
    if (pass->writes)
        dce_ndr_put_unique(&pass->ndr, false);
    else if (!dce_ndr_get_unique(&pass->ndr))
        pass->ndr.failed = true;
}

/* The parameter with the number of elements, which goes one way alone: a client knows it. */
static void pass_count(struct pass *pass, enum dce_way way, uint32_t *count)
{
    if (way == DCE_ARGUMENTS)
        pass32(pass, count);
    if (*count > FUNCTION_ELEMENTS)
        pass->ndr.failed = true;
    if (pass->ndr.failed)
        *count = 0;
}

/* The number of elements in front of a conformant array: that of the parameter. */
static void pass_conformance(struct pass *pass, uint32_t count)
{
    uint32_t room = count;

    pass32(pass, &room);
    if (room != count)
        pass->ndr.failed = true;
}

static void pass_array32(struct pass *pass, void *elements, uint32_t count)
{
    uint8_t *at = elements;

    pass_conformance(pass, count);
    for (uint32_t i = 0; i < count; i++)
        pass32(pass, at + 4 * (size_t)i);
}

/* ---- functions ---- */

static void pass_texts(struct pass *pass, struct dce_value *value)
{
    pass_conformance(pass, value->count);
    for (uint32_t i = 0; i < value->count; i++)
        pass_unique(pass);
    for (uint32_t i = 0; i < value->count; i++)
        pass_string(pass, value->of.texts[i], FUNCTION_WORD_BYTES);
}

static void pass_person(struct pass *pass, struct function_person *person)
{
    pass_unique(pass);
    pass32(pass, &person->age);
    pass32(pass, &person->weight);
    pass_string(pass, person->name, FUNCTION_NAME_BYTES);
}

/* Points are fixed arrays: their elements and nothing else. */
static void pass_distance(struct pass *pass, enum dce_way way, struct dce_value *value)
{
    if (way == DCE_RESULTS)
        pass64(pass, &value->of.distance);
    else
        for (unsigned i = 0; i < 2 * FUNCTION_DIMENSIONS; i++)
            pass32(pass, &value->of.points[i / FUNCTION_DIMENSIONS][i % FUNCTION_DIMENSIONS]);
}

static void pass_value(struct pass *pass, enum function function, enum dce_way way,
                       struct dce_value *value)
{
    switch (function) {
    case FUNCTION_VOID:
        break;
    case FUNCTION_BOOLEAN:
        pass_boolean(pass, &value->of.boolean);
        break;
    case FUNCTION_INT:
        pass32(pass, &value->of.integer);
        break;
    case FUNCTION_LONG:
        pass64(pass, &value->of.hyper);
        break;
    case FUNCTION_STRING_32:
    case FUNCTION_STRING_512:
    case FUNCTION_STRING_1024:
        pass_string(pass, value->of.text, FUNCTION_TEXT_BYTES);
        break;
    case FUNCTION_INT_ARRAY:
    case FUNCTION_FLOAT_ARRAY:
        pass_count(pass, way, &value->count);
        pass_array32(pass, &value->of, value->count);
        break;
    case FUNCTION_STRING_ARRAY:
        pass_count(pass, way, &value->count);
        pass_texts(pass, value);
        break;
    case FUNCTION_PERSON:
        pass_person(pass, &value->of.person);
        break;
    case FUNCTION_DISTANCE:
        pass_distance(pass, way, value);
        break;
    }
}

size_t dce_twelve_put(enum function function, enum dce_way way, const struct dce_value *value,
                      uint8_t *bytes, bool big_endian)
{
    struct pass pass = {dce_ndr_writer(bytes, DCE_TWELVE_MOST, big_endian), true};

    pass_value(&pass, function, way, (struct dce_value *)(uintptr_t)value);
    return pass.ndr.at;
}

bool dce_twelve_get(enum function function, enum dce_way way, struct dce_value *value,
                    const uint8_t *bytes, size_t length, bool big_endian)
{
    struct pass pass = {dce_ndr_reader(bytes, length, big_endian), false};

    pass_value(&pass, function, way, value);
    return !pass.ndr.failed && pass.ndr.at == length;
}

/* ---- values ---- */

void dce_twelve_value(enum function function, enum dce_way way, struct dce_value *value)
{
    value->count = FUNCTION_ELEMENTS;
    switch (function) {
    case FUNCTION_VOID:
        break;
    case FUNCTION_BOOLEAN:
        value->of.boolean = FUNCTION_BOOLEAN_VALUE;
        break;
    case FUNCTION_INT:
        value->of.integer = FUNCTION_INT_VALUE;
        break;
    case FUNCTION_LONG:
        value->of.hyper = FUNCTION_LONG_VALUE;
        break;
    case FUNCTION_STRING_32:
    case FUNCTION_STRING_512:
    case FUNCTION_STRING_1024:
        memcpy(value->of.text, function_text, function_size(function));
        value->of.text[function_size(function)] = '\0';
        break;
    case FUNCTION_INT_ARRAY:
        memcpy(value->of.ints, function_ints, sizeof(function_ints));
        break;
    case FUNCTION_FLOAT_ARRAY:
        memcpy(value->of.floats, function_floats, sizeof(function_floats));
        break;
    case FUNCTION_STRING_ARRAY:
        for (unsigned i = 0; i < FUNCTION_ELEMENTS; i++)
            memcpy(value->of.texts[i], function_word, sizeof(function_word));
        break;
    case FUNCTION_PERSON:
        memcpy(&value->of.person, &function_person, sizeof(function_person));
        break;
    case FUNCTION_DISTANCE:
        if (way == DCE_RESULTS)
            memcpy(&value->of.distance, &function_distance_value, sizeof(value->of.distance));
        else
            memcpy(value->of.points, function_points, sizeof(function_points));
    }
}

static bool is_array(const struct dce_value *value, const void *elements)
{
    return value->count == FUNCTION_ELEMENTS &&
           memcmp(&value->of, elements, 4 * FUNCTION_ELEMENTS) == 0;
}

static bool are_words(const struct dce_value *value)
{
    for (unsigned i = 0; i < value->count; i++)
        if (strcmp(value->of.texts[i], function_word) != 0)
            return false;
    return value->count == FUNCTION_ELEMENTS;
}

static bool is_person(const struct function_person *person)
{
    return strcmp(person->name, function_person.name) == 0 && person->age == function_person.age &&
           memcmp(&person->weight, &function_person.weight, sizeof(person->weight)) == 0;
}

/* Numbers with a point by their bytes, since none is calculated with here. */
bool dce_twelve_is_value(enum function function, enum dce_way way, const struct dce_value *value)
{
    size_t length = function_size(function);

    switch (function) {
    case FUNCTION_VOID:
        return true;
    case FUNCTION_BOOLEAN:
        return value->of.boolean == FUNCTION_BOOLEAN_VALUE;
    case FUNCTION_INT:
        return value->of.integer == FUNCTION_INT_VALUE;
    case FUNCTION_LONG:
        return value->of.hyper == FUNCTION_LONG_VALUE;
    case FUNCTION_STRING_32:
    case FUNCTION_STRING_512:
    case FUNCTION_STRING_1024:
        return strlen(value->of.text) == length &&
               memcmp(value->of.text, function_text, length) == 0;
    case FUNCTION_INT_ARRAY:
        return is_array(value, function_ints);
    case FUNCTION_FLOAT_ARRAY:
        return is_array(value, function_floats);
    case FUNCTION_STRING_ARRAY:
        return are_words(value);
    case FUNCTION_PERSON:
        return is_person(&value->of.person);
    case FUNCTION_DISTANCE:
        return way == DCE_RESULTS
                   ? memcmp(&value->of.distance, &function_distance_value, sizeof(double)) == 0
                   : memcmp(value->of.points, function_points, sizeof(function_points)) == 0;
    }
    return false;
}
