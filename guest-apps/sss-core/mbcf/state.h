/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The state of one node's MBCF. Nothing outside this folder includes it. Each file knows only those
 * below it (README, "Files"); what a channel reports to those above goes through event.h.
 */
#include "core.h"

/* The search through all states (tests/mbcf_explore.c) has smaller ones. */
#ifndef MBCF_LIMIT
#define MBCF_LIMIT(name, value) (value)
#endif
enum {
#define MBCF_COUNT(name, value) name = MBCF_LIMIT(name, value),
#include "limits.def"
    TASK_SLOTS = MBCF_LIMIT(TASK_SLOTS, 80), /* the well-known ones, then SSS_TASKS */
    /* task indices below this are given by mbcf_task_open_as only */
    WELL_KNOWN = MBCF_LIMIT(WELL_KNOWN, 16),
    SEGMENTS = MBCF_LIMIT(SEGMENTS, 64), /* FIFO segments of several packets that are arriving */
    LOOP = MBCF_LIMIT(LOOP, 256),        /* frames to the own node that have not been taken */
    TIMED_EVERY = 16,                    /* frames of which one is timed */
};

#define MBCF_TIME_NS(name, ns) static const uint64_t name = (ns);
#include "limits.def"
/* How long to wait for frame buffers that others hold. */
static const uint64_t SCARCE_NS = 1000000;
#define NEVER UINT64_MAX

/*
 * Names: the number of a slot, and how often it has been used; bit 31 tells a connection from an
 * operation. Frames have the end of them, which comes round: so a RESULT says which frame it
 * answers, too, and what began behind that is not meant.
 */
enum { NAME_SLOT_BITS = 10, NAME_SLOT = (1 << NAME_SLOT_BITS) - 1 };
#define NAME_CONNECTION 0x80000000u
static inline uint16_t op_id_of(uint32_t name)
{
    return (uint16_t)((name & (MBW_OP_ID_CONNECTION - 1)) |
                      (name & NAME_CONNECTION ? MBW_OP_ID_CONNECTION : 0));
}

struct key {
    uint64_t key;
    unsigned permission; /* 0: not in use */
};

/* A ring in a task's memory. Only `tail` is read from there; see fifo.c. */
struct ring {
    uint64_t address; /* of struct mb_fifo; 0: none */
    uint32_t size;    /* of the ring behind it */
    uint32_t head;
    uint32_t tail; /* the last one that was in range */
};

struct mbcf_task {
    uint16_t id; /* 0: free */
    uint8_t generation;
    bool gone;        /* only waits until `farewells` have been queued */
    uint8_t key_hint; /* the key, the FIFO and the handler that were used last */
    uint8_t fifo_hint;
    uint8_t handler_hint;
    uint8_t handler_count;
    void *space;
    uint64_t peers;     /* bit n: node n + 1 has dealings with this task */
    uint64_t farewells; /* the same: a CLOSE is still to be queued */
    struct key keys[MB_KEYS];
    struct ring taskque;
    struct ring signal_queue;
    struct ring fifos[MB_FIFOS];
    uint64_t handlers[MB_HANDLERS];
};

struct channel;

enum connection_phase { CONNECTION_FREE, CONNECTION_OPEN, CONNECTION_BROKEN, CONNECTION_CLOSING };
enum connection_origin {
    ORIGIN_CONNECT,
    ORIGIN_WRITER /* of a TASKQUE write */,
    ORIGIN_SERVER /* its receiver */
};

struct connection {
    uint8_t phase;
    uint8_t origin;
    uint16_t task; /* the owner */
    uint16_t node;
    uint16_t peer;
    uint16_t ltn;            /* the number that its owner knows */
    struct mbcf_task *owner; /* where `task` is alive */
    struct channel *channel; /* to `node` */
    uint32_t generation;
    uint32_t name;      /* as in op_id */
    uint32_t peer_name; /* the peer's name for its end, 0 unknown */
    uint32_t error;
    uint32_t reason; /* why it is broken */
    uint32_t unfinished;
    uint32_t undecided; /* of those: acknowledged, but an error may still come */
    uint64_t key;
    uint32_t since;      /* seq of the channel's first frame that may be of it */
    uint8_t tag;         /* for frames of it, where the channel still says so; with `tag_high` */
    uint32_t tag_high;   /* high half of addresses */
    uint32_t head_epoch; /* the peer's epoch that `head` is good for; 0: it is not made */
    uint64_t head[8];    /* of every request on it, as far as it is always the same */
};

