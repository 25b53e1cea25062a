/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "machine.h"
#include "order.h"
#include "recvq.h"

/*
 * The server's side of all calls: a table of activities, each with its newest call (C706, chapter
 * 10). README.md has the table of its states. A place in the table may be given up only while
 * nothing of its call is running or kept, so the table limits how many callers are served.
 */
enum dce_server_state {
    DCE_SERVER_FREE,
    DCE_SERVER_WAY,   /* the client is asked which call it makes */
    DCE_SERVER_RECV,  /* fragments of the request are missing */
    DCE_SERVER_RUN,   /* the procedure runs, or is to */
    DCE_SERVER_FINAL, /* the response is kept */
    DCE_SERVER_IDLE,  /* its sequence number is remembered */
};

struct dce_interface {
    struct dce_uuid uuid;
    uint32_t version; /* minor << 16 | major; older minor versions are served, too */
    bool (*has_operation)(uint16_t opnum);
};

struct dce_server_settings {
    struct dce_xmitq_settings xmitq;
    struct dce_offer offer;
    bool big_endian;
    uint32_t boot_time;            /* not 0 */
    struct dce_uuid conv_activity; /* of its own calls; the last two bytes are replaced */
    const struct dce_interface *interfaces;
    unsigned interface_count;
    unsigned activities;
    size_t request_bytes; /* of the largest arguments */
    size_t response_bytes;
    uint64_t give_up_ns; /* who_are_you unanswered, a response unacknowledged */
    uint64_t half_ns;    /* half a request without another packet, at least */
    uint64_t idle_ns;    /* an activity without a call */
};

struct dce_activity {
    enum dce_server_state state;
    struct dce_uuid uuid;
    struct dce_peer peer;
    uint32_t seq;
    struct dce_pdu header;  /* of the request: what all answers repeat */
    struct dce_recvq recvq; /* the arguments */
    struct dce_xmitq xmitq;
    uint8_t *response; /* settings.response_bytes, the procedure's */
    bool queued;
    bool running;  /* its procedure has been handed out */
    bool orphaned; /* no call waits for its result */
    bool forget_when_sent;
    bool cancel_pending;
    uint64_t used_ns; /* the latest packet or action */
    uint64_t kept_ns; /* since when the client has been silent about the response */
    uint64_t check_ns;
    uint64_t way_ns; /* the first question */
    uint64_t way_at;
    uint64_t way_every;
    uint32_t way_seq;
};

struct dce_server {
    struct dce_server_settings settings;
    struct dce_activity *table;
    unsigned used;   /* places of the table that were ever taken */
    uint16_t *queue; /* activities with something to send or to run */
    unsigned queue_first, queue_count;
    struct dce_order order;       /* of the table, by deadline */
    struct dce_activity *present; /* of the latest packet; NULL: none */
    struct dce_outbox outbox;
    struct dce_counts counts;
};

/* Bytes of memory for `settings`. */
size_t dce_server_memory(const struct dce_server_settings *settings);
/* `memory` is all zeros, and aligned as malloc does it. */
void dce_server_init(struct dce_server *server, const struct dce_server_settings *settings,
                     uint8_t *memory);
void server_machine_packet(struct dce_server *server, uint64_t now, const struct dce_peer *from,
                           const struct dce_pdu *pdu);
/* The procedure of `activity` has ended: with DCE_OK and `length` bytes in activity->response, or
 * with a fault. */
void dce_server_result(struct dce_server *server, uint64_t now, struct dce_activity *activity,
                       uint32_t status, size_t length);
void dce_server_timeout(struct dce_server *server, uint64_t now);
static inline uint64_t dce_server_deadline(const struct dce_server *server)
{
    return dce_order_first(&server->order);
}
/* DCE_SEND (packet), DCE_RUN (activity) or DCE_WAIT. */
enum dce_action dce_server_next(struct dce_server *server, uint64_t now, struct dce_packet *packet,
                                struct dce_activity **activity);
/* Responses that are kept now. */
unsigned dce_server_kept(const struct dce_server *server);
