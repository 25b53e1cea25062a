/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The record stream of harness/schemas/README.md ("Samples"): one JSON value a line on file
 * descriptor 3. Several processes share the stream, so each write holds whole lines only and is
 * short enough for the virtio port to take it at once; lines of two processes never mix.
 */
enum { SAMPLES_FD = 3 };

/* One measured call. Filled while measuring, written afterwards. */
struct call_record {
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t xid;
    uint16_t retransmits;
    bool ok;
    bool has_xid;
    /*
     * The failure, as the application numbers it; 0: none. Turned into text when written.
     */
    uint16_t failure;
    int16_t failure_errno;
};

/* Text for a failed call's row, written to `text`. */
typedef void (*failure_text_fn)(const struct call_record *record, char *text, size_t size);

/* Where lines go. The tests send them elsewhere. */
void samples_set_fd(int fd);

/* Writes one value as a line and takes the reference. */
void samples_put(json_t *value);

/* A batch line from `header` (taken) and a row for each of `count` records. */
void samples_put_batch(json_t *header, const struct call_record *records, size_t count,
                       failure_text_fn failure_text);

/*
 * {"type":"error","step":S,"app":A,"message":...}; step and app as the runner put them into the
 * environment.
 */
void samples_put_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, then exit status 1. */
_Noreturn void samples_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for options that the program does not take: exit status 2. */
_Noreturn void samples_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A new object with "type", "step" (where there is one) and "app". */
json_t *samples_object(const char *type);
