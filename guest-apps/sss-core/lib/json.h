/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A JSON reader that allocates nothing: a value is a piece of the text. Used for jobs by both
 * guests, for options by SSS-CORE's tasks, and by tests on the host. Check a text once with
 * json_check; the other functions take values of a checked text, and stay inside their value
 * whatever it holds. No name here is one of jansson's, with which Linux programs link it.
 *
 *     if (json_check(text, length, &options) == NULL && json_field(&options, "calls", &field))
 *         json_uint(&field, &calls);
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_kind {
    JSON_IS_NOTHING,
    JSON_IS_NULL,
    JSON_IS_BOOL,
    JSON_IS_NUMBER,
    JSON_IS_STRING,
    JSON_IS_ARRAY,
    JSON_IS_OBJECT
};
enum { JSON_DEPTH = 32 /* arrays and objects in one another */ };

struct json_value {
    const char *text; /* from its first character */
    size_t length;    /* to its last */
};

/*
 * The value of a whole text -> NULL, or what is wrong with it. White space around it is allowed;
 * the same name twice in one object is not. Where it went wrong: value->text.
 */
const char *json_check(const char *text, size_t length, struct json_value *value);

enum json_kind json_kind(const struct json_value *value);

/* A field of an object; false if it is not an object or has no such field. */
bool json_field(const struct json_value *object, const char *name, struct json_value *value);

/* The members of an array or object, in order: set `at` to value->text, then call until false.
 * `name` is for objects, or NULL. */
struct json_walk {
    struct json_value whole;
    const char *at;
};
void json_walk_start(struct json_walk *walk, const struct json_value *value);
bool json_walk_next(struct json_walk *walk, struct json_value *name, struct json_value *value);
/* members; 0 where it is neither array nor object */
size_t json_count(const struct json_value *value);

/* Each false where the value is of another kind or out of range; then nothing is written. */
/* no fraction, no exponent, 0 to 2^64 - 1 */
bool json_uint(const struct json_value *value, uint64_t *number);
bool json_bool(const struct json_value *value, bool *flag);
/* decoded, with NUL; false where it has none of its own */
bool json_text(const struct json_value *value, char *text, size_t size);
bool json_is(const struct json_value *string, const char *text);

/* For writing: `text` as the inside of a JSON string -> its length; false where it does not fit. */
bool json_escape(const char *text, size_t length, char *out, size_t size);
