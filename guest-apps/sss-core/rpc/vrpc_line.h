/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Two rings (ring.h), one each way, between a client and a server of vRPC, whatever carries what is
 * stored in one of them to the other side. */
#include <rpc/vrpc.h>
#include <sss/abi.h>

#include "ring.h"

enum {
    VRPC_RING = 131072, /* bytes: a call of 64 KiB of data is less than three quarters of it */
    VRPC_BUFFER = RING_CONTROL + VRPC_RING,
    VRPC_WORDS = 4, /* to wait for, of a line */
};
_Static_assert(VRPC_RING / RING_QUARTERS * (RING_QUARTERS - 1) - sizeof(struct ring_record) ==
                   VRPC_MESSAGE_MOST,
               "as promised");

struct vrpc_line;
struct vrpc_carrier {
    /* What has been stored in `out` from `at` on goes to the other side. NULL: each store does by
     * itself. */
    void (*push)(struct vrpc_line *line, uint32_t at, uint32_t bytes);
    /* Memory from which `deliberate` sends; NULL: there is no such way, or there is none now. */
    uint8_t *(*source)(struct vrpc_line *line);
    /* Sends the first bytes of it to `at` of the other side's memory, and is done with it. */
    void (*deliberate)(struct vrpc_line *line, uint32_t at, uint32_t bytes);
    /* Words whose change may bring more, as they are now. */
    unsigned (*words)(struct vrpc_line *line, struct sss_wait words[VRPC_WORDS]);
    bool (*is_gone)(struct vrpc_line *line);
    /* Of a server's line: finds out whether its client is there, which is_gone says later. NULL: it
     * is known without. */
    void (*probe)(struct vrpc_line *line);
    void (*close)(struct vrpc_line *line); /* and frees it */
};

struct vrpc_line { /* the first member of a carrier's own */
    const struct vrpc_carrier *carrier;
    uint8_t *in, *out; /* control page and ring: what this side reads, and what it writes */
    uint32_t deliberate_above;
    uint16_t node, task; /* of the other side */
    struct ring_writer writer;
    struct ring_reader reader;
    /* of the message that is being written */
    bool by_source;
    uint32_t at, bytes;
    /* of a server */
    struct vrpc_line *next;
    uint8_t *waiting; /* a reply for which there was no room */
    uint32_t waiting_bytes;
};

/* `in` and `out` are zeros in all that is not a hello. */
void vrpc_line_open(struct vrpc_line *line, const struct vrpc_carrier *carrier, uint8_t *in,
                    uint8_t *out, uint32_t deliberate_above);

/* Where a message of `length` bytes is to be written, each byte once; NULL: there is no room now.
 * Nothing but vrpc_line_end may follow. */
uint8_t *vrpc_line_begin(struct vrpc_line *line, uint32_t length);
void vrpc_line_end(struct vrpc_line *line);

/* What the other side has written. */
static inline uint32_t vrpc_line_tail(const struct vrpc_line *line)
{
    return (uint32_t)__atomic_load_n((const uint64_t *)(const void *)(line->in + RING_TAIL),
                                     __ATOMIC_ACQUIRE);
}
static inline bool vrpc_line_is_quiet(const struct vrpc_line *line)
{
    return vrpc_line_tail(line) == line->reader.head;
}
enum ring_taken vrpc_line_take(struct vrpc_line *line, struct ring_message *message);
void vrpc_line_release(struct vrpc_line *line, const struct ring_message *message);
