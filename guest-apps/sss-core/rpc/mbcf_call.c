/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a call over MBCF; the table is in mbcf_client.h. */
#include <rpc/copies.h>

#include "mbcf_client.h"
#include "sss/system.h"

enum {
    FULL_PAUSE_MOST_NS = 50 * 1000 * 1000,
};

/* ---- slots ---- */

/* A finished call's connection is the server's to discard; until then its request may still be
 * READ. */
static bool is_discarded(int ltn)
{
    struct mb_connection connection;

    return mb_connection(ltn, &connection) != 0 || connection.state == MB_CONNECTION_BROKEN;
}

static bool is_free(struct mbm_call *slot)
{
    if (slot->state == MBM_FREE)
        return true;
    if (slot->state != MBM_PARKED || slot->ack.state == MB_ACK_PENDING)
        return false;
    if (slot->ltn != 0) {
        if (!is_discarded(slot->ltn))
            return false;
        mb_close(slot->ltn);
        slot->ltn = 0;
    }
    slot->state = MBM_FREE;
    return true;
}

static struct mbm_call *free_slot(struct clntmb *client)
{
    if (is_free(client->latest))
        return client->latest;
    for (unsigned i = 0; i < client->slots; i++)
        if (is_free(&client->calls[i]))
            return &client->calls[i];
    return NULL;
}

/* Where one-way calls hold all slots, the server is given time to discard a connection. */
static struct mbm_call *await_slot(struct clntmb *client)
{
    uint64_t deadline = sss_now_ns() + client->options.connect_ns;

    for (;;) {
        uint32_t errors = *mbm_errors();
        struct mbm_call *slot = free_slot(client);
        uint64_t now;

        if (slot != NULL)
            return slot;
        now = sss_now_ns();
        if (now >= deadline)
            return NULL;
        sss_wait_word(mbm_errors(), errors, deadline - now);
    }
}

struct mbm_call *mbm_call_slot(struct clntmb *client)
{
    struct mbm_call *slot;

    /* One more than the depth: the call that empties the area of type 3b. */
    if (client->busy > client->options.depth)
        return NULL;
    slot = free_slot(client);
    return slot != NULL ? slot : await_slot(client);
}

struct mbm_call *mbm_call_find(struct clntmb *client, const struct rpc_call *call)
{
    if (client->busy == 0)
        return NULL;
    for (unsigned i = 0; i < client->slots; i++)
        if (client->calls[i].call == call)
            return &client->calls[i];
    return NULL;
}

/* ---- the end of a call ---- */

void mbm_call_release(struct clntmb *client, struct mbm_call *slot)
{
    if (slot->area_slot >= 0) {
        client->area_used[slot->area_slot] = 0;
        slot->area_slot = -1;
    }
    slot->call = NULL;
    client->busy--;
    mbm_enter(client, slot,
              slot->ltn != 0 || slot->ack.state == MB_ACK_PENDING ? MBM_PARKED : MBM_FREE);
}

void mbm_call_decide(struct clntmb *client, struct mbm_call *slot, enum clnt_stat status, int error,
                     enum rpc_execution execution)
{
    struct rpc_call *call = slot->call;

    client->execution = execution;
    mbm_call_release(client, slot);
    if (status == RPC_SUCCESS)
        call->status = RPC_SUCCESS;
    else
        rpc_call_fail(call, status, error);
}

void mbm_call_end_answered(struct clntmb *client, struct mbm_call *slot)
{
    slot->call->status = slot->outcome;
    mbm_call_release(client, slot);
}

/* ---- failures ---- */

unsigned mbm_connection_failure(int ltn, bool *broken)
{
    struct mb_connection connection;

    *broken = true;
    if (mb_connection(ltn, &connection) != 0)
        return MB_CLOSED | MB_MAYBE;
    *broken = connection.state == MB_CONNECTION_BROKEN;
    if (connection.error != 0)
        return connection.error;
    return *broken ? MB_CLOSED | MB_MAYBE : 0;
}

unsigned mbm_failure_of_call(const struct mbm_call *slot, unsigned status)
{
    bool closed = (status & ~(unsigned)MB_MAYBE) > MB_LAST_REMOTE;

    return slot->ack.state == MB_ACK_DONE || closed ? status | MB_MAYBE : status;
}

static void close_connection(struct mbm_call *slot)
{
    if (slot->ltn != 0)
        mb_close(slot->ltn);
    slot->ltn = 0;
}

static void send_later(struct clntmb *client, struct mbm_call *slot, uint64_t pause_ns)
{
    slot->due_ns = sss_now_ns() + pause_ns;
    mbm_enter(client, slot, MBM_TO_SEND);
}

