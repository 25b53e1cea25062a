/* SPDX-License-Identifier: Apache-2.0 */
#include "fields.h"

#include <stdarg.h>
#include <stdio.h>

enum { SHOWN = 64 /* characters of an unknown name */ };

void decoder_fail(struct decoder *decoder, const char *format, ...)
{
    va_list arguments;

    if (decoder->failed)
        return;
    decoder->failed = true;
    va_start(arguments, format);
    vsnprintf(decoder->error, JOB_ERROR, format, arguments);
    va_end(arguments);
}

void fields_take(struct decoder *decoder, const char *where, const struct json_value *object,
                 const struct field *fields, size_t count)
{
    struct json_walk walk;
    struct json_value name, value;

    if (json_kind(object) != JSON_IS_OBJECT) {
        decoder_fail(decoder, "%s: must be an object", where);
        return;
    }
    json_walk_start(&walk, object);
    while (json_walk_next(&walk, &name, &value)) {
        size_t i = 0;

        while (i < count && !json_is(&name, fields[i].name))
            i++;
        if (i == count)
            decoder_fail(decoder, "%s: unknown field %.*s", where,
                         name.length < SHOWN ? (int)name.length : SHOWN, name.text);
        else if (json_kind(&value) != JSON_IS_NULL)
            *fields[i].value = value;
    }
}

bool field_find(const struct json_value *object, const char *name, struct json_value *value)
{
    return json_field(object, name, value) && json_kind(value) != JSON_IS_NULL;
}

uint64_t field_number(struct decoder *decoder, const char *name, const struct json_value *value,
                      uint64_t most, uint64_t absent)
{
    uint64_t number = absent;

    if (json_kind(value) != JSON_IS_NOTHING && (!json_uint(value, &number) || number > most))
        decoder_fail(decoder, "%s: must be an integer from 0 to %lu", name, (unsigned long)most);
    return number;
}

bool field_flag(struct decoder *decoder, const char *name, const struct json_value *value)
{
    bool flag = false;

    if (json_kind(value) != JSON_IS_NOTHING && !json_bool(value, &flag))
        decoder_fail(decoder, "%s: must be true or false", name);
    return flag;
}

bool field_text(struct decoder *decoder, const char *name, const struct json_value *value,
                char *text, size_t size)
{
    text[0] = '\0';
    if (json_kind(value) == JSON_IS_NOTHING)
        return false;
    if (!json_text(value, text, size)) {
        text[0] = '\0'; /* it holds what fitted */
        decoder_fail(decoder, "%s: must be a string of less than %zu characters", name, size);
    }
    return true;
}

bool field_list(struct decoder *decoder, const char *name, const struct json_value *value,
                struct json_walk *walk)
{
    if (json_kind(value) == JSON_IS_NOTHING)
        return false;
    if (json_kind(value) != JSON_IS_ARRAY)
        decoder_fail(decoder, "%s: must be an array", name);
    json_walk_start(walk, value);
    return json_kind(value) == JSON_IS_ARRAY;
}
