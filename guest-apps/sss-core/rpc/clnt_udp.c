/* SPDX-License-Identifier: Apache-2.0 */
/* Calls over UDP: sent again, with the same transaction number, until a reply comes or nothing
 * waits any longer. */
#include <rpc/async.h>
#include <rpc/copies.h>
#include <rpc/rpc.h>
#include <rpc/socket.h>
#include <sss/system.h>

#include "client.h"

enum {
    MESSAGE_LEAST = 400,
    MESSAGE_MOST = 65507,
};
#define RETRY_MOST_NS 30000000000u /* libtirpc's RPC_MAX_BACKOFF */

/* Room for one message, kept for the next call when its call has ended. */
struct room {
    struct room *next;
    uint64_t bytes[];
};

struct udp_client {
    struct client_base base;
    uint64_t retry_ns;
    u_int send_size;
    u_int receive_size;
    char *received;
    uint32_t taken; /* of what the socket's counter has counted; each receive takes one */
    struct room *free_rooms;
};

static struct udp_client *of(CLIENT *client)
{
    return client->cl_private;
}

static struct room *room_get(struct udp_client *udp)
{
    struct room *room = udp->free_rooms;

    if (room != NULL)
        udp->free_rooms = room->next;
    else
        room = malloc(sizeof(*room) + udp->send_size);
    return room;
}

static void transmit(struct udp_client *udp, struct rpc_call *call)
{
    struct room *room = call->message;
    int sent = sss_send_to(udp->base.socket, room->bytes, call->message_bytes,
                           udp->base.server.address, udp->base.server.port);

    rpc_copied(RPC_COPY_SEND, call->message_bytes);
    if (sent < 0)
        rpc_call_fail(call, RPC_CANTSEND, -sent);
}

static void start(CLIENT *client, struct rpc_call *call, xdrproc_t encode, void *arguments)
{
    struct udp_client *udp = of(client);
    struct room *room = room_get(udp);
    XDR xdrs;

    call->xid = client_take_xid(&udp->base);
    call->message = room;
    if (room == NULL) {
        rpc_call_fail(call, RPC_SYSTEMERROR, SSS_ENOMEM);
        return;
    }
    xdrmem_create(&xdrs, (char *)room->bytes, udp->send_size, XDR_ENCODE);
    if (!rpc_call_encode(client, &xdrs, call->xid, udp->base.program, udp->base.version,
                         call->procedure, encode, arguments)) {
        rpc_call_fail(call, RPC_CANTENCODEARGS, 0);
        return;
    }
    call->message_bytes = XDR_GETPOS(&xdrs);
    transmit(udp, call);
    if (call->decode == NULL_xdrproc_t)
        return;
    call->retry_ns = udp->retry_ns;
    call->retry_due_ns = sss_now_ns() + call->retry_ns;
}

static void take_reply(CLIENT *client, u_int length)
{
    struct udp_client *udp = of(client);
    struct rpc_call *call;
    uint32_t xid;
    XDR xdrs;

    if (length < sizeof(xid))
        return;
    memcpy(&xid, udp->received, sizeof(xid));
    call = rpc_call_find(client, ntohl(xid));
    if (call == NULL)
        return; /* an answer to a request that was sent again, or to a call that was given up */
    xdrmem_create(&xdrs, udp->received, length, XDR_DECODE);
    rpc_call_reply(call, &xdrs);
}

static void receive_one(CLIENT *client)
{
    struct udp_client *udp = of(client);
    uint32_t counter = *rpc_socket_counter(udp->base.socket);
    struct sss_peer from;
    int length = sss_receive_from(udp->base.socket, udp->received, udp->receive_size, &from);

    udp->taken++;
    if (length == -SSS_EAGAIN)
        udp->taken = counter;
    else if (length == -SSS_ECONNREFUSED)
        client_fail_all(client, RPC_CANTRECV, SSS_ECONNREFUSED);
    else if (length >= 0 && from.address == udp->base.server.address &&
             from.port == udp->base.server.port) {
        rpc_copied(RPC_COPY_RECEIVE, (size_t)length);
        take_reply(client, (u_int)length);
    }
}

