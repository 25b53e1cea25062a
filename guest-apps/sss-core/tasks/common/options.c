/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json.h"
#include "sss/system.h"

enum { NAMES = 40, NAME_BYTES = 48, DEPTH = 2, TEXT = 512 };

/* The objects that are being read: the options, and one inside. */
static struct level {
    struct json_value object;
    char taken[NAMES][NAME_BYTES];
    unsigned count;
    char name[NAME_BYTES];
} levels[DEPTH];
static unsigned level;

static const char *app_name = "";
static long step = -1;
static uint64_t seed;

long options_step(void)
{
    return step;
}

uint64_t options_seed(void)
{
    return seed;
}

const char *options_app(void)
{
    return app_name;
}

static void put_error(const char *format, va_list arguments)
{
    char message[TEXT], escaped[2 * TEXT];

    vsnprintf(message, sizeof(message), format, arguments);
    if (!json_escape(message, strlen(message), escaped, sizeof(escaped)))
        escaped[0] = '\0';
    if (step >= 0)
        sss_record("{\"type\":\"error\",\"step\":%ld,\"app\":\"%s\",\"message\":\"%s\"}", step,
                   app_name, escaped);
    else
        sss_record("{\"type\":\"error\",\"app\":\"%s\",\"message\":\"%s\"}", app_name, escaped);
}

void task_error(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    put_error(format, arguments);
    va_end(arguments);
}

void task_fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    put_error(format, arguments);
    va_end(arguments);
    sss_exit(1);
}

void options_fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    put_error(format, arguments);
    va_end(arguments);
    sss_exit(OPTIONS_BAD);
}

/* False where it is absent or null. */
static bool take(const char *name, struct json_value *value)
{
    struct level *at = &levels[level];

    if (at->count == NAMES)
        options_fail("option %s: too many options", name);
    snprintf(at->taken[at->count++], NAME_BYTES, "%s", name);
    return json_field(&at->object, name, value) && json_kind(value) != JSON_IS_NULL;
}

void options_open(int argc, char **argv, const char *app)
{
    const char *wrong;
    struct json_value value;
    uint64_t number;

    app_name = app;
    if (argc != 2)
        options_fail("usage: %s OPTIONS (one JSON object)", app);
    wrong = json_check(argv[1], strlen(argv[1]), &levels[0].object);
    if (wrong != NULL)
        options_fail("options: %s (column %zu)", wrong,
                     (size_t)(levels[0].object.text - argv[1]) + 1);
    if (json_kind(&levels[0].object) != JSON_IS_OBJECT)
        options_fail("options: must be a JSON object");
    if (take("step", &value) && json_uint(&value, &number))
        step = (long)number;
    if (take("seed", &value) && !json_uint(&value, &seed))
        options_fail("option seed: must be an integer from 0");
}

static long long integer_in_range(const struct json_value *value, const char *name, long long least,
                                  long long most)
{
    uint64_t number;

    if (!json_uint(value, &number) || number > INT64_MAX || (long long)number < least ||
        (long long)number > most)
        options_fail("option %s: must be an integer from %lld to %lld", name, least, most);
    return (long long)number;
}

long long options_integer(const char *name, long long absent, long long least, long long most)
{
    struct json_value value;

    return take(name, &value) ? integer_in_range(&value, name, least, most) : absent;
}

bool options_boolean(const char *name, bool absent)
{
    struct json_value value;
    bool flag;

    if (!take(name, &value))
        return absent;
    if (!json_bool(&value, &flag))
        options_fail("option %s: must be true or false", name);
    return flag;
}

void options_text(const char *name, const char *absent, char *text, size_t size)
{
    struct json_value value;

    if (!take(name, &value)) {
        if (absent == NULL)
            options_fail("option %s: must be given, as a string", name);
        snprintf(text, size, "%s", absent);
    } else if (!json_text(&value, text, size)) {
        options_fail("option %s: must be a string of at most %zu bytes", name, size - 1);
    }
}

static int word_index(const struct json_value *value, const char *name, const char *const *words)
{
    char all[TEXT] = "";

    for (int i = 0; words[i] != NULL; i++)
        if (json_is(value, words[i]))
            return i;
    for (int i = 0; words[i] != NULL; i++)
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s\"%s\"", i == 0 ? "" : ", ",
                 words[i]);
    options_fail("option %s: must be one of %s", name, all);
}

int options_word(const char *name, const char *const *words)
{
    struct json_value value;

    return take(name, &value) ? word_index(&value, name, words) : 0;
}

/* The members of an array. */
static bool walk(const char *name, struct json_walk *members)
{
    struct json_value value;

    if (!take(name, &value))
        return false;
    if (json_kind(&value) != JSON_IS_ARRAY)
        options_fail("option %s: must be an array", name);
    json_walk_start(members, &value);
    return true;
}

size_t options_integers(const char *name, long long least, long long most, long long *numbers,
                        size_t size)
{
    struct json_walk members;
    struct json_value value;
    size_t count = 0;

    if (!walk(name, &members))
        return 0;
    while (json_walk_next(&members, NULL, &value)) {
        if (count == size)
            options_fail("option %s: at most %zu members", name, size);
        numbers[count++] = integer_in_range(&value, name, least, most);
    }
    return count;
}

size_t options_word_list(const char *name, const char *const *words, int *indices, size_t size)
{
    struct json_walk members;
    struct json_value value;
    size_t count = 0;

    if (!walk(name, &members))
        return 0;
    while (json_walk_next(&members, NULL, &value)) {
        if (count == size)
            options_fail("option %s: at most %zu members", name, size);
        indices[count++] = word_index(&value, name, words);
    }
    if (count == 0)
        options_fail("option %s: must not be empty", name);
    return count;
}

unsigned options_words(const char *name, const char *const *words, unsigned absent)
{
    struct json_walk members;
    struct json_value value;
    unsigned mask = 0;

    if (!walk(name, &members))
        return absent;
    while (json_walk_next(&members, NULL, &value))
        mask |= 1u << word_index(&value, name, words);
    if (mask == 0)
        options_fail("option %s: must not be empty", name);
    return mask;
}

bool options_enter(const char *name)
{
    struct json_value value;

    if (!take(name, &value))
        return false;
    if (json_kind(&value) != JSON_IS_OBJECT)
        options_fail("option %s: must be an object", name);
    level++;
    levels[level].object = value;
    levels[level].count = 0;
    snprintf(levels[level].name, NAME_BYTES, "%s.", name);
    return true;
}

void options_check_all_taken(void)
{
    const struct level *at = &levels[level];
    struct json_walk members;
    struct json_value name, value;

    json_walk_start(&members, &at->object);
    while (json_walk_next(&members, &name, &value)) {
        bool known = false;

        for (unsigned i = 0; i < at->count && !known; i++)
            known = json_is(&name, at->taken[i]);
        if (!known)
            options_fail("option %s%.*s: unknown", at->name, (int)(name.length - 2), name.text + 1);
    }
}

void options_leave(void)
{
    options_check_all_taken();
    level--;
}
