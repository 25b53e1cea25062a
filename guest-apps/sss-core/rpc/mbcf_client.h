/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A client handle over MBCF, as its parts know it: mbcf_client.c makes calls, mbcf_connect.c
 * connections. */
#include <rpc/mbcf.h>

#include "mbcf_messages.h"

/* One call under way. Its message lies behind room for the head of a TASKQUE write, so that it goes
 * out in one piece. */
struct mbm_call {
    struct rpc_call *call; /* NULL: nobody waits for it */
    struct mb_ack ack;
    bool ack_wanted; /* and not there yet */
    bool busy;
    bool attention;
    bool answered; /* the reply has come before the ACK: what it said is in `outcome` */
    enum clnt_stat outcome;
    bool refused;        /* the latest attempt certainly did not reach the server */
    int ltn;             /* types 1, 2, 12: its own connection; 0: none */
    int area_slot;       /* type 3b: its place in the area, -1: none */
    uint32_t length;     /* of the message */
    uint64_t ring_start; /* of its record, in bytes ever sent on this connection */
    uint64_t due_ns;     /* when to send it again; UINT64_MAX: not */
    uint64_t interval_ns;
    struct mbm_head *head;
    char *message;
};

struct clntmb {
    CLIENT client;
    struct rpc_call *waiting;
    struct clntmb_options options;
    rpcprog_t program;
    rpcvers_t version;
    uint16_t node;
    uint16_t server_task; /* whose TASKQUE */
    uint32_t next_xid;
    uint64_t key; /* ours, that the server answers with */
    struct mb_fifo *replies;
    uint32_t errors_seen;

    /* types 3, 3a, 3b */
    bool connected;
    int taskque_ltn;
    int ltn;
    struct mbm_bound bound;
    uint64_t ring_sent;  /* bytes of records ever sent on this connection */
    uint64_t ring_taken; /* of them, certainly taken out */
    uint32_t ring_largest;
    /* type 3b: ring_start + 1 of the one-way call in each place, 0 free */
    uint64_t area_used[MBCF_DEPTH_MOST];

    unsigned slots;
    unsigned busy;      /* of them */
    unsigned attention; /* of them, wait for an ACK or are to be sent again */
    struct mbm_call *calls;
    struct mbm_call *latest;

    unsigned retransmits; /* of all calls */
    struct rpc_err error;
    enum rpc_execution execution;
    const char *reason;
};

/* Makes the connection again or for the first time. MB_OK, or a status as of an operation, or
 * SSS_ETIMEDOUT + MBM_SYSTEM. */
bool mbm_connect(struct clntmb *client);
void mbm_disconnect(struct clntmb *client);
