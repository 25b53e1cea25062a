/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "marker.h"
#include "pdu.h"

/*
 * A stream that goes out as fragments, within the window that its receiver offers and in bursts
 * whose size a policy decides. Fragments are copied out of the source as there is room for them;
 * what was sent is kept until it is acknowledged.
 */
enum dce_policy {
    DCE_WINDOW, /* one fack at the end of each burst, which doubles the next: 1, 2, 4, 8, 8 */
    DCE_HALVES, /* facks in the middle of bursts, too: the rule of the OSF runtime */
    DCE_OSF,    /* that, and the OSF runtime's sizes of fragments and bursts */
    DCE_POLICIES,
};

enum {
    DCE_BURST_MOST = 8,
    DCE_OSF_FIRST = 1024, /* its first fragment of a request, with header */
    DCE_MUST_RECEIVE = 1464,
    DCE_WINDOW_MOST_KIB = 64,
    DCE_SLOTS = 64, /* no window has more fragments: 64 KiB / 1464 */
};

/* Where a packet goes to or comes from, in the host's byte order. */
struct dce_peer {
    uint32_t address;
    uint16_t port;
};

/* A packet that is to be sent: its header is written in front of its body when it is. */
struct dce_packet {
    struct dce_pdu pdu;
    uint8_t *bytes; /* DCE_HEADER bytes, then the body */
    struct dce_peer to;
};

typedef void dce_send(void *context, const struct dce_peer *to, const uint8_t *bytes,
                      size_t length);
/* Writes the header and hands the packet to `send`. All packets go through here. */
void xmitq_send(struct dce_packet *packet, dce_send *send, void *context);

struct dce_slot {
    uint16_t length; /* of the body */
    uint16_t serial; /* of its latest transmission */
    bool sent;       /* at least once */
    bool counted;    /* as outstanding */
    bool asked;      /* its latest transmission asks for a fack */
    bool acked;      /* by a selack */
    bool lost;       /* to be sent again before anything new */
};

struct dce_xmitq_settings {
    enum dce_policy policy;
    unsigned fragment; /* bytes with the header */
    uint64_t resend_ns;
};

struct dce_xmitq {
    struct dce_xmitq_settings settings;
    struct dce_pdu header; /* of all fragments */
    struct dce_peer to;
    uint8_t *memory; /* packets of settings.fragment bytes, `slots` of them */
    unsigned slots;
    const uint8_t *source;
    size_t total;
    size_t copied;
    bool all_queued;
    bool fragmented;
    uint16_t base;   /* the first fragment that is not acknowledged */
    uint16_t unsent; /* the first that was never sent */
    uint16_t next;   /* the first that is not queued */
    struct dce_slot slot[DCE_SLOTS];

    unsigned fragment;    /* bytes of those queued from now on */
    uint16_t serial;      /* of the next transmission */
    uint16_t fack_serial; /* what made the latest fack */
    bool offered;         /* a fack has named the window */
    unsigned window;      /* fragments */
    unsigned outstanding; /* sent, neither acknowledged nor lost */
    unsigned asks;        /* of those, how many ask for a fack */
    unsigned permits;     /* fragments that may still be sent of the present burst */
    bool burst_begun;
    unsigned
        until_middle; /* fragments of the burst until the one that asks beside the last; 0: none */
    unsigned burst;   /* of the policy `window`: the size of the present one */
    unsigned burst_most;
    unsigned good_facks; /* of the policy `osf`: until its bursts may grow */
    uint16_t awaited;    /* the serial of the latest fragment that asked */

    uint64_t resend_ns; /* the present interval */
    uint64_t sent_ns;   /* the latest transmission */
    unsigned resent;    /* transmissions beyond the first of a fragment */
};

/* Bytes of memory that a queue needs. */
size_t dce_xmitq_memory(const struct dce_xmitq_settings *settings);
void dce_xmitq_init(struct dce_xmitq *queue, const struct dce_xmitq_settings *settings,
                    uint8_t *memory);
/* Begins a stream; `source` must stay until it has ended. */
void dce_xmitq_start(struct dce_xmitq *queue, uint64_t now, const struct dce_pdu *header,
                     const struct dce_peer *to, const uint8_t *source, size_t length);
/* Queues one more fragment, if there is room in the window and anything left; false: no. */
bool dce_xmitq_fill(struct dce_xmitq *queue);
/* The next fragment that may be sent, as a packet; false: none. */
bool dce_xmitq_next(struct dce_xmitq *queue, uint64_t now, struct dce_packet *packet);
/* A fack; or a nocall, which answers a ping that was sent after all fragments: what it does not
 * name is lost. `fack` NULL: it has no body. False: it is ignored. */
bool dce_xmitq_fack(struct dce_xmitq *queue, uint16_t fragment, const struct dce_fack *fack,
                    bool is_nocall);
/* Its receiver has all. */
void dce_xmitq_done(struct dce_xmitq *queue);
/* Its receiver seems to have lost what was sent: sends again what is kept. */
void dce_xmitq_again(struct dce_xmitq *queue);
/* The resend timer is due: sends the head again, and takes its time next. */
void dce_xmitq_timeout(struct dce_xmitq *queue);
/* When that is; UINT64_MAX: never. */
uint64_t dce_xmitq_deadline(const struct dce_xmitq *queue);

/* Everything has been sent, and nothing waits to be sent again. */
bool dce_xmitq_all_sent(const struct dce_xmitq *queue);
/* Nothing is kept. */
bool dce_xmitq_is_empty(const struct dce_xmitq *queue);

/* The parts of queueing a fragment, which are steps of their own. */
void dce_copy(uint8_t *to, const uint8_t *from, size_t length);
void xmitq_append(struct dce_xmitq *queue, size_t length);
