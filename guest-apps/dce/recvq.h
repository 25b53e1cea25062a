/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "marker.h"
#include "pdu.h"

/*
 * A stream that is coming in, fragment by fragment. What is in order grows from the front of the
 * buffer; what came early is kept at its end, so that no fragment needs memory of its own.
 */
enum {
    DCE_AHEAD = 96,        /* how far a fragment may be ahead of the first one that is missing */
    DCE_EARLY_SLOTS = 128, /* divides 65536: fragment numbers wrap around */
};

struct dce_early {
    uint32_t offset;
    uint16_t length;
    bool present;
};

struct dce_recvq {
    uint8_t *buffer;
    size_t room;
    size_t length;   /* in order */
    size_t early_at; /* where what came early begins */
    uint16_t next;   /* the first fragment that is missing */
    uint16_t last;
    uint16_t high_serial;
    bool last_known;
    bool complete;
    bool started;
    bool overflow; /* it is longer than there is room for: its bytes are not all here */
    unsigned early_count;
    struct dce_early early[DCE_EARLY_SLOTS]; /* by number modulo DCE_EARLY_SLOTS */
};

enum dce_insert {
    DCE_NEW,     /* kept */
    DCE_OLD,     /* a duplicate */
    DCE_DROPPED, /* too far ahead, or contradictory */
};

/* The room a buffer needs for streams of at most `bytes`. */
size_t dce_recvq_room(size_t bytes);
void dce_recvq_init(struct dce_recvq *queue, uint8_t *buffer, size_t room);
/* For the next stream. */
void dce_recvq_reset(struct dce_recvq *queue);
enum dce_insert dce_recvq_insert(struct dce_recvq *queue, const struct dce_pdu *pdu);
/* Whether a fragment that has just come is to be acknowledged: it asks, and is not the end. */
bool dce_recvq_asks(const struct dce_recvq *queue, const struct dce_pdu *pdu);

/* What the receiver says of itself in each fack. */
struct dce_offer {
    uint16_t window_kib;
    uint32_t max_fragment;
};
/* Fills in the body of `pdu`, at `body`, and its fragment number: what is there. Names `serial` as
 * what made it. */
void recvq_fack(const struct dce_recvq *queue, const struct dce_offer *offer, uint16_t serial,
                struct dce_pdu *pdu, uint8_t *body);
