/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <stdlib.h>
#include <string.h>

#include "samples.h"

struct options {
    json_t *left;  /* what has not been taken yet */
    json_t *taken; /* keeps the texts alive */
};

struct options *options_open(int argc, char **argv)
{
    struct options *options = malloc(sizeof(*options));
    json_error_t error;

    if (options == NULL)
        samples_fail("out of memory");
    if (argc != 2)
        samples_refuse("usage: %s OPTIONS (one JSON object)", argv[0]);
    json_object_seed(1); /* else it is read from /dev/urandom */
    options->left = json_loads(argv[1], JSON_REJECT_DUPLICATES, &error);
    if (options->left == NULL)
        samples_refuse("options: %s (column %d)", error.text, error.column);
    if (!json_is_object(options->left))
        samples_refuse("options: must be a JSON object");
    options->taken = json_array();
    return options;
}

/* Moves an option from left to taken; NULL where it is absent or null. */
static json_t *take(struct options *options, const char *name)
{
    json_t *value = json_object_get(options->left, name);

    if (value == NULL)
        return NULL;
    json_array_append(options->taken, value);
    json_object_del(options->left, name);
    return json_is_null(value) ? NULL : value;
}

static long long integer_in_range(const json_t *value, const char *name, long long least,
                                  long long most)
{
    if (!json_is_integer(value) || json_integer_value(value) < least ||
        json_integer_value(value) > most)
        samples_refuse("option %s: must be an integer from %lld to %lld", name, least, most);
    return json_integer_value(value);
}

long long options_integer(struct options *options, const char *name, long long absent,
                          long long least, long long most)
{
    json_t *value = take(options, name);

    return value == NULL ? absent : integer_in_range(value, name, least, most);
}

bool options_boolean(struct options *options, const char *name, bool absent)
{
    json_t *value = take(options, name);

    if (value == NULL)
        return absent;
    if (!json_is_boolean(value))
        samples_refuse("option %s: must be true or false", name);
    return json_is_true(value);
}

const char *options_text(struct options *options, const char *name, const char *absent)
{
    json_t *value = take(options, name);

    if (value == NULL && absent != NULL)
        return absent;
    if (!json_is_string(value))
        samples_refuse("option %s: must be given, as a string", name);
    return json_string_value(value);
}

static int word_index(const json_t *value, const char *name, const char *const *words)
{
    const char *text = json_string_value(value);

    for (int i = 0; text != NULL && words[i] != NULL; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    samples_refuse("option %s: must be one of \"%s\", \"%s\"%s", name, words[0], words[1],
                   words[2] == NULL ? "" : ", ...");
}

int options_word(struct options *options, const char *name, const char *const *words)
{
    json_t *value = take(options, name);

    return value == NULL ? 0 : word_index(value, name, words);
}

long long *options_integers(struct options *options, const char *name, long long least,
                            long long most, size_t *count)
{
    json_t *value = take(options, name);
    long long *numbers;

    *count = 0;
    if (value == NULL)
        return NULL;
    if (!json_is_array(value))
        samples_refuse("option %s: must be an array of integers", name);
    numbers = calloc(json_array_size(value) + 1, sizeof(*numbers));
    if (numbers == NULL)
        samples_fail("out of memory");
    for (; *count < json_array_size(value); ++*count)
        numbers[*count] = integer_in_range(json_array_get(value, *count), name, least, most);
    return numbers;
}

int *options_word_list(struct options *options, const char *name, const char *const *words,
                       size_t *count)
{
    json_t *value = take(options, name);
    int *indices;

    *count = 0;
    if (value == NULL)
        return NULL;
    if (!json_is_array(value) || json_array_size(value) == 0)
        samples_refuse("option %s: must be an array of words", name);
    indices = calloc(json_array_size(value), sizeof(*indices));
    if (indices == NULL)
        samples_fail("out of memory");
    for (; *count < json_array_size(value); ++*count)
        indices[*count] = word_index(json_array_get(value, *count), name, words);
    return indices;
}

unsigned options_words(struct options *options, const char *name, const char *const *words,
                       unsigned absent)
{
    size_t count;
    int *indices = options_word_list(options, name, words, &count);
    unsigned mask = indices == NULL ? absent : 0;

    for (size_t i = 0; i < count; i++)
        mask |= 1u << indices[i];
    free(indices);
    return mask;
}

void options_check_all_taken(struct options *options)
{
    void *first = json_object_iter(options->left);

    if (first != NULL)
        samples_refuse("option %s: unknown", json_object_iter_key(first));
    if (getenv("SUNDIAL_CHECK_OPTIONS") != NULL)
        exit(0);
}

void options_close(struct options *options)
{
    json_decref(options->left);
    json_decref(options->taken);
    free(options);
}
