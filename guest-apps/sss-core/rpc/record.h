/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Records as they come in on a TCP socket, without waiting: a whole record is collected in one
 * piece of memory, so that one slow peer delays no other and the decoder knows where the message
 * ends.
 */
#include <sss/abi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RECORD_LIMIT = 8 * 1048576, /* bytes of the largest record; its connection is ended */
    /* s that sending may stand still before the connection counts as broken, as in libtirpc */
    RECORD_SEND_S_MOST = 35,
};

struct record_reader {
    int socket;
    char *bytes; /* [0, message) is collected, [message, end) has come and is not looked at */
    size_t size;
    size_t message;
    size_t end;
    size_t fragment_left;
    bool last_fragment;
    bool given;   /* the caller has the record of [0, message) */
    bool drained; /* the socket was empty when `seen` was its counter */
    uint32_t seen;
};

bool record_reader_init(struct record_reader *reader, int socket, size_t size);
void record_reader_free(struct record_reader *reader);
/*
 * -> 1 and the record, good until the next call; 0: none is complete; -SSS_EPIPE at the end of the
 * stream; other errors.
 */
int record_read(struct record_reader *reader, char **record, size_t *length);

/*
 * Sends all of it; sleeps where there is no room, and calls `meanwhile(context)` (may be NULL)
 * whenever something has changed.
 * -> 0 or a negative enum sss_error.
 */
int record_send(int socket, const char *bytes, size_t length, void (*meanwhile)(void *),
                void *context);
/* The size that libtirpc uses for a stream's buffer where `bytes` are asked for (0: its default).
 */
unsigned record_buffer_bytes(unsigned bytes);
