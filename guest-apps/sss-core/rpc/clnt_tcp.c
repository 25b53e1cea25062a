/* SPDX-License-Identifier: Apache-2.0 */
/* Calls over TCP: records out through XDR's record stream, whole records in. */
#include <rpc/async.h>
#include <rpc/copies.h>
#include <rpc/rpc.h>
#include <rpc/socket.h>
#include <sss/system.h>

#include "client.h"
#include "record.h"

#define CONNECT_NS 25000000000u /* rpcgen's own timeout of a call */

struct tcp_client {
    struct client_base base;
    XDR out;
    struct record_reader in;
    int failure; /* enum sss_error: of the stream, which does not come back; 0 none */
};

static struct tcp_client *of(CLIENT *client)
{
    return client->cl_private;
}

static void stream_failed(CLIENT *client, int error)
{
    of(client)->failure = error;
    client_fail_all(client, RPC_CANTRECV, error);
}

static void take_reply(CLIENT *client, char *record, size_t length)
{
    struct rpc_call *call;
    uint32_t xid;
    XDR xdrs;

    if (length < sizeof(xid))
        return;
    memcpy(&xid, record, sizeof(xid));
    call = rpc_call_find(client, ntohl(xid));
    if (call == NULL)
        return; /* of a call that was given up */
    xdrmem_create(&xdrs, record, (u_int)length, XDR_DECODE);
    rpc_call_reply(call, &xdrs);
}

static void take_all(void *context)
{
    CLIENT *client = context;
    struct tcp_client *tcp = of(client);
    char *record;
    size_t length;
    int result = tcp->failure == 0 ? 1 : 0;

    while (result > 0) {
        result = record_read(&tcp->in, &record, &length);
        if (result > 0)
            take_reply(client, record, length);
    }
    if (result < 0)
        stream_failed(client, result == -SSS_EPIPE ? SSS_ECONNRESET : -result);
}

/* Replies are taken while there is no room: a server that cannot get rid of them does not read
 * either. */
static int write_record(void *context, void *bytes, int length)
{
    CLIENT *client = context;
    int error = record_send(of(client)->base.socket, bytes, (size_t)length, take_all, client);

    if (error == 0)
        return length;
    of(client)->failure = -error;
    return -1;
}

static void start(CLIENT *client, struct rpc_call *call, xdrproc_t encode, void *arguments)
{
    struct tcp_client *tcp = of(client);

    call->xid = client_take_xid(&tcp->base);
    if (tcp->failure != 0) {
        rpc_call_fail(call, RPC_CANTSEND, tcp->failure);
        return;
    }
    if (!rpc_call_encode(client, &tcp->out, call->xid, tcp->base.program, tcp->base.version,
                         call->procedure, encode, arguments)) {
        rpc_call_fail(call, tcp->failure == 0 ? RPC_CANTENCODEARGS : RPC_CANTSEND, tcp->failure);
        /* half a message: the server will refuse it, and the next one is whole */
        xdrrec_endofrecord(&tcp->out, TRUE);
        return;
    }
    if (!xdrrec_endofrecord(&tcp->out, !call->hold))
        rpc_call_fail(call, RPC_CANTSEND, tcp->failure);
}

static unsigned progress(CLIENT *client, struct sss_wait words[SSS_WAITS], uint64_t *due_ns)
{
    struct tcp_client *tcp = of(client);

    (void)due_ns;
    take_all(client);
    words[0] = (struct sss_wait){.address = rpc_socket_counter(tcp->base.socket),
                                 .seen = tcp->in.seen};
    return 1;
}

static void abandon(CLIENT *client, struct rpc_call *call)
{
    (void)client;
    (void)call;
}

static bool_t control(CLIENT *client, u_int request, void *info)
{
    struct sss_socket_state state;

    if (request == CLGET_RETRANSMITS && sss_socket_state(of(client)->base.socket, &state) == 0)
        of(client)->base.retransmits = state.retransmits;
    return client_control(client, request, info);
}

static void destroy(CLIENT *client)
{
    struct tcp_client *tcp = of(client);

    XDR_DESTROY(&tcp->out);
    record_reader_free(&tcp->in);
    client_destroy(client);
}

/* -> 0 or an enum sss_error. A socket that is already connected is taken as it is. */
static int connect_socket(const struct client_base *base)
{
    const volatile uint32_t *counter = rpc_socket_counter(base->socket);
    uint64_t deadline = sss_now_ns() + CONNECT_NS;
    struct sss_socket_state state;
    uint32_t seen = *counter;
    int error = sss_socket_state(base->socket, &state);

    if (error == 0 && state.phase == SSS_CLOSED)
        error = sss_connect(base->socket, base->server.address, base->server.port);
    while (error == 0) {
        uint64_t now = sss_now_ns();

        error = sss_socket_state(base->socket, &state);
        if (error != 0 || state.phase == SSS_OPEN)
            break;
        if (state.phase != SSS_CONNECTING)
            return state.error != 0 ? state.error : SSS_ENOTCONN;
        if (now >= deadline)
            return SSS_ETIMEDOUT;
        sss_wait_word(counter, seen, deadline - now);
        seen = *counter;
    }
    return -error;
}

static CLIENT *give_up(struct tcp_client *tcp, CLIENT *client, enum clnt_stat status, int error)
{
    if (tcp->out.x_private != NULL)
        XDR_DESTROY(&tcp->out);
    record_reader_free(&tcp->in);
    client_destroy(client);
    return client_refused(status, error);
}

CLIENT *client_tcp(const struct sockaddr_in *server, rpcprog_t program, rpcvers_t version,
                   int *sockp, u_int sendsize, u_int recvsize)
{
    static const struct clnt_ops ops = {client_call,    client_abort, client_geterr,
                                        client_freeres, destroy,      control};
    static const struct clnt_async_ops async = {start, progress, abandon, client_calls};
    struct tcp_client *tcp = mem_alloc(sizeof(*tcp));
    CLIENT *client;
    int error;

    if (tcp == NULL)
        return client_refused(RPC_SYSTEMERROR, SSS_ENOMEM);
    client = client_create(&tcp->base, "tcp", IPPROTO_TCP, server, program, version, sockp);
    if (client == NULL) {
        free(tcp);
        return NULL;
    }
    client->cl_ops = &ops;
    client->cl_async = &async;
    error = connect_socket(&tcp->base);
    if (error != 0)
        return give_up(tcp, client, RPC_SYSTEMERROR, error);
    tcp->out.x_op = XDR_ENCODE;
    xdrrec_create(&tcp->out, record_buffer_bytes(sendsize), 0, client, NULL, write_record);
    if (tcp->out.x_private == NULL ||
        !record_reader_init(&tcp->in, tcp->base.socket, record_buffer_bytes(recvsize)))
        return give_up(tcp, client, RPC_SYSTEMERROR, SSS_ENOMEM);
    return client;
}
