/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A client handle over MBCF, as its parts know it, each of which uses only those above it:
 *
 *   mbcf_connect.c          finds the server and binds to it
 *   mbcf_call.c             the states of a call
 *   mbcf_progress.c         what arrives and what is due
 *   mbcf_ring.c             what the types share whose connection stays (3, 3a, 3b)
 *   mbcf_way_taskque.c, mbcf_way_fifo.c, mbcf_way_signal.c   how requests of each type go out
 *   mbcf_client.c           the functions of CLIENT
 */
#include <rpc/mbcf.h>

#include "mbcf_messages.h"

#define MBM_NEVER UINT64_MAX

/*
 * The state of a slot is what is still to come for its call.
 *
 *   state      on                                                  goes to
 *   FREE       a call starts                                       SENDING
 *              ... and no server is connected (at least once)      TO_SEND
 *   SENDING    sent: a reply is to come                            SENT
 *              sent: a reply and an ACK are to come                SENT_ACK
 *              sent one-way: an ACK is to come                     ONE_WAY
 *              refused, or it failed                               TO_SEND or over
 *   TO_SEND    it is due                                           SENDING
 *              an earlier attempt's reply comes                    over
 *   SENT       the reply comes                                     over
 *              a failure, or no reply until due                    TO_SEND or over; SENDING
 *   SENT_ACK   the ACK comes                                       SENT
 *              the reply comes                                     ANSWERED
 *              a failure, or no reply until due                    TO_SEND or over; SENDING
 *   ANSWERED   the ACK comes, or a failure instead                 over
 *   ONE_WAY    the ACK comes                                       over
 *              a failure                                           TO_SEND or over
 *   over       nothing uses the slot any longer                    FREE
 *              its connection is still the server's to discard,
 *              or its ACK may still be written                     PARKED
 *   PARKED     both have ended                                     FREE
 *
 * A call is abandoned from any state: it is over then.
 */
enum mbm_state {
    MBM_FREE,
    MBM_PARKED,
    MBM_SENDING, /* this and all that follow: a call is under way */
    MBM_SENT,    /* to TO_SEND: may have a time at which it is sent again */
    MBM_SENT_ACK,
    MBM_TO_SEND,
    MBM_ANSWERED, /* this and ONE_WAY: nothing but the ACK is waited for */
    MBM_ONE_WAY,
};

/* One call under way. Its message is behind room for the head of a TASKQUE write, so that it goes
 * out in one piece. */
struct mbm_call {
    enum mbm_state state;
    struct rpc_call *call; /* NULL: the slot is free or parked */
    struct mb_ack ack;
    enum clnt_stat outcome;       /* ANSWERED: what the reply said */
    enum rpc_execution execution; /* what is known if the call ends now */
    int ltn;                      /* a connection of its own; 0: none */
    int area_slot;                /* type 3b: its place in the area, -1: none */
    uint32_t length;              /* of the message */
    uint64_t ring_start;          /* of its record, in bytes ever sent on this connection */
    uint64_t due_ns;              /* TO_SEND, SENT, SENT_ACK: when to send it (again) */
    uint64_t interval_ns;
    struct mbm_head *head;
    char *message;
    struct mbm_place_message place; /* type 2: where the message is */
};

struct clntmb {
    CLIENT client;
    const struct mbm_way *way;
    struct rpc_call *waiting;
    struct clntmb_options options;
    uint32_t call_most; /* bytes of the longest call message */
    rpcprog_t program;
    rpcvers_t version;
    uint16_t node;
    uint16_t server_task; /* whose TASKQUE */
    uint32_t next_xid;
    uint64_t key; /* ours, that the server answers with */
    struct mb_fifo *replies;
    uint32_t errors_seen;
    bool connected;

    /* of a connection that stays; else 0 */
    int taskque_ltn;
    int ltn;
    struct mbm_bound bound;
    uint64_t ring_sent;  /* bytes of records ever sent on this connection */
    uint64_t ring_taken; /* of them, certainly taken out */
    uint32_t ring_largest;
    /* type 3b: ring_start + 1 of the one-way call in each place, 0 free */
    uint64_t area_used[MBCF_DEPTH_MOST];

