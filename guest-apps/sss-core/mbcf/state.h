/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The state of one node's MBCF and what the files of this folder know of each other. Nothing
 * outside includes this.
 *
 *   channel.c     sequence, acknowledgement, retransmission, epochs
 *   execute.c     requests of peers, on memory of tasks
 *   fifo.c        the rings of FIFOs, TASKQUEs and signal queues
 *   connection.c  tasks, keys, connections and how they end
 *   operate.c     requests of own tasks, and their results
 *   mbcf.c        the node: start, receiving, time, looking at it
 */
#include "core.h"

enum {
#define MBCF_COUNT(name, value) name = (value),
#include "limits.def"
    TASK_SLOTS = 80,  /* the well-known ones, then SSS_TASKS */
    WELL_KNOWN = 16,  /* task indices below this are given by mbcf_task_open_as only */
    SEGMENTS = 64,    /* FIFO segments of several packets that are arriving */
    LOOP = 256,       /* frames to the own node that have not been taken */
    TIMED_EVERY = 16, /* frames of which one is timed */
};

#define MBCF_TIME_NS(name, ns) static const uint64_t name = (ns);
#include "limits.def"
/* How long to wait for frame buffers that others hold. */
static const uint64_t SCARCE_NS = 1000000;
#define NEVER UINT64_MAX

/* ---- names in op_id: bit 31 tells a connection from an operation ---- */
enum { NAME_SLOT_BITS = 10, NAME_SLOT = (1 << NAME_SLOT_BITS) - 1 };
#define NAME_CONNECTION 0x80000000u

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

struct task {
    uint16_t id; /* 0: free */
    uint8_t generation;
    bool gone;         /* only waits until `farewells` have been queued */
    uint8_t fifo_hint; /* the FIFO and the handler that were used last */
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
    struct channel *channel; /* to `node` */
    uint32_t generation;
    uint32_t name;      /* as in op_id */
    uint32_t peer_name; /* the peer's name for its end, 0 unknown */
    uint32_t error;
    uint32_t reason; /* why it is broken */
    uint32_t unfinished;
    uint32_t undecided; /* of those: acknowledged, but an error may still come */
    uint64_t key;
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
    bool give_up;   /* the peer is still to be told that the segment is void */
    uint8_t failed; /* while `sending`: the status it has ended with */
};

struct operation {
    uint32_t name; /* 0: free */
    uint32_t generation;
    uint32_t connection; /* its name */
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
    uint32_t name; /* whose it is: as in op_id; 0 for RESULT and CLOSE */
    bool sent;
    bool decisive;  /* may execute its operation, not only prepare it */
    bool completes; /* its acknowledgement completes its operation */
    bool refuses;   /* a RESULT with an error */
};

struct channel {
    bool known;
    uint8_t state; /* enum mbcf_channel_state */
    uint16_t node;
    bool own; /* the own node: no wire between */
    /* the header of every frame to it; two bytes more, to be copied as words */
    uint8_t ethernet[16];
    /* what frames from it have in its place: its address and the EtherType; the own node: zero, for
     * none comes */
    uint8_t from[8];
    uint64_t ack_head[8]; /* of an ACK to it, as far as it is always the same for its epoch */
    uint64_t bit;         /* in a task's `peers` */

