/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of vRPC: encoded where the server reads them, decoded where its replies have arrived. */
#include <rpc/async.h>
#include <sss/system.h>
#include <sss/vmmc.h>
#include <stdlib.h>

#include "client.h"
#include "vrpc_carriers.h"

enum {
    TURNS = 2000,           /* until others may run */
    CALL_HEADER_BYTES = 24, /* without credential and verifier */
};

struct vrpc_client {
    struct client_base base; /* first */
    struct vrpc_line *line;
    enum vrpc_wait wait;
    uint64_t connect_ns;
    uint64_t polls;
};

static const char *create_error = "";

static struct vrpc_client *of(const CLIENT *client)
{
    return client->cl_private;
}

/* ---- calls ---- */

static void take_reply(CLIENT *client, const struct ring_message *message)
{
    uint32_t xid;
    struct rpc_call *call;
    XDR xdrs;

    if (message->length < sizeof(xid))
        return;
    memcpy(&xid, message->bytes, sizeof(xid));
    call = rpc_call_find(client, ntohl(xid));
    if (call == NULL)
        return; /* of a call that was given up */
    xdrmem_create(&xdrs, (char *)(uintptr_t)message->bytes, message->length, XDR_DECODE);
    rpc_call_reply(call, &xdrs);
}

static void take_replies(CLIENT *client)
{
    struct vrpc_line *line = of(client)->line;
    struct ring_message message;
    enum ring_taken taken;

    while ((taken = vrpc_line_take(line, &message)) == RING_MESSAGE) {
        take_reply(client, &message);
        vrpc_line_release(line, &message);
    }
    if (taken == RING_BROKEN)
        client_fail_all(client, RPC_CANTRECV, SSS_EIO);
    else if (of(client)->base.calls != NULL && line->carrier->is_gone(line))
        client_fail_all(client, RPC_CANTRECV, SSS_ECONNRESET);
}

/* Until something has come, or for a while. */
static void look(struct vrpc_client *vrpc)
{
    unsigned turns = TURNS;

    while (vrpc_line_is_quiet(vrpc->line) && --turns > 0)
        ;
    vrpc->polls += TURNS - turns;
    if (turns == 0)
        sss_yield();
}

static unsigned progress(CLIENT *client, struct sss_wait waits[SSS_WAITS], uint64_t *due_ns)
{
    struct vrpc_client *vrpc = of(client);
    unsigned count = 0;

    if (vrpc->wait == VRPC_NOTIFY) {
        count = vrpc->line->carrier->words(vrpc->line, waits);
        *due_ns = UINT64_MAX;
    } else {
        look(vrpc);
        *due_ns = 0;
    }
    take_replies(client);
    return count;
}

/* Room for a message; NULL: none has come in time, or the server is gone. */
static uint8_t *make_room(CLIENT *client, uint32_t length)
{
    struct vrpc_client *vrpc = of(client);
    uint8_t *place = vrpc_line_begin(vrpc->line, length);
    uint64_t now = 0, deadline = 0;

    while (place == NULL && !vrpc->line->carrier->is_gone(vrpc->line)) {
        struct sss_wait waits[SSS_WAITS];
        uint64_t due;
        unsigned count = progress(client, waits, &due);

        place = vrpc_line_begin(vrpc->line, length);
        now = sss_now_ns();
        deadline = deadline == 0 ? now + vrpc->connect_ns : deadline;
        if (now >= deadline)
            break;
        if (place == NULL && count > 0)
            sss_wait(waits, count, deadline - now);
    }
    return place;
}

