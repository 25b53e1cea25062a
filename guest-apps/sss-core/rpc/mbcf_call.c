/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a call over MBCF; the table is in mbcf_client.h. */
#include <rpc/copies.h>

#include "mbcf_client.h"
#include "sss/system.h"

enum {
    FULL_PAUSE_MOST_NS = 50 * 1000 * 1000,
};

static struct clntmb *of(const CLIENT *client)
{
    return client->cl_private;
}

static bool is_watched(const struct clntmb *client, enum mbm_state state)
{
    return state >= client->first_watched;
}

static void enter(struct clntmb *client, struct mbm_call *slot, enum mbm_state state)
{
    client->watched -= is_watched(client, slot->state);
    client->watched += is_watched(client, state);
    slot->state = state;
}

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

static struct mbm_call *find_xid(struct clntmb *client, uint32_t xid)
{
    if (client->latest->call != NULL && client->latest->call->xid == xid)
        return client->latest;
    for (unsigned i = 0; i < client->slots; i++)
        if (client->calls[i].call != NULL && client->calls[i].call->xid == xid)
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
    enter(client, slot,
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

/* The outcome that the reply brought holds, whatever the ACK says. */
static void end_answered(struct clntmb *client, struct mbm_call *slot)
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
    enter(client, slot, MBM_TO_SEND);
}

void mbm_call_failed(struct clntmb *client, struct mbm_call *slot, unsigned status)
{
    unsigned plain = status & ~(unsigned)MB_MAYBE;
    /* A refusal by the other node is the proof that nothing was executed; and so is what never left
     * this one. */
    bool proven = (status & MB_MAYBE) == 0 &&
                  (plain <= MB_LAST_REMOTE || plain == MB_NO_NODE || plain == MB_NO_LTN);

    if (slot->state == MBM_ANSWERED) {
        end_answered(client, slot);
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
        enter(client, slot, !ack ? MBM_SENT : one_way ? MBM_ONE_WAY : MBM_SENT_ACK);
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

static void send_again(struct clntmb *client, struct mbm_call *slot)
{
    slot->interval_ns *= 2;
    slot->call->retransmits++;
    client->retransmits++;
    close_connection(slot);
    if (!client->connected && !mbm_connect(client)) {
        send_later(client, slot, slot->interval_ns);
        return;
    }
    enter(client, slot, MBM_SENDING);
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

/* ---- what arrives ---- */

static void take_reply(struct clntmb *client, char *reply, uint32_t length)
{
    struct mbm_call *slot = length >= MBM_REPLY_HEADER ? find_xid(client, mbm_word(reply, 0))
                                                       : NULL;
    struct rpc_call *call;
    XDR xdrs;

    if (slot == NULL || slot->state == MBM_ANSWERED)
        return; /* nothing waits for it any longer */
    call = slot->call;
    if (call->decode == NULL)
        return;
    client->execution = RPC_EXECUTED;
    if (slot->ring_start > client->ring_taken)
        /* requests are taken out in order: all before this one are out */
        client->ring_taken = slot->ring_start;
    xdrmem_create(&xdrs, reply, length, XDR_DECODE);
    rpc_call_reply(call, &xdrs);
    if (slot->state == MBM_SENT_ACK && slot->ack.state != MB_ACK_DONE) {
        slot->outcome = call->status;
        call->status = RPC_INPROGRESS;
        enter(client, slot, MBM_ANSWERED);
        return;
    }
    mbm_call_release(client, slot);
}

static void take_replies(struct clntmb *client)
{
    struct mb_record *record;

    while ((record = mb_fifo_peek(client->replies)) != NULL) {
        if (record->node == client->node)
            take_reply(client, mb_record_data(record), record->length);
        mb_fifo_pop(client->replies);
    }
}

static bool has_ack(const struct mbm_call *slot)
{
    return slot->state >= MBM_SENT_ACK && slot->state != MBM_TO_SEND &&
           slot->ack.state == MB_ACK_DONE;
}

static void take_ack(struct clntmb *client, struct mbm_call *slot)
{
    if (slot->state == MBM_ANSWERED)
        end_answered(client, slot);
    else if (slot->ack.status != MB_OK)
        mbm_call_failed(client, slot, slot->ack.status);
    else if (slot->state == MBM_ONE_WAY)
        mbm_call_decide(client, slot, RPC_SUCCESS, 0, RPC_MAYBE_EXECUTED);
    else
        enter(client, slot, MBM_SENT);
}

void mbm_take_all(struct clntmb *client)
{
    take_replies(client);
    for (unsigned i = 0; i < client->slots; i++)
        if (has_ack(&client->calls[i]))
            take_ack(client, &client->calls[i]);
}

static bool has_deadline(const struct mbm_call *slot)
{
    return slot->state >= MBM_SENT && slot->state <= MBM_TO_SEND;
}

/*
 * The ACK of a call whose reply is still to come is no reason to wake up: the reply comes behind
 * it, and an ACK that tells of a failure is counted among the errors.
 */
static bool waits_for_ack(const struct mbm_call *slot)
{
    return slot->state >= MBM_ANSWERED;
}

unsigned mbm_progress(CLIENT *handle, struct sss_wait words[SSS_WAITS], uint64_t *due_ns)
{
    struct clntmb *client = of(handle);
    uint32_t errors = *mbm_errors();
    unsigned count = 2;

    words[0] = (struct sss_wait){&client->replies->events, client->replies->events, 0};
    words[1] = (struct sss_wait){mbm_errors(), errors, 0};
    *due_ns = MBM_NEVER;
    take_replies(client);
    if (errors != client->errors_seen) {
        client->errors_seen = errors;
        mbm_take_all(client);
        client->way->find_failures(client);
    }
    for (unsigned i = 0; client->watched > 0 && i < client->slots; i++) {
        struct mbm_call *slot = &client->calls[i];

        if (!is_watched(client, slot->state))
            continue;
        if (has_ack(slot))
            take_ack(client, slot);
        if (has_deadline(slot) && slot->due_ns != MBM_NEVER && slot->due_ns <= sss_now_ns())
            send_again(client, slot);
        if (waits_for_ack(slot) && count < SSS_WAITS)
            words[count++] = (struct sss_wait){&slot->ack.state, MB_ACK_PENDING, 0};
        if (has_deadline(slot) && slot->due_ns < *due_ns)
            *due_ns = slot->due_ns;
    }
    return count;
}
