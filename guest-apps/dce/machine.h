/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the machines of both sides share: their counters, their packets that are no fragments, and
 * what they answer when asked for the next action.
 *
 * A machine is given events with the time at which they happen, in nanoseconds of any clock that
 * never goes back. After each event its actions are taken until it has none.
 */
#include "xmitq.h"

#define DCE_SECOND_NS UINT64_C(1000000000)
#define DCE_NEVER     UINT64_MAX

/* name, what it counts */
#define DCE_COUNTERS(X)                                                                            \
    X(fragments)        /* requests' or responses' fragments sent, those sent again included */    \
    X(fragments_resent) /* of those, how many were sent again */                                   \
    X(facks)            /* facks sent */                                                           \
    X(facks_received)                                                                              \
    X(pings)       /* the client's sent, the server's received */                                  \
    X(working)     /* the server's sent, the client's received */                                  \
    X(nocall)      /* the same */                                                                  \
    X(rejects)     /* the same */                                                                  \
    X(faults)      /* the same */                                                                  \
    X(acks)        /* the client's sent, the server's received */                                  \
    X(cancels)     /* the same */                                                                  \
    X(cancel_acks) /* the server's sent, the client's received */                                  \
    X(who_are_you) /* asked by the server, answered by the client */                               \
    X(duplicates)  /* fragments received again */                                                  \
    X(malformed)   /* packets that are no PDUs */                                                  \
    X(strays)      /* PDUs of other activities, calls or boots; unexpected types */                \
    X(dropped)  /* fragments too far ahead, contradictory, or of a call whose turn is not yet */   \
    X(overruns) /* packets that did not fit into the machine's queue */

enum dce_count {
#define X(name) DCE_COUNT_##name,
    DCE_COUNTERS(X)
#undef X
        DCE_COUNTS,
};
extern const char *const dce_count_names[DCE_COUNTS];

struct dce_counts {
    uint64_t of[DCE_COUNTS];
};

enum { DCE_OUTBOX = 8 };

struct dce_control {
    struct dce_packet packet;
    uint8_t bytes[DCE_HEADER + DCE_CONTROL_BODY];
};

/* Packets that wait to be sent. */
struct dce_outbox {
    struct dce_control controls[DCE_OUTBOX];
    unsigned first;
    unsigned count;
};

/* A place for one more, with room for its body; NULL: full. A packet lost here is lost as on a
 * wire. */
struct dce_control *dce_outbox_add(struct dce_outbox *outbox, struct dce_counts *counts);
/* The oldest one, whose bytes stay until the next event; false: none. */
bool dce_outbox_take(struct dce_outbox *outbox, struct dce_packet *packet);

enum dce_action {
    DCE_WAIT, /* nothing: until a packet comes, or the deadline */
    DCE_SEND, /* the packet */
    DCE_RUN,  /* the server's: the procedure of a call */
    DCE_DONE, /* the client's: the call has ended */
};

/* Time `interval` after `from`. */
static inline uint64_t dce_later(uint64_t from, uint64_t interval)
{
    return from + interval < from ? DCE_NEVER : from + interval;
}

static inline uint64_t dce_earlier(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}