/* Sends again what is due -> when the next will be. The interval doubles each time. */
static uint64_t retry(CLIENT *client)
{
    struct udp_client *udp = of(client);
    uint64_t now = sss_now_ns();
    uint64_t due = UINT64_MAX;

    for (struct rpc_call *call = udp->base.calls; call != NULL; call = call->next) {
        if (call->status != RPC_INPROGRESS)
            continue;
        if (call->retry_due_ns <= now) {
            call->retry_ns = call->retry_ns * 2 < RETRY_MOST_NS ? call->retry_ns * 2
                                                                : RETRY_MOST_NS;
            call->retry_due_ns = now + call->retry_ns;
            call->retransmits++;
            udp->base.retransmits++;
            transmit(udp, call);
        }
        if (call->retry_due_ns < due)
            due = call->retry_due_ns;
    }
    return due;
}

static unsigned progress(CLIENT *client, struct sss_wait words[SSS_WAITS], uint64_t *due_ns)
{
    struct udp_client *udp = of(client);
    const volatile uint32_t *counter = rpc_socket_counter(udp->base.socket);

    while (udp->taken != *counter)
        receive_one(client);
    *due_ns = retry(client);
    words[0] = (struct sss_wait){.address = counter, .seen = udp->taken};
    return 1;
}

static void abandon(CLIENT *client, struct rpc_call *call)
{
    struct udp_client *udp = of(client);
    struct room *room = call->message;

    if (room == NULL)
        return;
    room->next = udp->free_rooms;
    udp->free_rooms = room;
}

static bool_t control(CLIENT *client, u_int request, void *info)
{
    struct udp_client *udp = of(client);
    struct timeval *time = info;

    switch (request) {
    case CLSET_RETRY_TIMEOUT:
        if (rpc_timeval_ns(*time) == 0)
            return FALSE;
        udp->retry_ns = rpc_timeval_ns(*time);
        return TRUE;
    case CLGET_RETRY_TIMEOUT:
        *time = client_timeval(udp->retry_ns);
        return TRUE;
    default:
        return client_control(client, request, info);
    }
}

static void destroy(CLIENT *client)
{
    struct udp_client *udp = of(client);

    while (udp->free_rooms != NULL) {
        struct room *room = udp->free_rooms;

        udp->free_rooms = room->next;
        free(room);
    }
    free(udp->received);
    client_destroy(client);
}

/* A whole number of words that a datagram can be. */
static u_int message_size(u_int bytes)
{
    if (bytes < MESSAGE_LEAST)
        bytes = MESSAGE_LEAST;
    return bytes > MESSAGE_MOST ? MESSAGE_MOST : RNDUP(bytes);
}

CLIENT *client_udp(const struct sockaddr_in *server, rpcprog_t program, rpcvers_t version,
                   struct timeval retry_time, int *sockp, u_int sendsize, u_int recvsize)
{
    static const struct clnt_ops ops = {client_call,    client_abort, client_geterr,
                                        client_freeres, destroy,      control};
    static const struct clnt_async_ops async = {start, progress, abandon, client_calls};
    struct udp_client *udp = mem_alloc(sizeof(*udp));
    CLIENT *client;

    if (udp == NULL)
        return client_refused(RPC_SYSTEMERROR, SSS_ENOMEM);
    udp->retry_ns = rpc_timeval_ns(retry_time);
    udp->send_size = message_size(sendsize);
    udp->receive_size = message_size(recvsize);
    udp->received = malloc(udp->receive_size);
    if (udp->received == NULL) {
        free(udp);
        return client_refused(RPC_SYSTEMERROR, SSS_ENOMEM);
    }
    client = client_create(&udp->base, "udp", IPPROTO_UDP, server, program, version, sockp);
    if (client == NULL) {
        free(udp->received);
        free(udp);
        return NULL;
    }
    client->cl_ops = &ops;
    client->cl_async = &async;
    return client;
}
