/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What RPC over MBCF puts into TASKQUEs and FIFOs. These heads are in the machines' own byte order,
 * as all memory that MBCF writes; the RPC messages behind them are XDR (RFC 5531).
 *
 *   TASKQUE of a server   struct mbm_head, then: CALL      the RPC call
 *                                                CALL_AT   struct mbm_source
 *                                                BIND      struct mbm_bind
 *   FIFO of a client      struct mbm_bound as the answer to BIND; else an RPC reply
 *   FIFO of a server      an RPC call
 *   signal queue          an RPC call, or nothing where it was WRITTEN into the area before
 * (argument 0: offset, 1: length)
 */
#include <stdint.h>

#include <rpc/mbcf.h>

enum mbm_kind {
    MBM_CALL = 1,    /* type 1 */
    MBM_CALL_AT = 2, /* type 2 */
    MBM_BIND = 3,    /* types 3, 3a, 3b */
};

struct mbm_head {
    uint64_t replies;    /* the client's FIFO */
    uint32_t reply_most; /* bytes of the longest reply that it takes */
    uint32_t kind;       /* enum mbm_kind */
};

struct mbm_source {
    uint64_t address; /* in the client, which permits READ */
    uint32_t length;
    uint32_t xid; /* of the call there: a late READ may find another one */
};

/* All of a CALL_AT. */
struct mbm_place_message {
    struct mbm_head head;
    struct mbm_source source;
};

struct mbm_bind {
    uint32_t program;
    uint32_t version;
    uint32_t type; /* enum mbcf_type */
    uint32_t request_most;
    uint32_t depth;
    uint32_t reserved;
};

enum { MBM_BOUND = 0x444e424d }; /* "MBND"; an RPC reply has 1 in its second word */
enum mbm_refusal {
    MBM_ACCEPTED = 0,
    MBM_NO_PROGRAM = 1,
    MBM_NO_TYPE = 2,
    MBM_TOO_LARGE = 3,
    MBM_NO_PLACE = 4
};
struct mbm_bound {
    uint32_t magic;   /* MBM_BOUND */
    uint32_t refusal; /* enum mbm_refusal */
    uint64_t key;     /* of the task below */
    uint64_t fifo;    /* 3, 3a */
    uint64_t handler; /* 3b */
    uint64_t area;    /* 3b: where large requests are WRITTEN */
    /* bytes of the FIFO or the signal queue: the client never has more than this under way */
    uint32_t ring;
    uint32_t slots; /* 3b: places in the area */
    uint32_t slot;  /* 3b: bytes of one */
    uint16_t task;  /* whom requests go to */
    uint16_t reserved;
};

enum {
    /* What a TASKQUE write holds beside its own head. */
    MBM_TASKQUE_MOST = 1392,
    MBM_CALL_MOST = MBM_TASKQUE_MOST - (int)sizeof(struct mbm_head),
    MBM_SIGNAL_MOST = 1376,
    /* The shortest call and reply (AUTH_NONE, no arguments or results), in bytes. */
    MBM_CALL_HEADER = 40,
    MBM_REPLY_HEADER = 24,
};
_Static_assert((int)MBM_CALL_MOST == (int)MBCF_1_MESSAGE_MOST, "as promised");

/* Bytes that `length` bytes of data take in a ring. */
static inline uint32_t mbm_record_bytes(uint32_t length)
{
    return (uint32_t)sizeof(struct mb_record) + ((length + 15) & ~15u);
}

/*
 * A ring in which `count` records of `most` bytes always have a place. Records never wrap, so up to
 * one record's size less 16 is lost where the ring ends; and the record that is being looked at
 * still has its place.
 */
uint32_t mbm_ring_bytes(uint32_t most, uint32_t count);

/* A word of an XDR message. */
static inline uint32_t mbm_word(const void *message, unsigned index)
{
    return __builtin_bswap32(((const uint32_t *)message)[index]);
}
/* This task's access keys: slot 0 lets others write (replies, binder's answers), slot 1 read as
 * well (type 2), slot 2 is the server's of type 3. Made at the first use. */
enum mbm_key { MBM_KEY_WRITE = 0, MBM_KEY_READ = 1, MBM_KEY_SERVER = 2 };
uint64_t mbm_key(enum mbm_key slot); /* 0: it cannot be set */
uint64_t mbm_key_new(uint64_t salt); /* a key that nothing else has */

/* Grows when an operation of this task has failed without an ack, or one of its connections has
 * broken. */
const volatile uint32_t *mbm_errors(void);

/* `bytes`, rounded up to whole pages. */
size_t mbm_whole_pages(size_t bytes);
/* Memory for a FIFO with a ring of `ring` bytes, on pages of its own, declared; NULL. */
struct mb_fifo *mbm_fifo_open(uint32_t ring);
void mbm_fifo_close(struct mb_fifo *fifo);
