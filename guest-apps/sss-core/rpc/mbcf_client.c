/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a CLIENT over MBCF. */
#include <stdlib.h>
#include <string.h>

#include "mbcf_client.h"
#include "sss/system.h"

enum {
    SPARE_SLOTS = 2,
    FULL_PAUSE_NS = 200 * 1000, /* after a FULL queue, doubling */
};

static const char *create_error = "";

static struct clntmb *of(const CLIENT *client)
{
    return client->cl_private;
}

/* ---- calls ---- */

/* The message in the slot's own memory, from where it goes out; 0: it cannot be encoded. */
static uint32_t encode_message(struct clntmb *client, struct mbm_call *slot, struct rpc_call *call,
                               xdrproc_t encode, void *arguments)
{
    XDR xdrs;

    xdrmem_create(&xdrs, slot->message, client->call_most, XDR_ENCODE);
    if (!rpc_call_encode(&client->client, &xdrs, call->xid, client->program, client->version,
                         call->procedure, encode, arguments))
        return 0;
    return XDR_GETPOS(&xdrs);
}

/* It is over when it is on its way; where an ACK is asked for, or a queue was full, when the
 * server's node has taken it. */
static void finish_one_way(struct clntmb *client, struct mbm_call *slot)
{
    uint64_t deadline = sss_now_ns() + client->options.connect_ns;
    struct sss_wait words[SSS_WAITS];

    while (slot->state == MBM_TO_SEND || slot->state == MBM_ONE_WAY) {
        uint64_t due;
        unsigned count = mbm_progress(&client->client, words, &due);
        uint64_t now = sss_now_ns();
        uint64_t until = due < deadline ? due : deadline;

        if (!mbm_is_busy(slot))
            return;
        if (now >= deadline)
            mbm_call_decide(client, slot, RPC_TIMEDOUT, 0, slot->execution);
        else if (until > now && slot->state != MBM_SENT)
            sss_wait(words, count, until - now);
    }
    if (!mbm_is_busy(slot))
        return;
    slot->area_slot = -1; /* its place stays used until a later call has been answered */
    mbm_call_decide(client, slot, RPC_SUCCESS, 0, RPC_MAYBE_EXECUTED);
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
    slot = mbm_call_slot(client);
    call->xid = client->next_xid++;
    if (slot == NULL) {
        rpc_call_fail(call, RPC_CANTSEND, SSS_EAGAIN);
        return;
    }
    slot->length = encode_message(client, slot, call, encode, arguments);
    if (slot->length == 0) {
        rpc_call_fail(call, RPC_CANTENCODEARGS, SSS_EMSGSIZE);
        return;
    }
    slot->call = call;
    mbm_call_start(client, slot);
    if (call->decode == NULL)
        finish_one_way(client, slot);
}

static void abandon(CLIENT *handle, struct rpc_call *call)
{
    struct clntmb *client = of(handle);
    struct mbm_call *slot = mbm_call_find(client, call);

    if (slot == NULL)
        return;
    client->execution = slot->execution;
    slot->area_slot = -1; /* its place stays used: the dummy may still look at it */
    mbm_call_release(client, slot);
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

static void set_first_interval(struct clntmb *client)
{
    client->first_interval_ns = client->options.semantics == RPC_EXACTLY_ONCE
                                    ? FULL_PAUSE_NS
                                    : client->options.retry_ns;
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
        set_first_interval(client);
        return client->options.retry_ns > 0;
    default:
        return FALSE;
    }
}

/* Pages of its own, so that a message that fits in one is never in two, each to be looked up. */
static size_t slot_memory(const struct clntmb *client)
{
    return mbm_whole_pages(sizeof(struct mbm_head) + client->options.message_most);
}

static void destroy(CLIENT *handle)
{
    struct clntmb *client = of(handle);

    for (unsigned i = 0; client->calls != NULL && i < client->slots; i++) {
        if (client->calls[i].ltn != 0)
            mb_close(client->calls[i].ltn);
        if (client->calls[i].head != NULL)
            sss_unmap(client->calls[i].head, slot_memory(client));
    }
    mbm_disconnect(client);
    if (client->replies != NULL)
        mbm_fifo_close(client->replies);
    free(client->calls);
    free(client);
}

static bool make_slots(struct clntmb *client)
{
    client->slots = client->options.depth * (client->way->connects_per_call ? 2 : 1) + SPARE_SLOTS;
    client->calls = calloc(client->slots, sizeof(*client->calls));
    for (unsigned i = 0; client->calls != NULL && i < client->slots; i++) {
        struct mbm_call *slot = &client->calls[i];

        slot->head = sss_map(NULL, slot_memory(client), SSS_READ | SSS_WRITE);
        if (slot->head == NULL)
            return false;
        slot->message = (char *)(slot->head + 1);
        slot->area_slot = -1;
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

static void set_defaults(struct clntmb_options *options, const struct mbm_way *way)
{
    if (options->message_most == 0)
        options->message_most = way->message_default;
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
    static const struct clnt_async_ops asynchronous = {start, mbm_progress, abandon, waiting_calls};
    static const struct mbm_way *const ways[MBCF_TYPES] = {
        [MBCF1] = &mbm_way_taskque, [MBCF2] = &mbm_way_read,  [MBCF12] = &mbm_way_taskque_or_read,
        [MBCF3] = &mbm_way_fifo,    [MBCF3A] = &mbm_way_fifo, [MBCF3B] = &mbm_way_signal};
    struct clntmb *client = calloc(1, sizeof(*client));

    if (client == NULL)
        return give_up(NULL, RPC_SYSTEMERROR, SSS_ENOMEM, "out of memory");
    client->options = *options;
    client->way = ways[options->type];
    set_defaults(&client->options, client->way);
    set_first_interval(client);
    client->first_watched = options->semantics == RPC_EXACTLY_ONCE ? MBM_TO_SEND : MBM_SENT;
    client->client = (CLIENT){.cl_auth = authnone_create(),
                              .cl_ops = &operations,
                              .cl_private = client,
                              .cl_async = &asynchronous,
                              .cl_netid = mbcf_type_names[client->options.type]};
    client->node = node;
    client->program = program;
    client->version = version;
    client->next_xid = rpc_next_xid();
    if (client->options.message_most > MBCF_MESSAGE_MOST || client->options.depth > MBCF_DEPTH_MOST)
        return give_up(client, RPC_SYSTEMERROR, SSS_EINVAL, "message or depth above the limit");
    client->call_most = (uint32_t)client->options.message_most;
    if (client->call_most > client->way->call_most)
        client->call_most = client->way->call_most;
    client->key = mbm_key(client->way->key);
    if (!make_slots(client))
        return give_up(client, RPC_SYSTEMERROR, SSS_ENOMEM, "out of memory");
    client->replies = mbm_fifo_open(
        mbm_ring_bytes((uint32_t)client->options.message_most, client->options.depth + 1));
    if (client->key == 0 || client->replies == NULL)
        return give_up(client, RPC_SYSTEMERROR, SSS_ENOMEM,
                       "no memory, accesskey or FIFO is left for this task");
    if (!mbm_connect(client))
        return give_up(client, client->error.re_status, client->error.re_errno, client->refusal);
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

void clntmb_server(const CLIENT *client, uint16_t *node, uint16_t *task)
{
    *node = of(client)->node;
    *task = of(client)->way->connects_per_call ? of(client)->server_task : of(client)->bound.task;
}
