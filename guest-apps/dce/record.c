/* SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include <stdlib.h>

struct dce_record {
    json_t *line;
    json_t *inside; /* where fields go: the line or an object of it, which owns it */
};

struct dce_record *dce_record_new(const char *type)
{
    struct dce_record *record = malloc(sizeof(*record));

    if (record == NULL)
        samples_fail("out of memory");
    record->line = record->inside = samples_object(type);
    return record;
}

void dce_record_integer(struct dce_record *record, const char *name, long long value)
{
    json_object_set_new(record->inside, name, json_integer(value));
}

void dce_record_flag(struct dce_record *record, const char *name, bool value)
{
    json_object_set_new(record->inside, name, json_boolean(value));
}

void dce_record_text(struct dce_record *record, const char *name, const char *text)
{
    json_object_set_new(record->inside, name, json_string(text));
}

void dce_record_object(struct dce_record *record, const char *name)
{
    json_t *object = json_object();

    json_object_set_new(record->inside, name, object);
    record->inside = object;
}

void dce_record_object_end(struct dce_record *record)
{
    record->inside = record->line;
}

void dce_record_put(struct dce_record *record)
{
    samples_put(record->line);
    free(record);
}

void dce_record_put_batch(struct dce_record *record, const struct call_record *calls, size_t count,
                          failure_text_fn failure_text)
{
    samples_put_batch(record->line, calls, count, failure_text);
    free(record);
}
