/* SPDX-License-Identifier: Apache-2.0 */
/* A server over TCP: a transport that accepts, and one for each connection. */
#include <rpc/copies.h>
#include <rpc/rpc.h>
#include <rpc/socket.h>
#include <sss/system.h>

#include "record.h"
#include "transport.h"

enum { BACKLOG = 32 };

struct tcp_listener {
    SVCXPRT transport;
    u_int send_size;
    u_int receive_size;
};

struct tcp_connection {
    SVCXPRT transport;
    struct record_reader in;
    XDR out;
    XDR arguments;
    uint32_t xid;
    enum xprt_stat state;
};

/* ---- a connection ---- */

static struct tcp_connection *of(SVCXPRT *transport)
{
    return transport->xp_p1;
}

static bool_t connection_recv(SVCXPRT *transport, struct rpc_msg *message)
{
    struct tcp_connection *connection = of(transport);
    size_t length;
    char *record;
    int result = record_read(&connection->in, &record, &length);

    connection->state = result > 0 ? XPRT_MOREREQS : result == 0 ? XPRT_IDLE : XPRT_DIED;
    if (result <= 0)
        return FALSE;
    xdrmem_create(&connection->arguments, record, (u_int)length, XDR_DECODE);
    if (!xdr_callmsg(&connection->arguments, message)) {
        connection->state = XPRT_DIED; /* the peer does not speak RPC */
        return FALSE;
    }
    connection->xid = message->rm_xid;
    return TRUE;
}

static enum xprt_stat connection_stat(SVCXPRT *transport)
{
    return of(transport)->state;
}

static bool_t connection_getargs(SVCXPRT *transport, xdrproc_t decode, void *arguments)
{
    return decode(&of(transport)->arguments, arguments);
}

static int write_record(void *context, void *bytes, int length)
{
    struct tcp_connection *connection = context;

    if (record_send(connection->transport.xp_fd, bytes, (size_t)length, NULL, NULL) == 0)
        return length;
    connection->state = XPRT_DIED;
    return -1;
}

static bool_t connection_reply(SVCXPRT *transport, struct rpc_msg *reply)
{
    struct tcp_connection *connection = of(transport);
    bool_t encoded;

    reply->rm_xid = connection->xid;
    encoded = transport_encode_reply(&connection->out, reply);
    if (connection->state == XPRT_DIED)
        return FALSE;
    return xdrrec_endofrecord(&connection->out, TRUE) && encoded;
}

static bool_t connection_freeargs(SVCXPRT *transport, xdrproc_t proc, void *arguments)
{
    (void)transport;
    xdr_free(proc, arguments);
    return TRUE;
}

static void connection_free(struct tcp_connection *connection)
{
    if (connection->out.x_private != NULL)
        XDR_DESTROY(&connection->out);
    record_reader_free(&connection->in);
    rpc_socket_close(connection->transport.xp_fd);
    free(connection);
}

static void connection_destroy(SVCXPRT *transport)
{
    svc_remove_word(rpc_socket_counter(transport->xp_fd));
    connection_free(of(transport));
}

static void connection_ready(void *context)
{
    SVCXPRT *transport = context;

    do
        svc_getreq_transport(transport);
    while (SVC_STAT(transport) == XPRT_MOREREQS);
    if (SVC_STAT(transport) == XPRT_DIED)
        SVC_DESTROY(transport);
}

static void connection_start(const struct tcp_listener *listener, int socket,
                             const struct sss_peer *peer)
{
    static const struct xp_ops ops = {connection_recv,  connection_stat,     connection_getargs,
                                      connection_reply, connection_freeargs, connection_destroy};
    struct tcp_connection *connection = mem_alloc(sizeof(*connection));

    if (connection == NULL) {
        rpc_socket_close(socket);
        return;
    }
    connection->transport = (SVCXPRT){.xp_fd = socket,
                                      .xp_port = listener->transport.xp_port,
                                      .xp_ops = &ops,
                                      .xp_p1 = connection,
                                      .xp_netid = "tcp"};
    transport_set_caller(&connection->transport, peer);
    connection->out.x_op = XDR_ENCODE;
    xdrrec_create(&connection->out, listener->send_size, 0, connection, NULL, write_record);
    if (connection->out.x_private == NULL ||
        !record_reader_init(&connection->in, socket, listener->receive_size) ||
        !svc_add_word(rpc_socket_counter(socket), connection_ready, &connection->transport)) {
        sss_log("rpc: no room for another TCP connection (at most %d words to wait for)",
                SSS_WAITS);
        connection_free(connection);
    }
}

/* ---- the listener ---- */

static bool_t listener_recv(SVCXPRT *transport, struct rpc_msg *message)
{
    struct tcp_listener *listener = transport->xp_p1;
    struct sss_peer peer;
    int socket = rpc_socket_accept(transport->xp_fd, &peer);

    (void)message;
    while (socket >= 0) {
        connection_start(listener, socket, &peer);
        socket = rpc_socket_accept(transport->xp_fd, &peer);
    }
    return FALSE; /* there is no call yet */
}

static enum xprt_stat listener_stat(SVCXPRT *transport)
{
    (void)transport;
    return XPRT_IDLE;
}

static bool_t listener_getargs(SVCXPRT *transport, xdrproc_t decode, void *arguments)
{
    (void)transport;
    (void)decode;
    (void)arguments;
    return FALSE;
}

static bool_t listener_reply(SVCXPRT *transport, struct rpc_msg *reply)
{
    (void)transport;
    (void)reply;
    return FALSE;
}

static void listener_destroy(SVCXPRT *transport)
{
    svc_remove_word(rpc_socket_counter(transport->xp_fd));
    rpc_socket_close(transport->xp_fd);
    free(transport->xp_p1);
}

static void listener_ready(void *context)
{
    svc_getreq_transport(context);
}

SVCXPRT *svctcp_create(int socket, u_int sendsize, u_int recvsize)
{
    static const struct xp_ops ops = {listener_recv,  listener_stat,    listener_getargs,
                                      listener_reply, listener_getargs, listener_destroy};
    struct tcp_listener *listener = mem_alloc(sizeof(*listener));
    SVCXPRT *transport;

    if (listener == NULL)
        return NULL;
    listener->send_size = record_buffer_bytes(sendsize);
    listener->receive_size = record_buffer_bytes(recvsize);
    transport = &listener->transport;
    transport->xp_fd = transport_socket(socket, SSS_TCP);
    transport->xp_ops = &ops;
    transport->xp_p1 = listener;
    transport->xp_netid = "tcp";
    if (transport->xp_fd < 0) {
        free(listener);
        return NULL;
    }
    transport->xp_port = rpc_socket_port(transport->xp_fd);
    if (sss_listen(transport->xp_fd, BACKLOG) < 0 ||
        !svc_add_word(rpc_socket_counter(transport->xp_fd), listener_ready, transport)) {
        rpc_socket_close(transport->xp_fd);
        free(listener);
        return NULL;
    }
    return transport;
}
