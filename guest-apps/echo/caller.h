/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "samples.h"
#include "settings.h"

/* One caller: a client handle of its own, its buffers, and its transaction numbers. */
struct caller {
    const struct settings *settings;
    size_t thread;
    CLIENT *handle; /* NULL: not connected */
    int socket;
    unsigned client_port;
    uint32_t xid; /* of the next call */
    char *argument;
    char *result;
};

/* Buffers and numbers; ends the program where memory is short. */
void caller_init(struct caller *caller, const struct settings *settings, size_t thread);

/* A fresh socket and handle; false with errno where the server cannot be reached. */
bool caller_connect(struct caller *caller);

void caller_disconnect(struct caller *caller);

/* Makes call `sequence` and fills in its record. A broken connection is made anew first. */
void caller_call(struct caller *caller, uint32_t sequence, size_t size, struct call_record *record);

/* After one-way calls: one call with a reply, so that everything before it has been delivered. */
bool caller_flush(struct caller *caller);

/* Segments that TCP sent again on this connection so far; 0 for UDP. */
unsigned caller_tcp_retransmits(const struct caller *caller);

/* The text of a record's failure (failure_text_fn). */
void caller_failure_text(const struct call_record *record, char *text, size_t size);
