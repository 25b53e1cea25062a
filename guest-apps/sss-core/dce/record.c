/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the record stream, as text. */
#include "record.h"

#include <options.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json.h"
#include "row.h"
#include "sss/system.h"

enum {
    FIRST_ROOM = 4096, /* most lines need no more */
    PART = 256,        /* a field, with its name */
    MESSAGE = 512,
};

struct dce_record {
    char *text;
    size_t length, room;
};

static void add(struct dce_record *record, const char *part, size_t length)
{
    if (record->room - record->length < length) {
        record->room *= 2;
        record->text = realloc(record->text, record->room);
    }
    if (record->text == NULL)
        task_fail("out of memory");
    memcpy(record->text + record->length, part, length);
    record->length += length;
}

/* A comma where one belongs, and `format`, at most PART bytes of it. */
__attribute__((format(printf, 2, 3))) static void field(struct dce_record *record,
                                                        const char *format, ...)
{
    char part[PART];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(part, sizeof(part), format, arguments);
    va_end(arguments);
    if (record->text[record->length - 1] != '{')
        add(record, ",", 1);
    add(record, part, strlen(part));
}

struct dce_record *dce_record_new(const char *type)
{
    struct dce_record *record = malloc(sizeof(*record));

    if (record == NULL)
        task_fail("out of memory");
    *record = (struct dce_record){.text = malloc(FIRST_ROOM), .room = FIRST_ROOM};
    add(record, "{", 1);
    dce_record_text(record, "type", type);
    if (options_step() >= 0)
        dce_record_integer(record, "step", options_step());
    dce_record_text(record, "app", options_app());
    return record;
}

void dce_record_integer(struct dce_record *record, const char *name, long long value)
{
    field(record, "\"%s\":%lld", name, value);
}

void dce_record_flag(struct dce_record *record, const char *name, bool value)
{
    field(record, "\"%s\":%s", name, value ? "true" : "false");
}

/* Names and texts are these programs' own words, and what they have read as addresses: nothing in
 * them needs to be escaped. */
void dce_record_text(struct dce_record *record, const char *name, const char *text)
{
    field(record, "\"%s\":\"%s\"", name, text);
}

void dce_record_object(struct dce_record *record, const char *name)
{
    field(record, "\"%s\":{", name);
}

void dce_record_object_end(struct dce_record *record)
{
    add(record, "}", 1);
}

void dce_record_put(struct dce_record *record)
{
    add(record, "}\n", 2);
    sss_call(SSS_RECORD, (uintptr_t)record->text, record->length, 0, 0, 0, 0);
    free(record->text);
    free(record);
}

void dce_record_put_batch(struct dce_record *record, const struct call_record *calls, size_t count,
                          failure_text_fn failure_text)
{
    field(record, "\"columns\":[\"call\",\"start\",\"end\",\"ok\",\"retransmits\",\"xid\","
                  "\"error\"]");
    dce_record_put(record);
    for (size_t i = 0; i < count; i++) {
        struct dce_row row = {.start_ns = calls[i].start_ns,
                              .end_ns = calls[i].end_ns,
                              .xid = calls[i].xid,
                              .retransmits = calls[i].retransmits,
                              .ok = calls[i].ok,
                              .has_xid = calls[i].has_xid};
        char error[PART];

        if (calls[i].failure != 0) {
            failure_text(&calls[i], error, sizeof(error));
            row.error = error;
        }
        dce_row_put(i, &row);
    }
    dce_rows_end();
}

void samples_fail(const char *format, ...)
{
    char message[MESSAGE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    task_fail("%s", message);
}

/* A task has one way to fail. */
void samples_refuse(const char *format, ...)
{
    char message[MESSAGE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    task_fail("%s", message);
}