void mbm_call_failed(struct clntmb *client, struct mbm_call *slot, unsigned status)
{
    unsigned plain = status & ~(unsigned)MB_MAYBE;
    /* A refusal by the other node is the proof that nothing was executed; and so is what never left
     * this one. */
    bool proven = (status & MB_MAYBE) == 0 &&
                  (plain <= MB_LAST_REMOTE || plain == MB_NO_NODE || plain == MB_NO_LTN);

    if (slot->state == MBM_ANSWERED) {
        mbm_call_end_answered(client, slot);
        return;
    }
    close_connection(slot);
    slot->execution = proven ? RPC_NOT_EXECUTED : RPC_MAYBE_EXECUTED;
    if (plain == MB_FULL || plain == MB_BUSY) {
        send_later(client, slot,
                   slot->interval_ns < FULL_PAUSE_MOST_NS ? slot->interval_ns : FULL_PAUSE_MOST_NS);
        return;
    }
    if (client->way->connects_per_call)
        client->connected = false; /* the binder may know another server by now */
    if (client->options.semantics == RPC_AT_LEAST_ONCE && slot->call->decode != NULL) {
        send_later(client, slot, slot->interval_ns);
        return;
    }
    mbm_call_decide(client, slot, proven ? RPC_CANTSEND : RPC_CANTRECV, MB_STATUS_BASE + (int)plain,
                    slot->execution);
}

/* ---- sending ---- */

/*
 * While the server certainly has room, no answer is needed to know that a request will not be
 * refused. Where it may have none, the ACK is asked for, and a request that was refused (MB_FULL)
 * goes again.
 */
static bool has_room(const struct clntmb *client, uint32_t need)
{
    uint32_t largest = client->ring_largest > need ? client->ring_largest : need;

    return client->ring_sent - client->ring_taken + need + largest <= client->bound.ring;
}

static int operate(struct clntmb *client, struct mbm_call *slot, struct mb_operation *operation,
                   bool ack)
{
    bool one_way = slot->call->decode == NULL;
    int error;

    if (ack) {
        slot->ack.state = MB_ACK_IDLE;
        operation->ack = &slot->ack;
        if (!one_way)
            operation->flags |= MB_LAZY; /* it may come with the reply */
    }
    error = mb_operate(operation);
    if (error == 0)
        mbm_enter(client, slot, !ack ? MBM_SENT : one_way ? MBM_ONE_WAY : MBM_SENT_ACK);
    return error;
}

/* -> 0 or a negative error, as of mb_operate. */
static int transmit(struct clntmb *client, struct mbm_call *slot)
{
    struct mb_operation operation = {.ltn = client->ltn};
    uint32_t need = 0;
    int error = client->way->prepare(client, slot, &operation, &need);

    if (error != 0)
        return error;
    slot->ring_start = client->ring_sent;
    error = operate(client, slot, &operation,
                    client->options.ack || (need != 0 && !has_room(client, need)));
    if (error != 0)
        return error;
    if (need == 0) {
        slot->ltn = operation.ltn;
        return 0;
    }
    client->ring_sent += need;
    if (need > client->ring_largest)
        client->ring_largest = need;
    return 0;
}

static void send_call(struct clntmb *client, struct mbm_call *slot)
{
    int error;

    slot->execution = RPC_MAYBE_EXECUTED;
    error = transmit(client, slot);
    rpc_copied(RPC_COPY_SEND, slot->length);
    slot->due_ns = MBM_NEVER;
    if (error != 0)
        mbm_call_failed(client, slot,
                        error <= -MB_STATUS_BASE ? (unsigned)(-error - MB_STATUS_BASE) : MB_NO_LTN);
    else if (client->options.semantics != RPC_EXACTLY_ONCE)
        slot->due_ns = sss_now_ns() + slot->interval_ns;
}

void mbm_call_send_again(struct clntmb *client, struct mbm_call *slot)
{
    slot->interval_ns *= 2;
    slot->call->retransmits++;
    client->retransmits++;
    close_connection(slot);
    if (!client->connected && !mbm_connect(client)) {
        send_later(client, slot, slot->interval_ns);
        return;
    }
    mbm_enter(client, slot, MBM_SENDING);
    send_call(client, slot);
}

void mbm_call_start(struct clntmb *client, struct mbm_call *slot)
{
    client->busy++;
    slot->interval_ns = client->first_interval_ns;
    client->latest = slot;
    if (client->connected) {
        slot->state = MBM_SENDING;
        send_call(client, slot);
        return;
    }
    slot->execution = RPC_NOT_EXECUTED;
    send_later(client, slot, 0); /* at least once: mbm_progress connects */
}