    /* epochs */
    uint32_t peer_epoch;      /* 0: not known */
    uint32_t candidate_epoch; /* a new incarnation that has not yet proven to know ours */
    uint32_t candidate_received;
    uint32_t past[PAST_EPOCHS];
    unsigned past_next;

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

struct mbcf {
    struct mbcf_surroundings to;
    struct mbcf_config config;
    struct mbcf_counters counters;
    uint64_t due_ns; /* never later than the first thing that is due */
    /* the space of a task whose memory has changed, and whose threads do not know yet; NULL: none
     */
    void *touched;
    uint16_t own_half;            /* epoch_half of the own epoch */
    bool starved;                 /* somebody got -SSS_EAGAIN */
    bool scarce;                  /* because of frame buffers */
    struct sss_frame *loop[LOOP]; /* frames to the own node */
    uint32_t loop_first, loop_end;
    unsigned chores; /* farewells, CLOSEs and given-up segments that wait for a place */
    struct channel channels[SSS_NODES + 1];
    struct task tasks[TASK_SLOTS];
    struct connection connections[MB_CONNECTIONS];
    struct operation operations[MB_OPERATIONS];
    struct segment segments[SEGMENTS];
    uint16_t free_connection_slots[MB_CONNECTIONS];
    uint16_t free_operation_slots[MB_OPERATIONS];
    struct free_slots free_connections;
    struct free_slots free_operations;
};

/* What the world around does: a function that is known when this is compiled (in the kernel), else
 * that of a pointer. */
#ifdef MBCF_SURROUNDINGS
#include MBCF_SURROUNDINGS
#define TO(mbcf, function) surroundings_##function
#else
#define TO(mbcf, function) (mbcf)->to.function
#endif

/* A received packet whose form is right. */
struct packet {
    uint8_t op, flags, status;
    uint16_t length;
    uint16_t node, source, destination; /* node of the source; tasks */
    uint16_t ack_epoch;
    uint32_t epoch, seq, ack, op_id;
    uint64_t key, address;
    const uint8_t *payload;
};

/* ---- channel.c ---- */
/* What nearly all frames are, on the shortest way. false: it is none of them, and the long way is
 * open. */
bool mbcf_channel_receive_quick(struct mbcf *mbcf, const uint8_t *frame, size_t length,
                                uint64_t now_ns);
void mbcf_channel_receive(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                          uint64_t now_ns);
void mbcf_channel_timeout(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns);
/*
 * An acknowledgement that nobody waits for is only noted when it comes with a frame that brings
 * something else, and taken when the next request has gone out, so that neither is late. Whatever
 * looks at what is unfinished takes it first. Taking it may queue what waits for a place: not to be
 * called in the middle of that.
 */
void mbcf_channel_take_noted(struct mbcf *mbcf, struct channel *channel);
uint64_t mbcf_channel_due(const struct mbcf *mbcf, const struct channel *channel);
/* What a place is to carry. */
struct header {
    uint8_t op, flags, status;
    uint16_t source, destination;
    uint16_t length;
    uint32_t op_id;
    uint64_t key, address;
    bool decisive;
    bool completes;
};
/* Takes `frame`, whose payload is there, into the window and sends it as soon as that is possible.
 */
void mbcf_channel_queue(struct mbcf *mbcf, struct channel *channel, struct sss_frame *frame,
                        const struct header *header, uint64_t now_ns);
/* The same for a frame that can go at once and is complete but for seq and ack: `channel_is_clear`.
 */
void mbcf_channel_send_quick(struct mbcf *mbcf, struct channel *channel, struct sss_frame *frame,
                             uint32_t name, bool awaited, uint64_t now_ns);
/* Nothing waits in front of a new request, and nothing about it is special. */
static inline bool channel_is_clear(const struct channel *channel)
{
    uint32_t used = channel->end - channel->first;

    return channel->state == MBCF_OPEN && channel->cursor == channel->end &&
           used < REQUEST_PLACES && used < channel->allowed && channel->refusals == 0 &&
           !channel->own;
}
static inline bool channel_has_request_place(const struct channel *channel)
{
    return channel->end - channel->first < REQUEST_PLACES;
}
/* Nothing more will be sent before the acknowledgement has come, which then has a half-duplex wire
 * to itself. */
static inline bool is_last_place(const struct channel *channel)
{
    return channel->end - channel->first == REQUEST_PLACES - 1;
}
static inline bool channel_has_result_place(const struct channel *channel)
{
    return channel->end - channel->first < WINDOW;
}

/* ---- execute.c ---- */
/* false: there is no place for the result that it needs; nothing was done. */
bool mbcf_execute(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                  uint64_t now_ns);

/* WRITE, FIFO or SIGNAL of one packet whose frame is in its turn. false: nothing was done,
 * something is special about it. */
bool mbcf_execute_quick(struct mbcf *mbcf, const struct channel *channel, const uint8_t *header,
                        uint16_t length);

/* ---- fifo.c; all but init return enum mb_status ---- */
int mbcf_ring_init(struct mbcf *mbcf, struct task *task, struct ring *ring, uint64_t address,
                   uint64_t bytes);
/* A whole record: `head`, then `data`. */
int mbcf_ring_put(struct mbcf *mbcf, struct task *task, struct ring *ring, struct mb_record *record,
                  const void *head, uint32_t head_length, const void *data, uint32_t length);
/* The same, complete, where it needs no skipping and crosses no page. false: nothing was done. */
bool mbcf_ring_put_quick(struct mbcf *mbcf, const struct task *task, struct ring *ring,
                         const struct mb_record *record, const uint8_t *data);
/* The same for the signal queue, whose records have a head. */
bool mbcf_ring_put_signal(struct mbcf *mbcf, struct task *task, const struct mb_record *record,
                          uint64_t handler, unsigned arguments, const uint8_t *payload);
int mbcf_ring_part(struct mbcf *mbcf, struct task *task, unsigned fifo,
                   const struct packet *packet);
/* Voids what has come of segments: of one source task (0: any) of a node. */
void mbcf_segments_void(struct mbcf *mbcf, uint16_t node, uint16_t source);
void mbcf_segments_forget(struct mbcf *mbcf, const struct task *task, int fifo);
uint32_t mbcf_ring_used(const struct mbcf *mbcf, const struct task *task, const struct ring *ring);

/* ---- connection.c ---- */
struct connection *mbcf_connection_new(struct mbcf *mbcf, enum connection_origin origin,
                                       uint16_t task, uint16_t node, uint16_t peer);
void mbcf_connection_free(struct mbcf *mbcf, struct connection *connection);
/* Ends it, keeping the reason for its owner; one made by a peer's TASKQUE write is discarded at
 * once. */
void mbcf_connection_break(struct mbcf *mbcf, struct connection *connection, int status);
void mbcf_connection_error(struct mbcf *mbcf, struct connection *connection, int status);
void mbcf_connections_break(struct mbcf *mbcf, uint16_t node, uint16_t peer, int status);
void mbcf_connection_closed(struct mbcf *mbcf, const struct packet *packet);
/* An operation without a result of its own has been acknowledged. */
void mbcf_connection_done(struct mbcf *mbcf, uint32_t name);
/* What was undecided on the connections to a node was executed (MB_OK), or nobody knows. */
void mbcf_connections_decide(struct mbcf *mbcf, uint16_t node, int status);
uint16_t mbcf_connection_ltn(const struct mbcf *mbcf, const struct connection *connection);
struct connection *mbcf_connection_named(struct mbcf *mbcf, uint32_t name);
/* Queues what waited for a place: farewells, CLOSEs. */
void mbcf_connection_chores(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns);
void mbcf_farewells_forget(struct mbcf *mbcf, uint16_t node);

static inline struct task *task_of(struct mbcf *mbcf, uint16_t id)
{
    unsigned index = id & 0xff;
    struct task *task;

    if (index >= TASK_SLOTS || id == 0)
        return NULL;
    task = &mbcf->tasks[index];
    return task->id == id && !task->gone ? task : NULL;
}

/* The open connection of a task, or NULL. */
static inline struct connection *open_connection(struct mbcf *mbcf, uint16_t task, int ltn)
{
    unsigned index = ((unsigned)ltn & NAME_SLOT) - 1;
    struct connection *connection = &mbcf->connections[index % MB_CONNECTIONS];

    return connection->ltn == ltn && connection->task == task &&
                   connection->phase == CONNECTION_OPEN && ltn != 0
               ? connection
               : NULL;
}

/* The same for one that need not be open, and why not in *status. */
struct connection *mbcf_connection_of(struct mbcf *mbcf, uint16_t task, int ltn, int *status);
void mbcf_connection_describe(const struct connection *connection, struct mb_connection *info);
/* The peer has refused an operation of it: after some refusals there is no connection. */
void mbcf_connection_refused(struct mbcf *mbcf, struct connection *connection, int status);

/* ---- operate.c ---- */
void mbcf_result(struct mbcf *mbcf, const struct packet *packet);
void mbcf_operations_fail(struct mbcf *mbcf, uint16_t node, int status);
/* What may have failed without its error ever coming. */
void mbcf_operations_doubt(struct mbcf *mbcf, uint16_t node, int status);
void mbcf_operations_forget(struct mbcf *mbcf, struct task *task);
/* Its last frame has been acknowledged. */
void mbcf_operation_done(struct mbcf *mbcf, uint32_t name);
/* It has, by an ack that was UNSURE: of an operation, or (bit 31) of a connection. */
void mbcf_undecided(struct mbcf *mbcf, uint32_t name);
/* Those of a node have succeeded. */
void mbcf_operations_decide(struct mbcf *mbcf, uint16_t node);
void mbcf_operation_sent(struct mbcf *mbcf, uint32_t name);
void mbcf_operation_chores(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns);

/* ---- mbcf.c ---- */
/* To be called last by everything that may send: frames to the own node are executed then. */
void mbcf_settle(struct mbcf *mbcf, uint64_t now_ns);
void mbcf_wake(struct mbcf *mbcf);
/* A frame to the own node. */
void mbcf_loop(struct mbcf *mbcf, struct sss_frame *frame);
/* Places of the channel, or operations, fell free. */
void mbcf_window_open(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns);
struct sss_frame *mbcf_frame_get(struct mbcf *mbcf);
static inline uint16_t mbcf_slot_take(struct free_slots *free) /* there must be one */
{
    free->count--;
    return free->slots[free->first++ & (free->size - 1)];
}

static inline void mbcf_slot_give(struct free_slots *free, uint16_t slot)
{
    free->slots[(free->first + free->count++) & (free->size - 1)] = slot;
}

static inline void due_by(struct mbcf *mbcf, uint64_t at_ns)
{
    if (at_ns < mbcf->due_ns)
        mbcf->due_ns = at_ns;
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

/* The half of an epoch that fits into ack_epoch, where 0 has another meaning. */
static inline uint16_t epoch_half(uint32_t epoch)
{
    return (uint16_t)epoch == 0 ? 0xffff : (uint16_t)epoch;
}
