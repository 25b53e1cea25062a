/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Typed fields of checked JSON. The first failure is kept, since later ones are its consequences;
 * after one, every function returns a harmless value. Absent and null are the same.
 */
#include "lib/json.h"

enum { JOB_ERROR = 256 /* bytes of an error: one line with its NUL */ };

struct decoder {
    char *error;
    bool failed;
};

void decoder_fail(struct decoder *decoder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Where the value of a field goes; it must be of the kind JSON_IS_NOTHING before. */
struct field {
    const char *name;
    struct json_value *value;
};

/* All fields of an object in one pass; one that is not in `fields` is refused. */
void fields_take(struct decoder *decoder, const char *where, const struct json_value *object,
                 const struct field *fields, size_t count);

/* One field of an object that may have others -> whether it is there. */
bool field_find(const struct json_value *object, const char *name, struct json_value *value);

uint64_t field_number(struct decoder *decoder, const char *name, const struct json_value *value,
                      uint64_t most, uint64_t absent);
bool field_flag(struct decoder *decoder, const char *name, const struct json_value *value);

/* -> whether it is there; `text` is empty otherwise */
bool field_text(struct decoder *decoder, const char *name, const struct json_value *value,
                char *text, size_t size);

/* -> whether there are members to walk over */
bool field_list(struct decoder *decoder, const char *name, const struct json_value *value,
                struct json_walk *walk);
