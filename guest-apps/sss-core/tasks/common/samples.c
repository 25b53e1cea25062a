/* SPDX-License-Identifier: Apache-2.0 */
#include "samples.h"

#include <string.h>

#include "options.h"
#include "sss/system.h"

enum { CHUNK = 16 * 1024, ROW_LIMIT = 512 };

static char chunk[CHUNK];
static size_t used;

void samples_flush(void)
{
    if (used > 0)
        sss_call(SSS_RECORD, (uintptr_t)chunk, used, 0, 0, 0, 0);
    used = 0;
}

/* Numbers are written by hand: formatted printing would cost the machine ten times the
 * instructions. */
static void put_number(uint64_t value)
{
    char digits[20];
    size_t count = 0;

    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    while (count > 0)
        chunk[used++] = digits[--count];
}

static void put_text(const char *text)
{
    size_t length = strlen(text);

    memcpy(chunk + used, text, length);
    used += length;
}

/* Errors are this program's own words: nothing in them needs to be escaped. */
void samples_put_row(size_t call, const struct call_record *record)
{
    if (CHUNK - used < ROW_LIMIT)
        samples_flush();
    chunk[used++] = '[';
    put_number(call);
    chunk[used++] = ',';
    put_number(record->start_ns);
    chunk[used++] = ',';
    put_number(record->end_ns);
    put_text(record->ok ? ",1," : ",0,");
    put_number(record->retransmits);
    chunk[used++] = ',';
    if (record->has_xid)
        put_number(record->xid);
    else
        put_text("null");
    chunk[used++] = ',';
    if (record->error == NULL) {
        put_text("null");
    } else {
        chunk[used++] = '"';
        put_text(record->error);
        if (record->detail != NULL && record->detail[0] != '\0') {
            put_text("; ");
            put_text(record->detail);
        }
        chunk[used++] = '"';
    }
    put_text("]\n");
}

void samples_put_batch(const char *fields, const struct call_record *records, size_t count)
{
    sss_record("{\"type\":\"batch\",\"step\":%ld,\"app\":\"%s\",%s,\"columns\":[\"call\",\"start\","
               "\"end\",\"ok\","
               "\"retransmits\",\"xid\",\"error\"]}",
               options_step() < 0 ? 0 : options_step(), options_app(), fields);
    for (size_t call = 0; call < count; call++)
        samples_put_row(call, &records[call]);
    samples_flush();
}
