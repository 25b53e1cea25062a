/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "machine.h"
#include "recvq.h"

/*
 * The client's side of the calls of one activity, one at a time (C706, chapter 10). README.md has
 * the table of its states.
 */
enum dce_client_state {
    DCE_CLIENT_IDLE,
    DCE_CLIENT_XMIT,  /* fragments of the request wait for facks */
    DCE_CLIENT_RECV,  /* all sent; the response is awaited */
    DCE_CLIENT_FINAL, /* the call has ended; the server does not know yet */
};

struct dce_client_settings {
    struct dce_xmitq_settings xmitq;
    struct dce_offer offer;
    bool big_endian;
    struct dce_uuid activity;
    struct dce_uuid space; /* of this process, for who_are_you2 */
    struct dce_peer server;
    uint32_t seq; /* of the first call */
    uint64_t ping_ns;
    uint64_t ack_delay_ns;
    uint64_t give_up_ns;
    uint64_t broadcast_ns;
    uint64_t cancel_ns;
};

/* What is called, and how: DCE_IDEMPOTENT, DCE_MAYBE, DCE_BROADCAST | DCE_IDEMPOTENT; 0: at most
 * once. */
struct dce_operation {
    struct dce_uuid object;
    struct dce_uuid interface;
    uint32_t version;
    uint16_t opnum;
    uint8_t semantics;
};

struct dce_client {
    struct dce_client_settings settings;
    enum dce_client_state state;
    struct dce_operation operation;
    uint32_t seq;       /* of the present or latest call */
    bool called;        /* there was one */
    uint32_t boot_time; /* the server's; 0: not known */
    uint16_t interface_hint, activity_hint;
    struct dce_peer server;
    struct dce_xmitq xmitq;
    struct dce_recvq recvq; /* the results, once the call has ended with DCE_OK */
    struct dce_outbox outbox;
    struct dce_counts counts;

    bool done; /* the end of the call has not been taken yet */
    uint32_t status;
    bool rejected; /* the status came in a reject */
    bool response_big_endian;

    uint64_t began_ns;
    bool waiting;                 /* something was sent that is to be answered */
    uint64_t waiting_ns;          /* since when */
    uint64_t ping_at, ping_every; /* DCE_NEVER: not now */
    uint64_t ack_at;
    bool cancelling;
    bool cancel_is_pending; /* the server says so, in the response */
    uint32_t cancel_id;
    uint64_t cancel_at;
};

/* `memory`: dce_xmitq_memory; `results`: dce_recvq_room of the largest results. */
void dce_client_init(struct dce_client *client, const struct dce_client_settings *settings,
                     uint8_t *memory, uint8_t *results, size_t results_room);
/* Begins a call. The arguments must stay until it has ended. */
void dce_client_call(struct dce_client *client, uint64_t now, const struct dce_operation *operation,
                     const uint8_t *arguments, size_t length);
/* A PDU has come. */
void client_machine_packet(struct dce_client *client, uint64_t now, const struct dce_peer *from,
                           const struct dce_pdu *pdu);
/* The deadline has passed. */
void dce_client_timeout(struct dce_client *client, uint64_t now);
uint64_t dce_client_deadline(const struct dce_client *client);
/* Asks the server to cancel the present call. */
void dce_client_cancel(struct dce_client *client, uint64_t now);
/* DCE_SEND, DCE_DONE (once a call: status and results are there) or DCE_WAIT. */
enum dce_action dce_client_next(struct dce_client *client, uint64_t now, struct dce_packet *packet);