    unsigned slots;
    unsigned busy;    /* of them, have a call under way */
    unsigned watched; /* of them, are in a state that mbm_progress has to look at */
    enum mbm_state first_watched;
    uint64_t first_interval_ns; /* until a call is sent again, doubling */
    struct mbm_call *calls;
    struct mbm_call *latest;

    unsigned retransmits; /* of all calls */
    struct rpc_err error;
    enum rpc_execution execution;
    const char *refusal; /* why connecting has failed */
};

/* How the requests of one type reach the server. */
struct mbm_way {
    bool connects_per_call; /* each call has a connection of its own; else one stays */
    enum mbm_key key;       /* which of this task's keys the server gets */
    uint32_t call_most;     /* bytes of the longest call message */
    uint32_t message_default;
    /* Binds to the server that has been found; NULL: nothing is needed. */
    bool (*bind)(struct clntmb *client);
    /* Fills in the operation that sends the slot's message, and the bytes that it takes of the ring
     * that the server has for this client (0: the operation makes a connection for the call).
     * -> 0 or a negative error, as of mb_operate. */
    int (*prepare)(struct clntmb *client, struct mbm_call *slot, struct mb_operation *operation,
                   uint32_t *ring_bytes);
    /* Something of this task has failed: calls mbm_call_failed for the calls concerned. */
    void (*find_failures)(struct clntmb *client);
};
extern const struct mbm_way mbm_way_taskque, mbm_way_read, mbm_way_taskque_or_read, mbm_way_fifo,
    mbm_way_signal;

/* A call is under way. */
static inline bool mbm_is_busy(const struct mbm_call *slot)
{
    return slot->state >= MBM_SENDING;
}
/* It may have been sent: a failure of the connection concerns it. */
static inline bool mbm_may_fail(const struct mbm_call *slot)
{
    return slot->state > MBM_SENDING;
}

static inline bool mbm_is_watched(const struct clntmb *client, enum mbm_state state)
{
    return state >= client->first_watched;
}

static inline void mbm_enter(struct clntmb *client, struct mbm_call *slot, enum mbm_state state)
{
    client->watched -= mbm_is_watched(client, slot->state);
    client->watched += mbm_is_watched(client, state);
    slot->state = state;
}

/* ---- mbcf_connect.c ---- */

/* Connects again or for the first time. False, with the reason in the handle. */
bool mbm_connect(struct clntmb *client);
void mbm_disconnect(struct clntmb *client);
/* The `bind` of types whose connection stays: asks the server over its TASKQUE where requests go,
 * and connects to that task. */
bool mbm_bind(struct clntmb *client);

/* ---- mbcf_call.c ---- */

/* A slot for a call; NULL: the handle's depth is used up. */
struct mbm_call *mbm_call_slot(struct clntmb *client);
struct mbm_call *mbm_call_find(struct clntmb *client, const struct rpc_call *call);
/* Sends the encoded call in a slot for the first time. */
void mbm_call_start(struct clntmb *client, struct mbm_call *slot);
/* A status of MBCF, MB_MAYBE included, for one call. */
void mbm_call_failed(struct clntmb *client, struct mbm_call *slot, unsigned status);
/* The first failure without an ACK of a connection, or that it is broken; 0: neither. */
unsigned mbm_connection_failure(int ltn, bool *broken);
/* The status of a failed connection for one call: a request whose operation was executed may have
 * run, whatever the connection met afterwards. */
unsigned mbm_failure_of_call(const struct mbm_call *slot, unsigned status);
/* The call is over; the slot is free or parked. */
void mbm_call_release(struct clntmb *client, struct mbm_call *slot);
void mbm_call_decide(struct clntmb *client, struct mbm_call *slot, enum clnt_stat status, int error,
                     enum rpc_execution execution);
/* The outcome that the reply brought holds, whatever the ACK says. */
void mbm_call_end_answered(struct clntmb *client, struct mbm_call *slot);
void mbm_call_send_again(struct clntmb *client, struct mbm_call *slot);

/* ---- mbcf_progress.c ---- */

/* For `find_failures`: everything that came before a connection broke counts first. */
void mbm_take_all(struct clntmb *client);
/* `progress` of struct clnt_async_ops. */
unsigned mbm_progress(CLIENT *handle, struct sss_wait words[SSS_WAITS], uint64_t *due_ns);

/* ---- mbcf_ring.c ---- */

/* The `find_failures` of types whose connection stays. */
void mbm_ring_find_failures(struct clntmb *client);
