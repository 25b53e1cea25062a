/* SPDX-License-Identifier: Apache-2.0 */
#include "samples.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CHUNK = 32 * 1024, /* the virtio port takes no more in one write */
    ROW_LIMIT = 1024,  /* no row is longer: six numbers and one quoted text */
    TEXT_LIMIT = 256,
};

static int stream = SAMPLES_FD;

static char chunk[CHUNK];
static size_t chunk_used;

void samples_set_fd(int fd)
{
    stream = fd;
}

/* A lost record would falsify the run, so a stream that takes no bytes ends the program. */
static void write_all(const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(stream, bytes, length);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            fprintf(stderr, "samples: cannot write: %s\n", strerror(errno));
            exit(1);
        }
        bytes += written;
        length -= (size_t)written;
    }
}

static void flush_chunk(void)
{
    write_all(chunk, chunk_used);
    chunk_used = 0;
}

void samples_put(json_t *value)
{
    size_t length;
    char *line;

    length = json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
    line = malloc(length + 1);
    if (length == 0 || line == NULL) {
        fprintf(stderr, "samples: cannot encode a line\n");
        exit(1);
    }
    json_dumpb(value, line, length, JSON_COMPACT | JSON_ENCODE_ANY);
    line[length] = '\n';
    write_all(line, length + 1);
    free(line);
    json_decref(value);
}

/* Numbers are written by hand: printf would cost the guest ten times the instructions. */
static char *put_number(char *at, uint64_t value)
{
    char digits[20];
    size_t count = 0;

    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    while (count > 0)
        *at++ = digits[--count];
    return at;
}

static char *put_quoted(char *at, const char *text)
{
    *at++ = '"';
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            *at++ = '\\';
        *at++ = (unsigned char)*text < ' ' ? ' ' : *text;
    }
    *at++ = '"';
    return at;
}

static char *put_word(char *at, const char *word)
{
    size_t length = strlen(word);

    memcpy(at, word, length);
    return at + length;
}

static void put_row(size_t call, const struct call_record *record, failure_text_fn failure_text)
{
    char text[TEXT_LIMIT];
    char *at;

    if (CHUNK - chunk_used < ROW_LIMIT)
        flush_chunk();
    at = chunk + chunk_used;
    *at++ = '[';
    at = put_number(at, call);
    *at++ = ',';
    at = put_number(at, record->start_ns);
    *at++ = ',';
    at = put_number(at, record->end_ns);
    at = put_word(at, record->ok ? ",1," : ",0,");
    at = put_number(at, record->retransmits);
    *at++ = ',';
    at = record->has_xid ? put_number(at, record->xid) : put_word(at, "null");
    *at++ = ',';
    if (record->failure == 0) {
        at = put_word(at, "null");
    } else {
        failure_text(record, text, sizeof(text));
        at = put_quoted(at, text);
    }
    at = put_word(at, "]\n");
    chunk_used = (size_t)(at - chunk);
}

void samples_put_batch(json_t *header, const struct call_record *records, size_t count,
                       failure_text_fn failure_text)
{
    json_object_set_new(
        header, "columns",
        json_pack("[sssssss]", "call", "start", "end", "ok", "retransmits", "xid", "error"));
    samples_put(header);
    for (size_t call = 0; call < count; call++)
        put_row(call, &records[call], failure_text);
    flush_chunk();
}

json_t *samples_object(const char *type)
{
    const char *step = getenv("SUNDIAL_STEP");
    const char *app = getenv("SUNDIAL_APP");
    json_t *object = json_pack("{ss}", "type", type);

    if (step != NULL)
        json_object_set_new(object, "step", json_integer(atoi(step)));
    json_object_set_new(object, "app", json_string(app == NULL ? "" : app));
    return object;
}

static void put_error(const char *format, va_list arguments)
{
    char message[TEXT_LIMIT * 2];
    json_t *object = samples_object("error");

    vsnprintf(message, sizeof(message), format, arguments);
    json_object_set_new(object, "message", json_string(message));
    samples_put(object);
}

void samples_put_error(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    put_error(format, arguments);
    va_end(arguments);
}

void samples_fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    put_error(format, arguments);
    va_end(arguments);
    exit(1);
}

void samples_refuse(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    put_error(format, arguments);
    va_end(arguments);
    exit(2);
}
