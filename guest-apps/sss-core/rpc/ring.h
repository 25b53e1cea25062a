/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A ring of records between two nodes, each of which writes only into the other's memory: nothing
 * here knows how the bytes travel. One direction is a control page, then the ring, in the memory of
 * its reader:
 *
 *   control page   0..255   hellos of the binding protocol
 *                  256      the tail: bytes ever put into this ring     } both written by the
 *                  264      the head: bytes ever taken from the other   } other side, 8 bytes each
 *   ring           records: struct ring_record, then `length` bytes, padded to 8
 *
 * A record never goes over the ring's end: RING_SKIP in place of a length leaves the rest out. The
 * reader writes its head once it has taken a quarter of the ring since it last did, and after each
 * skip; so a record of three quarters of the ring always finds room in the end. Lengths, positions
 * and the heads of records are in the machines' byte order.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RING_CONTROL = 4096,
    RING_TAIL = 256,
    RING_HEAD = 264,
    RING_WORD = 8, /* what all of it is aligned to, and stored by */
    RING_QUARTERS = 4,
};
#define RING_SKIP 0xffffffffu
/* The upper half of tails and heads, so that a word says what it is ("TAIL", "HEAD"). */
#define RING_TAIL_MARK 0x4c494154u
#define RING_HEAD_MARK 0x44414548u

struct ring_record {
    uint32_t length;   /* of the message, or RING_SKIP */
    uint32_t sequence; /* of the record, from 1; that of a skip is the next record's */
};
_Static_assert(sizeof(struct ring_record) == RING_WORD, "one store");

static inline uint64_t ring_tail_word(uint32_t tail)
{
    return (uint64_t)RING_TAIL_MARK << 32 | tail;
}
static inline uint64_t ring_head_word(uint32_t head)
{
    return (uint64_t)RING_HEAD_MARK << 32 | head;
}

/* Bytes of a record. */
static inline uint32_t ring_bytes(uint32_t length)
{
    return (uint32_t)sizeof(struct ring_record) + ((length + RING_WORD - 1) & ~(RING_WORD - 1u));
}
/* The longest message of a ring. */
static inline uint32_t ring_most(uint32_t size)
{
    return size / RING_QUARTERS * (RING_QUARTERS - 1) - (uint32_t)sizeof(struct ring_record);
}

/* ---- who writes ---- */

struct ring_writer {
    uint32_t size; /* bytes of the ring: a power of two */
    uint32_t tail;
    uint32_t sequence; /* of the last record */
};

/* What has to be written for a message. */
struct ring_place {
    bool fits;
    bool skips; /* `skip` goes to `skip_at`, and the tail has passed it: even where nothing fits,
                   since the other side then tells its head */
    uint32_t skip_at;
    struct ring_record skip;
    uint32_t at; /* of the record, in the ring */
    struct ring_record record;
};

/* Room for a message of at most ring_most bytes, where the other side's head is `head`. */
static inline struct ring_place ring_make_place(struct ring_writer *ring, uint32_t head,
                                                uint32_t length)
{
    struct ring_place place = {.fits = false};
    uint32_t bytes = ring_bytes(length), at = ring->tail % ring->size;
    uint32_t room = ring->size - (ring->tail - head);

    if (bytes > ring->size - at && room >= ring->size - at) {
        place.skips = true;
        place.skip_at = at;
        place.skip = (struct ring_record){RING_SKIP, ring->sequence + 1};
        room -= ring->size - at;
        ring->tail += ring->size - at;
        at = 0;
    }
    if (bytes > ring->size - at || bytes > room)
        return place;
    place.fits = true;
    place.at = at;
    place.record = (struct ring_record){length, ++ring->sequence};
    ring->tail += bytes;
    return place;
}

/* ---- who reads ---- */

struct ring_reader {
    const uint8_t *ring;
    uint32_t size;
    uint32_t head;
    uint32_t announced; /* the head that the other side knows */
    uint32_t sequence;  /* of the last record */
    bool tell;          /* the other side must learn it: by ring_tell */
};

struct ring_message {
    const uint8_t *bytes; /* stay until ring_release */
    uint32_t length;
};
enum ring_taken { RING_NOTHING, RING_MESSAGE, RING_BROKEN };

/* The next message, where the other side's tail is `tail`. Nothing of what it has written is
 * believed. */
enum ring_taken ring_take(struct ring_reader *ring, uint32_t tail, struct ring_message *message);

/* The message is done with. */
static inline void ring_release(struct ring_reader *ring, const struct ring_message *message)
{
    ring->head += ring_bytes(message->length);
    if (ring->head - ring->announced >= ring->size / RING_QUARTERS)
        ring->tell = true;
}

/* -> the head for the other side. */
static inline uint32_t ring_tell(struct ring_reader *ring)
{
    ring->tell = false;
    return ring->announced = ring->head;
}