/* How far an operation is. */
struct progress {
    bool answered; /* ends by its RESULT; others when their last frame is acknowledged */
    /* parts are still to be queued: the slot is held until mbcf_operate sees its end */
    bool sending;
    bool several;   /* of more than one packet */
    bool begun;     /* a part has been queued */
    bool maybe;     /* a frame that could have executed it has been handed to the adapter */
    bool undecided; /* acknowledged, but its error may still come */
    bool give_up;   /* the peer must still learn that the segment is void */
    uint8_t failed; /* while `sending`: the status it has ended with */
};

struct operation {
    uint32_t name; /* 0: free */
    uint32_t generation;
    uint32_t connection; /* its name */
    uint32_t since;      /* seq of the first frame that may be of it */
    uint16_t task;
    uint16_t node;
    uint16_t peer;
    uint8_t op;
    struct progress is;
    uint32_t length; /* READ: bytes wanted, and how many have come */
    uint32_t arrived;
    uint64_t data;
    uint64_t ack;
    uint64_t remote; /* with `key`: for the frame that makes a segment void */
    uint64_t key;
};

/* A FIFO segment of which parts have come. */
struct segment {
    uint16_t node; /* 0: free */
    uint16_t source;
    uint16_t task;
    uint8_t fifo;
    uint32_t name;     /* op_id of its parts */
    uint32_t position; /* of the record, as in head */
    uint32_t total;
    uint32_t arrived;
};

/* A frame that has not been acknowledged. */
struct place {
    struct sss_frame *frame;
    uint32_t seq;
    uint32_t name; /* whose it is; 0 for RESULT and CLOSE */
    bool sent;
    bool decisive;  /* may execute its operation, not only prepare it */
    bool completes; /* its acknowledgement completes its operation */
    bool refuses;   /* a RESULT with an error */
};

/* What a tag of the peer means. */
struct definition {
    uint16_t source, target; /* tasks; target 0: nothing yet */
    uint32_t address_high;
    uint64_t key;
};

struct channel {
    bool known;
    uint8_t state; /* enum mbcf_channel_state */
    uint16_t node;
    bool own; /* the own node: no wire between */
    /* the header of every frame to it; two bytes more, to be copied as words */
    uint8_t ethernet[16];
    /* the same of frames from it; the own node: zero, for none comes */
    uint8_t from[16];
    uint8_t alike;        /* the next node whose address ends with the same byte; 0: none */
    uint64_t ack_head[8]; /* of an ACK to it, as far as it is always the same for its epoch */
    uint64_t from_ack[5]; /* the same of an ACK from it, up to `length` */
    uint64_t bit;         /* in a task's `peers` */

    /* epochs */
    uint32_t peer_epoch;      /* 0: not known */
    uint64_t epochs;          /* what its frames have: its epoch, and ours */
    uint32_t nonces;          /* how many have been used */
    uint32_t opening_nonce;   /* of the SYN that was sent last; 0: none */
    uint32_t candidate_epoch; /* of another one that sent a SYN; 0: none */
    uint32_t candidate_nonce; /* what it must return before it is believed */
    uint32_t candidate_echo;  /* its own nonce */

    /* tags: names of the connections that own ours, and what the peer's mean */
    uint32_t tags[TAGS];
    uint32_t next_tag;
    struct definition definitions[TAGS];

    /* sending; first, cursor, end count places ever used */
    uint32_t next_seq;
    uint32_t acked;
    uint32_t base; /* what SYN and SYNACK tell: nothing up to it will ever be sent again */
    uint32_t first, cursor, end;
    uint32_t allowed; /* places that may be under way */
    uint32_t same_acks;
    uint32_t failures;
    uint32_t refusals; /* error RESULTs among the places */
    uint32_t awaited;  /* places whose acknowledgement completes an operation */
    /* has come, sure, and will be taken when there is time: mbcf_channel_take_noted; 0: none */
    uint32_t noted_ack;
    uint64_t noted_at_ns;
    uint32_t undecided; /* operations whose frames are acknowledged, but an error may still come */
    uint32_t pending;   /* operations whose RESULT is to come */
    uint32_t timed_seq; /* 0: none is being timed */
    uint64_t timed_at_ns;
    uint64_t timer_from_ns; /* the timeout counts from here */
    uint64_t quick_at_ns;
    uint64_t rto_ns, srtt_ns, deviation_ns;
    struct place places[WINDOW];

