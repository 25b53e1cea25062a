/* SPDX-License-Identifier: Apache-2.0 */
#include <rpc/copies.h>
#include <stdlib.h>
#include <string.h>

#include "mbcf_client.h"
#include "sss/system.h"

enum {
    FULL_PAUSE_NS = 200 * 1000, /* after a FULL queue, doubling */
    FULL_PAUSE_MOST_NS = 50 * 1000 * 1000,
    SPARE_SLOTS = 2,
};
#define NEVER UINT64_MAX

static const char *create_error = "";

static struct clntmb *of(const CLIENT *client)
{
    return client->cl_private;
}

/* Types with a connection of their own for each call. */
static bool connects_per_call(const struct clntmb *client)
{
    return client->options.type < MBCF_3;
}

/* ---- places for calls ---- */

/* A finished call's connection is the server's to discard; until then its request may still be
 * READ. */
static bool has_gone(int ltn)
{
    struct mb_connection connection;

    return mb_connection(ltn, &connection) != 0 || connection.state == MB_CONNECTION_BROKEN;
}

static bool is_free(struct mbm_call *slot)
{
    if (slot->busy || slot->ack.state == MB_ACK_PENDING)
        return false;
    if (slot->ltn != 0 && has_gone(slot->ltn)) {
        mb_close(slot->ltn);
        slot->ltn = 0;
    }
    return slot->ltn == 0;
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

/* Where one-way calls hold all places, the server is given time to discard a connection. */
static struct mbm_call *take_slot(struct clntmb *client)
{
    uint64_t deadline = 0;

    if (client->busy >
        client->options
            .depth) /* one more than asked for: the call that empties the area, see area_take */
        return NULL;
    for (;;) {
        uint32_t errors = *mbm_errors();
        struct mbm_call *slot = free_slot(client);
        uint64_t now;

        if (slot != NULL)
            return slot;
        now = sss_now_ns();
        if (deadline == 0)
            deadline = now + client->options.connect_ns;
        if (now >= deadline)
            return NULL;
        sss_wait_word(mbm_errors(), errors, deadline - now);
    }
}

/*
 * Nobody sleeps for the ACK of a call whose reply is still to come: the reply comes behind it, and
 * an ACK that tells of a failure is counted among the errors.
 */
static bool waits_for_ack(const struct mbm_call *slot)
{
    return slot->ack_wanted && (slot->answered || slot->call->decode == NULL);
}

/* Whether `progress` has to look at it. */
static void set_attention(struct clntmb *client, struct mbm_call *slot)
{
    bool wanted = slot->busy && (waits_for_ack(slot) || slot->due_ns != NEVER);

    if (wanted == slot->attention)
        return;
    client->attention += wanted ? 1 : -1u;
    slot->attention = wanted;
}

static void release(struct clntmb *client, struct mbm_call *slot)
{
    if (slot->area_slot >= 0)
        client->area_used[slot->area_slot] = 0;
    slot->area_slot = -1;
    client->busy -= slot->busy;
    slot->busy = false;
    slot->ack_wanted = false;
    slot->answered = false;
    slot->call = NULL;
    slot->due_ns = NEVER;
    set_attention(client, slot);
}

static void decide(struct clntmb *client, struct mbm_call *slot, enum clnt_stat status, int error,
                   enum rpc_execution execution, const char *reason)
{
    struct rpc_call *call = slot->call;

    client->execution = execution;
    client->reason = reason;
    release(client, slot);
    if (status == RPC_SUCCESS)
        call->status = RPC_SUCCESS;
    else
        rpc_call_fail(call, status, error);
}

/* ---- sending ---- */

/* The message in the call's own memory, from where it goes out; 0: it cannot be encoded. */
static uint32_t encode_message(struct clntmb *client, struct mbm_call *slot, struct rpc_call *call,
                               xdrproc_t encode, void *arguments)
{
    XDR xdrs;

    xdrmem_create(&xdrs, slot->message, (u_int)client->options.message_most, XDR_ENCODE);
    if (!rpc_call_encode(&client->client, &xdrs, call->xid, client->program, client->version,
                         call->procedure, encode, arguments))
        return 0;
    return XDR_GETPOS(&xdrs);
}

/* -> 0, its connection for a TASKQUE write, or an error. The ACK of a call with a reply may come
 * with the reply. */
static int request(struct mbm_call *slot, struct mb_operation *operation)
{
    int error;

    if (slot->ack_wanted) {
        slot->ack.state = MB_ACK_IDLE;
        operation->ack = &slot->ack;
        if (slot->call->decode != NULL)
            operation->flags |= MB_LAZY;
    }
    error = mb_operate(operation);
    return error == 0 && operation->op == MB_OP_TASKQUE ? operation->ltn : error;
}

static int taskque_request(const struct clntmb *client, struct mbm_call *slot, void *data,
                           size_t length, unsigned permission)
{
    struct mb_operation operation = {.op = MB_OP_TASKQUE,
                                     .node = client->node,
                                     .task = client->server_task,
                                     .data = data,
                                     .length = length,
                                     .argument = {client->key, permission}};

    return request(slot, &operation);
}

static int send_in_taskque(struct clntmb *client, struct mbm_call *slot)
{
    *slot->head = (struct mbm_head){(uintptr_t)client->replies,
                                    (uint32_t)client->options.message_most, MBM_CALL};
    return taskque_request(client, slot, slot->head, sizeof(*slot->head) + slot->length,
                           MB_WRITE_ALLOWED);
}

static int send_where_it_lies(struct clntmb *client, struct mbm_call *slot)
{
    struct {
        struct mbm_head head;
        struct mbm_source source;
    } where = {
        {(uintptr_t)client->replies, (uint32_t)client->options.message_most, MBM_CALL_AT},
        {(uintptr_t)slot->message, slot->length, mbm_word(slot->message, 0)},
    };

    return taskque_request(client, slot, &where, sizeof(where), MB_READ_ALLOWED | MB_WRITE_ALLOWED);
}

static int send_on_own_connection(struct clntmb *client, struct mbm_call *slot)
{
    bool here = client->options.type == MBCF_1 ||
                (client->options.type == MBCF_12 && slot->length <= MBM_CALL_MOST);
    int ltn = here ? send_in_taskque(client, slot) : send_where_it_lies(client, slot);

    if (ltn < 0)
        return ltn;
    slot->ltn = ltn;
    return 0;
}

static int area_find(struct clntmb *client)
{
    for (unsigned i = 0; i < client->bound.slots; i++) {
        if (client->area_used[i] != 0 && client->area_used[i] <= client->ring_taken)
            client->area_used[i] = 0; /* of a one-way call: a later one has been answered */
        if (client->area_used[i] == 0)
            return (int)i;
    }
    return -1;
}

/* A place in the area: where one-way calls hold all of them, a call with a reply says that they are
 * over. */
static int area_take(struct clntmb *client)
{
    struct rpc_err error;
    int slot = area_find(client);

    if (slot < 0 &&
        rpc_call_now(&client->client, NULLPROC, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void,
                     NULL, client->options.connect_ns, &error) == RPC_SUCCESS)
        slot = area_find(client);
    return slot;
}

/* Large requests are WRITTEN into the dummy's area first; on one connection all is executed in
 * order. */
static int send_by_signal(struct clntmb *client, struct mbm_call *slot)
{
    struct mb_operation operation = {
        .op = MB_OP_SIGNAL, .ltn = client->ltn, .remote = client->bound.handler};
    uint64_t place;
    int status;

    if (slot->length <= MBM_SIGNAL_MOST) {
        operation.data = slot->message;
        operation.length = slot->length;
        return request(slot, &operation);
    }
    if (slot->area_slot < 0)
        slot->area_slot = area_take(client);
    if (slot->area_slot < 0)
        return -(MB_STATUS_BASE + MB_FULL);
    client->area_used[slot->area_slot] = slot->ring_start + 1;
    place = (uint64_t)slot->area_slot * client->bound.slot;
    status = mb_write(client->ltn, client->bound.area + place, slot->message, slot->length, NULL);
    if (status != 0)
        return status;
    operation.arguments = 2;
    operation.argument[0] = place;
    operation.argument[1] = slot->length;
    return request(slot, &operation);
}

/* What a call takes of the ring that the server has given to this client. */
static uint32_t ring_need(const struct clntmb *client, const struct mbm_call *slot)
{
    if (client->options.type != MBCF_3B)
        return mbm_record_bytes(slot->length);
    return mbm_record_bytes((uint32_t)sizeof(struct mb_signal_head) +
                            (slot->length <= MBM_SIGNAL_MOST ? slot->length : 0));
}

/*
 * While there is certainly a place in the ring, no answer is needed to know that a request will not
 * be refused. Where there may be none, the ACK is asked for, and a request that was refused
 * (MB_FULL) goes again.
 */
static bool has_room(const struct clntmb *client, uint32_t need)
{
    uint32_t largest = client->ring_largest > need ? client->ring_largest : need;

    return client->ring_sent - client->ring_taken + need + largest <= client->bound.ring;
}

static int send_by_fifo(const struct clntmb *client, struct mbm_call *slot)
{
    struct mb_operation operation = {.op = MB_OP_FIFO,
                                     .ltn = client->ltn,
                                     .remote = client->bound.fifo,
                                     .data = slot->message,
                                     .length = slot->length};

    return request(slot, &operation);
}

static int send_on_connection(struct clntmb *client, struct mbm_call *slot)
{
    uint32_t need = ring_need(client, slot);
    int status;

    slot->ring_start = client->ring_sent;
    status = client->options.type == MBCF_3B ? send_by_signal(client, slot)
                                             : send_by_fifo(client, slot);
    if (status == 0) {
        client->ring_sent += need;
        if (need > client->ring_largest)
            client->ring_largest = need;
    }
    return status;
}

static void failed(struct clntmb *client, struct mbm_call *slot, unsigned status);

static void send_call(struct clntmb *client, struct mbm_call *slot)
{
    int status;

    slot->ack_wanted = client->options.ack ||
                       (!connects_per_call(client) && !has_room(client, ring_need(client, slot)));
    slot->refused = false;
    status = connects_per_call(client) ? send_on_own_connection(client, slot)
                                       : send_on_connection(client, slot);
    rpc_copied(RPC_COPY_SEND, slot->length);
    if (status != 0) {
        slot->ack_wanted = false;
        failed(client, slot,
               status <= -MB_STATUS_BASE ? (unsigned)(-status - MB_STATUS_BASE) : MB_NO_LTN);
    } else if (client->options.semantics != RPC_EXACTLY_ONCE && slot->call->decode != NULL) {
        slot->due_ns = sss_now_ns() + slot->interval_ns;
    }
    set_attention(client, slot);
}

/* ---- what may go wrong ---- */

static void send_later(struct clntmb *client, struct mbm_call *slot, uint64_t pause_ns)
{
    slot->due_ns = sss_now_ns() + pause_ns;
    set_attention(client, slot);
}

/* The latest attempt has failed with a status of MBCF, MB_MAYBE included. */
static void failed(struct clntmb *client, struct mbm_call *slot, unsigned status)
{
    unsigned plain = status & ~(unsigned)MB_MAYBE;
    /* A refusal by the other node is the proof that nothing was executed; and so is what never left
     * this one. */
    bool proven = (status & MB_MAYBE) == 0 &&
                  (plain <= MB_LAST_REMOTE || plain == MB_NO_NODE || plain == MB_NO_LTN);

    if (slot->answered) { /* all is known; its ACK will not come any more */
        slot->call->status = slot->outcome;
        release(client, slot);
        return;
    }
    if (slot->ltn != 0) {
        mb_close(slot->ltn);
        slot->ltn = 0;
    }
    slot->refused = proven;
    if (plain == MB_FULL || plain == MB_BUSY) {
        send_later(client, slot,
                   slot->interval_ns < FULL_PAUSE_MOST_NS ? slot->interval_ns : FULL_PAUSE_MOST_NS);
        return;
    }
    if (connects_per_call(client))
        client->connected = false; /* the binder may know another server by now */
    if (client->options.semantics == RPC_AT_LEAST_ONCE && slot->call->decode != NULL) {
        send_later(client, slot, slot->interval_ns);
        return;
    }
    decide(client, slot, proven ? RPC_CANTSEND : RPC_CANTRECV, MB_STATUS_BASE + (int)plain,
           proven ? RPC_NOT_EXECUTED : RPC_MAYBE_EXECUTED, mb_status_text((int)plain));
}

static void take_replies(struct clntmb *client);
static void take_ack(struct clntmb *client, struct mbm_call *slot);

/* Everything that has come before a connection broke counts first. */
static void take_all(struct clntmb *client)
{
    take_replies(client);
    for (unsigned i = 0; i < client->slots; i++)
        if (client->calls[i].ack_wanted && client->calls[i].ack.state == MB_ACK_DONE)
            take_ack(client, &client->calls[i]);
}

/* The first failure without an ack of the connection, or that it is broken; 0: neither. */
static unsigned connection_failure(int ltn, bool *broken)
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

/* A request whose operation was executed may have run, whatever befell the connection afterwards.
 */
static unsigned seen_by_call(const struct mbm_call *slot, unsigned status)
{
    bool closed = (status & ~(unsigned)MB_MAYBE) > MB_LAST_REMOTE;

    return slot->ack.state == MB_ACK_DONE || closed ? status | MB_MAYBE : status;
}

static void find_failures_per_call(struct clntmb *client)
{
    for (unsigned i = 0; i < client->slots; i++) {
        struct mbm_call *slot = &client->calls[i];
        bool broken;
        unsigned status;

        if (!slot->busy || slot->ltn == 0)
            continue;
        status = connection_failure(slot->ltn, &broken);
        take_all(client); /* the reply comes before the CLOSE */
        if (status != 0 && slot->busy)
            failed(client, slot, seen_by_call(slot, status));
    }
}

static void find_failures(struct clntmb *client)
{
    unsigned status, waiting = 0;
    bool broken, other_broken;

    if (connects_per_call(client)) {
        find_failures_per_call(client);
        return;
    }
    status = connection_failure(client->ltn, &broken);
    if (!broken && connection_failure(client->taskque_ltn, &other_broken) != 0 && other_broken) {
        broken = true;
        status = MB_CLOSED | MB_MAYBE;
    }
    if (status == 0)
        return;
    take_all(client);
    if (broken)
        mbm_disconnect(client);
    for (unsigned i = 0; i < client->slots; i++)
        waiting += client->calls[i].busy;
    for (unsigned i = 0; i < client->slots; i++)
        if (client->calls[i].busy) /* of several, nobody knows which was the first to fail */
            failed(client, &client->calls[i],
                   waiting > 1 ? status | MB_MAYBE : seen_by_call(&client->calls[i], status));
}

/* ---- what comes ---- */

static struct mbm_call *slot_of(struct clntmb *client, uint32_t xid)
{
    if (client->latest->call != NULL && client->latest->call->xid == xid)
        return client->latest;
    for (unsigned i = 0; i < client->slots; i++)
        if (client->calls[i].call != NULL && client->calls[i].call->xid == xid)
            return &client->calls[i];
    return NULL;
}

static void take_reply(struct clntmb *client, char *reply, uint32_t length)
{
    struct mbm_call *slot = length >= MBM_REPLY_HEADER ? slot_of(client, mbm_word(reply, 0)) : NULL;
    struct rpc_call *call;
    XDR xdrs;

    if (slot == NULL || slot->answered)
        return; /* nobody waits for it any longer */
    call = slot->call;
    if (call->decode == NULL)
        return;
    client->execution = RPC_EXECUTED;
    if (slot->ring_start > client->ring_taken)
        /* requests are taken out in order: all before this one are out */
        client->ring_taken = slot->ring_start;
    xdrmem_create(&xdrs, reply, length, XDR_DECODE);
    rpc_call_reply(call, &xdrs);
    client->reason = "";
    if (slot->ack_wanted && slot->ack.state != MB_ACK_DONE) {
        slot->answered = true;
        slot->outcome = call->status;
        call->status = RPC_INPROGRESS;
        set_attention(client, slot);
        return;
    }
    release(client, slot);
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

static void take_ack(struct clntmb *client, struct mbm_call *slot)
{
    slot->ack_wanted = false;
    set_attention(client, slot);
    if (slot->answered) {
        slot->call->status = slot->outcome;
        release(client, slot);
    } else if (slot->ack.status != MB_OK) {
        failed(client, slot, slot->ack.status);
    } else if (slot->call->decode == NULL) {
        decide(client, slot, RPC_SUCCESS, 0, RPC_MAYBE_EXECUTED, "");
    }
}

static void send_again(struct clntmb *client, struct mbm_call *slot)
{
    slot->due_ns = NEVER;
    set_attention(client, slot);
    slot->interval_ns *= 2;
    slot->call->retransmits++;
    client->retransmits++;
    if (slot->ltn != 0) {
        mb_close(slot->ltn);
        slot->ltn = 0;
    }
    if (!client->connected && !mbm_connect(client)) {
        send_later(client, slot, slot->interval_ns);
        return;
    }
    send_call(client, slot);
}

static unsigned progress(CLIENT *handle, struct sss_wait words[SSS_WAITS], uint64_t *due_ns)
{
    struct clntmb *client = of(handle);
    uint32_t errors = *mbm_errors();
    unsigned count = 2;

    words[0] = (struct sss_wait){&client->replies->events, client->replies->events, 0};
    words[1] = (struct sss_wait){mbm_errors(), errors, 0};
    *due_ns = NEVER;
    take_replies(client);
    if (errors != client->errors_seen) {
        client->errors_seen = errors;
        take_all(client);
        find_failures(client);
    }
    for (unsigned i = 0; client->attention > 0 && i < client->slots; i++) {
        struct mbm_call *slot = &client->calls[i];

        if (!slot->attention)
            continue;
        if (slot->ack_wanted && slot->ack.state == MB_ACK_DONE)
            take_ack(client, slot);
        if (slot->busy && slot->due_ns != NEVER && slot->due_ns <= sss_now_ns())
            send_again(client, slot);
        if (slot->busy && waits_for_ack(slot) && count < SSS_WAITS)
            words[count++] = (struct sss_wait){&slot->ack.state, MB_ACK_PENDING, 0};
        if (slot->busy && slot->due_ns < *due_ns)
            *due_ns = slot->due_ns;
    }
    return count;
}

/* ---- the interface of CLIENT ---- */

static bool is_too_long(const struct clntmb *client, uint32_t length)
{
    return client->options.type == MBCF_1 && length > MBM_CALL_MOST;
}

/* It is over when it is on its way; where an ACK is asked for, or a queue was full, when the
 * server's node has taken it. */
static void finish_one_way(struct clntmb *client, struct mbm_call *slot)
{
    uint64_t deadline = sss_now_ns() + client->options.connect_ns;
    struct sss_wait words[SSS_WAITS];

    while (slot->busy && (slot->ack_wanted || slot->due_ns != NEVER)) {
        uint64_t due;
        unsigned count = progress(&client->client, words, &due);
        uint64_t now = sss_now_ns();
        uint64_t until = due < deadline ? due : deadline;

        if (!slot->busy)
            return;
        if (now >= deadline)
            decide(client, slot, RPC_TIMEDOUT, 0,
                   slot->refused ? RPC_NOT_EXECUTED : RPC_MAYBE_EXECUTED,
                   "not taken until the time was over");
        else if (until > now && (slot->ack_wanted || slot->due_ns != NEVER))
            sss_wait(words, count, until - now);
    }
    if (!slot->busy)
        return;
    slot->area_slot = -1; /* its place stays used until a later call has been answered */
    decide(client, slot, RPC_SUCCESS, 0, RPC_MAYBE_EXECUTED, "");
}

static void start(CLIENT *handle, struct rpc_call *call, xdrproc_t encode, void *arguments)
{
    struct clntmb *client = of(handle);
    struct mbm_call *slot;

    client->execution = RPC_NOT_EXECUTED;
    if (!client->connected && client->options.semantics != RPC_AT_LEAST_ONCE &&
        !mbm_connect(client)) {
        rpc_call_fail(call, client->error.re_status, client->error.re_errno);
        return;
    }
    slot = take_slot(client);
    call->xid = client->next_xid++;
    if (slot == NULL) {
        client->reason = "more calls under way than the handle's depth";
        rpc_call_fail(call, RPC_CANTSEND, SSS_EAGAIN);
        return;
    }
    slot->call = call;
    slot->length = encode_message(client, slot, call, encode, arguments);
    if (slot->length == 0 || is_too_long(client, slot->length)) {
        client->reason = slot->length == 0
                             ? "the arguments do not fit the longest message, or their type"
                             : "longer than a single transaction (mbcf1) can carry";
        slot->call = NULL;
        rpc_call_fail(call, RPC_CANTENCODEARGS, SSS_EMSGSIZE);
        return;
    }
    slot->busy = true;
    client->busy++;
    slot->area_slot = -1;
    slot->due_ns = NEVER;
    slot->interval_ns = client->options.semantics == RPC_EXACTLY_ONCE ? FULL_PAUSE_NS
                                                                      : client->options.retry_ns;
    client->latest = slot;
    if (!client->connected)
        send_later(client, slot, 0); /* at least once: progress connects */
    else
        send_call(client, slot);
    if (call->decode == NULL)
        finish_one_way(client, slot);
}

static struct mbm_call *slot_of_call(struct clntmb *client, const struct rpc_call *call)
{
    if (client->busy == 0)
        return NULL;
    for (unsigned i = 0; i < client->slots; i++)
        if (client->calls[i].call == call)
            return &client->calls[i];
    return NULL;
}

static void abandon(CLIENT *handle, struct rpc_call *call)
{
    struct clntmb *client = of(handle);
    struct mbm_call *slot = slot_of_call(client, call);

    if (slot == NULL)
        return;
    client->execution = slot->refused ? RPC_NOT_EXECUTED : RPC_MAYBE_EXECUTED;
    client->reason = slot->refused ? "refused until the time was over"
                                   : "no reply until the time was over";
    slot->area_slot = -1; /* its place stays used: the dummy may still look at it */
    release(client, slot);
}

static struct rpc_call **waiting_calls(CLIENT *handle)
{
    return &of(handle)->waiting;
}

static enum clnt_stat call_now(CLIENT *handle, rpcproc_t procedure, xdrproc_t encode,
                               void *arguments, xdrproc_t decode, void *result,
                               struct timeval total)
{
    struct clntmb *client = of(handle);
    uint64_t timeout_ns = rpc_timeval_ns(total);

    if (decode == NULL && timeout_ns == 0)
        /* one-way: only an ACK, or a place, is waited for */
        timeout_ns = client->options.connect_ns;
    return rpc_call_now(handle, procedure, encode, arguments, decode, result, timeout_ns,
                        &client->error);
}

static void abort_call(CLIENT *handle)
{
    (void)handle;
}

static void get_error(CLIENT *handle, struct rpc_err *error)
{
    *error = of(handle)->error;
}

static bool_t free_result(CLIENT *handle, xdrproc_t decode, void *result)
{
    XDR xdrs = {.x_op = XDR_FREE};

    (void)handle;
    return decode(&xdrs, result);
}

static bool_t control(CLIENT *handle, u_int request, void *info)
{
    struct clntmb *client = of(handle);

    switch (request) {
    case CLGET_XID:
        *(uint32_t *)info = client->next_xid;
        return TRUE;
    case CLSET_XID:
        client->next_xid = *(uint32_t *)info;
        return TRUE;
    case CLGET_RETRANSMITS:
        *(unsigned *)info = client->retransmits;
        return TRUE;
    case CLSET_RETRY_TIMEOUT:
        client->options.retry_ns = rpc_timeval_ns(*(struct timeval *)info);
        return client->options.retry_ns > 0;
    default:
        return FALSE;
    }
}

static void destroy(CLIENT *handle)
{
    struct clntmb *client = of(handle);

    for (unsigned i = 0; client->calls != NULL && i < client->slots; i++) {
        if (client->calls[i].ltn != 0)
            mb_close(client->calls[i].ltn);
        free(client->calls[i].head);
    }
    mbm_disconnect(client);
    if (client->replies != NULL)
        mbm_fifo_close(client->replies);
    free(client->calls);
    free(client);
}

static bool make_slots(struct clntmb *client)
{
    client->slots = client->options.depth * (connects_per_call(client) ? 2 : 1) + SPARE_SLOTS;
    client->calls = calloc(client->slots, sizeof(*client->calls));
    for (unsigned i = 0; client->calls != NULL && i < client->slots; i++) {
        struct mbm_call *slot = &client->calls[i];

        slot->head = malloc(sizeof(*slot->head) + client->options.message_most);
        if (slot->head == NULL)
            return false;
        slot->message = (char *)(slot->head + 1);
        slot->area_slot = -1;
        slot->due_ns = NEVER;
    }
    client->latest = client->calls;
    return client->calls != NULL;
}

static CLIENT *give_up(struct clntmb *client, enum clnt_stat status, int error, const char *reason)
{
    rpc_createerr.cf_stat = status;
    rpc_createerr.cf_error = (struct rpc_err){.re_status = status};
    rpc_createerr.cf_error.re_errno = error;
    create_error = reason;
    if (client != NULL)
        destroy(&client->client);
    return NULL;
}

static void set_defaults(struct clntmb_options *options)
{
    if (options->message_most == 0)
        options->message_most = options->type == MBCF_1 ? MBM_CALL_MOST : MBCF_MESSAGE_DEFAULT;
    if (options->depth == 0)
        options->depth = 1;
    if (options->retry_ns == 0)
        options->retry_ns = MBCF_RETRY_NS;
    if (options->connect_ns == 0)
        options->connect_ns = MBCF_CONNECT_NS;
}

CLIENT *clntmb_create(uint16_t node, rpcprog_t program, rpcvers_t version,
                      const struct clntmb_options *options)
{
    static struct clnt_ops operations = {call_now,    abort_call, get_error,
                                         free_result, destroy,    control};
    static const struct clnt_async_ops asynchronous = {start, progress, abandon, waiting_calls};
    struct clntmb *client = calloc(1, sizeof(*client));

    if (client == NULL)
        return give_up(NULL, RPC_SYSTEMERROR, SSS_ENOMEM, "out of memory");
    client->options = *options;
    set_defaults(&client->options);
    client->client = (CLIENT){.cl_auth = authnone_create(),
                              .cl_ops = &operations,
                              .cl_private = client,
                              .cl_async = &asynchronous,
                              .cl_netid = mbcf_type_names[client->options.type]};
    client->node = node;
    client->program = program;
    client->version = version;
    client->reason = "";
    client->next_xid = rpc_next_xid();
    if (client->options.message_most > MBCF_MESSAGE_MOST || client->options.depth > MBCF_DEPTH_MOST)
        return give_up(client, RPC_SYSTEMERROR, SSS_EINVAL, "message or depth above the limit");
    client->key = mbm_key(client->options.type == MBCF_2 || client->options.type == MBCF_12
                              ? MBM_KEY_READ
                              : MBM_KEY_WRITE);
    if (!make_slots(client))
        return give_up(client, RPC_SYSTEMERROR, SSS_ENOMEM, "out of memory");
    client->replies = mbm_fifo_open(
        mbm_ring_bytes((uint32_t)client->options.message_most, client->options.depth + 1));
    if (client->key == 0 || client->replies == NULL)
        return give_up(client, RPC_SYSTEMERROR, SSS_ENOMEM,
                       "no memory, accesskey or FIFO is left for this task");
    if (!mbm_connect(client))
        return give_up(client, client->error.re_status, client->error.re_errno, client->reason);
    return &client->client;
}

const char *clntmb_create_error(void)
{
    return create_error;
}

enum rpc_execution clntmb_execution(const CLIENT *client)
{
    return of(client)->execution;
}

const char *clntmb_reason(const CLIENT *client)
{
    return of(client)->reason;
}

void clntmb_server(const CLIENT *client, uint16_t *node, uint16_t *task)
{
    *node = of(client)->node;
    *task = connects_per_call(of(client)) ? of(client)->server_task : of(client)->bound.task;
}
