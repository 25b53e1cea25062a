/* SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include <rpc/copies.h>
#include <rpc/rpc.h>
#include <rpc/socket.h>
#include <sss/system.h>

enum {
    MARK = 4,
    BUFFER_DEFAULT = 65536,
    BUFFER_MOST = 262144,
};
#define LAST_FRAGMENT 0x80000000u
#define NS_PER_S      1000000000u

unsigned record_buffer_bytes(unsigned bytes)
{
    if (bytes == 0)
        return BUFFER_DEFAULT;
    return bytes < BUFFER_MOST ? bytes : BUFFER_MOST;
}

bool record_reader_init(struct record_reader *reader, int socket, size_t size)
{
    *reader = (struct record_reader){.socket = socket, .size = size, .bytes = malloc(size)};
    return reader->bytes != NULL;
}

void record_reader_free(struct record_reader *reader)
{
    free(reader->bytes);
    reader->bytes = NULL;
}

/* Closes the hole that a mark or the record before has left at `place`. */
static void remove_bytes(struct record_reader *reader, size_t place, size_t length)
{
    size_t behind = reader->end - place - length;

    if (behind > 0) {
        memmove(reader->bytes + place, reader->bytes + place + length, behind);
        rpc_copied(RPC_COPY_OTHER, behind);
    }
    reader->end -= length;
}

static bool take_mark(struct record_reader *reader)
{
    uint32_t word;

    if (reader->end - reader->message < MARK)
        return false;
    memcpy(&word, reader->bytes + reader->message, MARK);
    word = __builtin_bswap32(word);
    reader->last_fragment = (word & LAST_FRAGMENT) != 0;
    reader->fragment_left = word & ~LAST_FRAGMENT;
    return true;
}

/*
 * Moves what has come into the message -> 1 where it is complete. The first mark stays in front
 * (`given` says how much to skip), so that a record of one fragment is not moved.
 */
static int collect(struct record_reader *reader)
{
    for (;;) {
        size_t part = reader->end - reader->message;

        if (part > reader->fragment_left)
            part = reader->fragment_left;
        reader->message += part;
        reader->fragment_left -= part;
        if (reader->fragment_left > 0)
            return 0;
        if (reader->message > 0 && reader->last_fragment)
            return 1;
        if (!take_mark(reader))
            return 0;
        if (reader->message == 0)
            reader->message = MARK;
        else
            remove_bytes(reader, reader->message, MARK);
        if (reader->fragment_left == 0 && !reader->last_fragment)
            return -SSS_EINVAL; /* empty fragments without end */
        if (reader->message + reader->fragment_left > RECORD_LIMIT)
            return -SSS_EMSGSIZE;
    }
}

static bool make_room(struct record_reader *reader)
{
    char *bigger;

    if (reader->end < reader->size)
        return true;
    bigger = realloc(reader->bytes, reader->size * 2);
    if (bigger == NULL)
        return false;
    reader->bytes = bigger;
    reader->size *= 2;
    return true;
}

/* -> bytes that came, 0 for none at the moment, or an error. */
static int receive(struct record_reader *reader)
{
    uint32_t counter = *rpc_socket_counter(reader->socket);
    size_t room;
    int length;

    if (reader->drained && reader->seen == counter)
        return 0;
    if (!make_room(reader))
        return -SSS_ENOMEM;
    room = reader->size - reader->end;
    length = sss_receive(reader->socket, reader->bytes + reader->end, room);
    if (length == 0)
        return -SSS_EPIPE;
    reader->drained = length == -SSS_EAGAIN;
    reader->seen = counter;
    if (length == -SSS_EAGAIN)
        return 0;
    if (length > 0) {
        rpc_copied(RPC_COPY_RECEIVE, (size_t)length);
        reader->end += (size_t)length;
        reader->drained = (size_t)length < room;
    }
    return length;
}

static void forget_given(struct record_reader *reader)
{
    if (!reader->given)
        return;
    remove_bytes(reader, 0, reader->message);
    reader->message = 0;
    reader->last_fragment = false;
    reader->given = false;
}

int record_read(struct record_reader *reader, char **record, size_t *length)
{
    int result;

    forget_given(reader);
    for (;;) {
        result = collect(reader);
        if (result != 0)
            break;
        result = receive(reader);
        if (result <= 0)
            return result;
    }
    if (result < 0)
        return result;
    reader->given = true;
    *record = reader->bytes + MARK;
    *length = reader->message - MARK;
    return 1;
}

int record_send(int socket, const char *bytes, size_t length, void (*meanwhile)(void *),
                void *context)
{
    const volatile uint32_t *counter = rpc_socket_counter(socket);

    rpc_copied(RPC_COPY_SEND, length);
    while (length > 0) {
        uint32_t seen = *counter;
        int sent = sss_send(socket, bytes, length);

        if (sent > 0) {
            bytes += sent;
            length -= (size_t)sent;
            continue;
        }
        if (sent != -SSS_EAGAIN)
            return sent;
        if (meanwhile != NULL)
            meanwhile(context);
        if (sss_wait_word(counter, seen, (uint64_t)RECORD_SEND_S_MOST * NS_PER_S) == -SSS_ETIMEDOUT)
            return -SSS_ETIMEDOUT;
    }
    return 0;
}