    /* receiving */
    uint32_t received;
    uint32_t owed; /* frames executed and not acknowledged */
    /* an ACK is to go at the end of this call, unless another frame carries it before */
    bool ack_now;
    bool unsure_sent; /* the last acknowledgement was UNSURE */
    uint32_t gap_acks;
    uint64_t owed_from_ns; /* the first of them */
    uint64_t ack_due_ns;
};

/* Free slots, in the order in which they fell free: a stale name meets a new owner as late as
 * possible. */
struct free_slots {
    uint16_t *slots;
    unsigned size; /* a power of two */
    unsigned first, count;
};

/*
 * The frames that most probably come next, made ready while no task waits, so that each is known by
 * a few words. That holds as long as nothing else happens: every function of core.h that changes
 * something forgets them, but for the operation and the two frames themselves (README, "Expected
 * frames").
 */
struct expected {
    /* the ACK of `channel` for the only frame under way, which completes this; NULL: none */
    struct operation *operation;
    struct connection *connection; /* of the operation */
    /* has sent last, is open, its tag is known, its channel stays clear; NULL: none */
    struct connection *sender;
    /* a request like the one before it, for the same task; NULL: none */
    struct channel *channel;
    struct mbcf_task *task;
    const struct definition *definition; /* of its tag */
    uint64_t request[4];                 /* its first bytes, up to seq */
};

struct mbcf {
    void *context; /* of mbcf_surroundings */
    struct mbcf_config config;
    struct mbcf_counters counters;
    uint64_t due_ns; /* never later than the first thing that is due */
    /* the space of a task whose memory has changed, and whose threads do not know yet; NULL: none
     */
    void *touched;
    uint8_t by_address[256]; /* node by the last byte of its address: the first of them; 0: none */
    struct expected expected;
    bool starved;                 /* a caller got -SSS_EAGAIN */
    bool scarce;                  /* because of frame buffers */
    struct sss_frame *loop[LOOP]; /* frames to the own node */
    uint32_t loop_first, loop_end;
    unsigned chores; /* farewells, CLOSEs and given-up segments that wait for a place */
    struct channel channels[SSS_NODES + 1];
    struct mbcf_task tasks[TASK_SLOTS];
    struct connection connections[MB_CONNECTIONS];
    struct operation operations[MB_OPERATIONS];
    struct segment segments[SEGMENTS];
    uint16_t free_connection_slots[MB_CONNECTIONS];
    uint16_t free_operation_slots[MB_OPERATIONS];
    struct free_slots free_connections;
    struct free_slots free_operations;
};

/* A received packet whose form is right. */
struct packet {
    uint8_t op, flags, status, tag;
    uint16_t length;
    uint16_t node, source, destination; /* node of the source; tasks */
    uint16_t op_id;
    uint32_t epoch, target_epoch, seq, ack;
    uint32_t request; /* RESULT */
    uint64_t key, address;
    const uint8_t *payload;
};

static inline struct mbcf_task *task_of(struct mbcf *mbcf, uint16_t id)
{
    unsigned index = id & 0xff;
    struct mbcf_task *task;

    if (index >= TASK_SLOTS || id == 0)
        return NULL;
    task = &mbcf->tasks[index];
    return task->id == id && !task->gone ? task : NULL;
}

static inline void expect_nothing(struct mbcf *mbcf)
{
    mbcf->expected.operation = NULL;
    mbcf->expected.sender = NULL;
    mbcf->expected.channel = NULL;
}

/* ---- sequence numbers: 32 bits, never 0, so the one behind 0xffffffff is 1 ---- */
static inline uint32_t seq_next(uint32_t seq)
{
    return seq + 1 == 0 ? 1 : seq + 1;
}
static inline bool seq_after(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}