static void start(CLIENT *client, struct rpc_call *call, xdrproc_t encode, void *arguments)
{
    struct vrpc_client *vrpc = of(client);
    uint8_t *place;
    u_int length;
    XDR xdrs;

    call->xid = client_take_xid(&vrpc->base);
    if (!xdr_measure(encode, arguments, &length)) {
        rpc_call_fail(call, RPC_CANTENCODEARGS, 0);
        return;
    }
    length += CALL_HEADER_BYTES + client->cl_auth->ah_marshalled_length;
    if (length > VRPC_MESSAGE_MOST) {
        rpc_call_fail(call, RPC_CANTENCODEARGS, SSS_EMSGSIZE);
        return;
    }
    if (vrpc->line->carrier->is_gone(vrpc->line)) {
        rpc_call_fail(call, RPC_CANTSEND, SSS_ECONNRESET);
        return;
    }
    place = make_room(client, length);
    if (place == NULL) {
        rpc_call_fail(call, RPC_CANTSEND, SSS_EAGAIN);
        return;
    }
    xdrmem_create(&xdrs, (char *)place, length, XDR_ENCODE);
    if (!rpc_call_encode(client, &xdrs, call->xid, vrpc->base.program, vrpc->base.version,
                         call->procedure, encode, arguments))
        rpc_call_fail(call, RPC_CANTENCODEARGS, 0);
    vrpc_line_end(vrpc->line);
}

/* A reply that still comes finds no call. */
static void abandon(CLIENT *client, struct rpc_call *call)
{
    (void)client;
    (void)call;
}

static void destroy(CLIENT *client)
{
    struct vrpc_client *vrpc = of(client);

    vrpc->line->carrier->close(vrpc->line);
    client_destroy(client);
}

/* ---- making one ---- */

static CLIENT *new_client(struct vrpc_client *vrpc, bool over_mbcf)
{
    static const struct clnt_ops ops = {client_call,    client_abort, client_geterr,
                                        client_freeres, destroy,      client_control};
    static const struct clnt_async_ops async = {start, progress, abandon, client_calls};
    CLIENT *client = mem_alloc(sizeof(*client));

    if (client == NULL)
        return NULL;
    client->cl_ops = &ops;
    client->cl_async = &async;
    client->cl_auth = authnone_create();
    client->cl_private = vrpc;
    client->cl_netid = over_mbcf ? "vrpc-mbcf" : "vrpc";
    return client;
}

static CLIENT *refuse(struct vrpc_client *vrpc, enum clnt_stat status, int error, const char *why)
{
    free(vrpc);
    create_error = why;
    return client_refused(status, error);
}

const char *clntvrpc_create_error(void)
{
    return create_error;
}

CLIENT *clntvrpc_create(uint16_t node, rpcprog_t program, rpcvers_t version,
                        const struct clntvrpc_options *options)
{
    static const struct clntvrpc_options absent = {.deliberate_above = VRPC_DELIBERATE_ABOVE,
                                                   .connect_ns = VRPC_CONNECT_NS};
    struct vrpc_client *vrpc = mem_alloc(sizeof(*vrpc));
    CLIENT *client;
    int error;

    options = options != NULL ? options : &absent;
    if (vrpc == NULL)
        return refuse(vrpc, RPC_SYSTEMERROR, SSS_ENOMEM, "out of memory");
    vrpc->wait = options->wait;
    vrpc->connect_ns = options->connect_ns;
    vrpc->line = options->over_mbcf ? vrpc_mbcf_connect(node, program, version, options, &error)
                                    : vrpc_vmmc_connect(node, program, version, options, &error);
    if (vrpc->line == NULL)
        return refuse(vrpc, RPC_FAILED, -error,
                      options->over_mbcf ? vrpc_mbcf_error_text(error) : vmmc_error_text(error));
    vrpc->base = (struct client_base){.socket = -1,
                                      .server = {.address = node, .port = vrpc->line->task},
                                      .program = program,
                                      .version = version,
                                      .next_xid = rpc_next_xid()};
    client = new_client(vrpc, options->over_mbcf);
    if (client != NULL)
        return client;
    vrpc->line->carrier->close(vrpc->line);
    return refuse(vrpc, RPC_SYSTEMERROR, SSS_ENOMEM, "out of memory");
}

void clntvrpc_server(const CLIENT *client, uint16_t *node, uint16_t *task)
{
    *node = of(client)->line->node;
    *task = of(client)->line->task;
}

uint64_t clntvrpc_polls(const CLIENT *client)
{
    return of(client)->polls;
}
