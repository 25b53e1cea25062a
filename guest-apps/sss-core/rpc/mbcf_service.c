/* SPDX-License-Identifier: Apache-2.0 */
#include "mbcf_service.h"

#include <rpc/copies.h>
#include <stdlib.h>
#include <string.h>

#include "transport.h"

static struct mbm_service *of(SVCXPRT *transport)
{
    return transport->xp_p1;
}

static bool_t receive(SVCXPRT *transport, struct rpc_msg *call)
{
    struct mbm_service *service = of(transport);

    xdrmem_create(&service->arguments, service->message, service->length, XDR_DECODE);
    /* the message stays where it is until the reply is sent */
    service->arguments.x_in_place = TRUE;
    if (xdr_callmsg(&service->arguments, call))
        return TRUE;
    service->counters.malformed++;
    return FALSE;
}

static enum xprt_stat idle(SVCXPRT *transport)
{
    (void)transport;
    return XPRT_IDLE;
}

static bool_t get_arguments(SVCXPRT *transport, xdrproc_t decode, void *arguments)
{
    return decode(&of(transport)->arguments, arguments);
}

static bool_t free_arguments(SVCXPRT *transport, xdrproc_t decode, void *arguments)
{
    struct mbm_service *service = of(transport);

    service->arguments.x_op = XDR_FREE;
    return decode(&service->arguments, arguments);
}

static void send_reply(struct mbm_service *service, const void *reply, uint32_t length)
{
    service->counters.replies++;
    /* A client that has gone takes none; its connection tells so to who looks after clients. */
    mb_fifo_write(service->origin.ltn, service->origin.replies, reply, length, NULL);
    rpc_copied(RPC_COPY_SEND, length);
}

/* -> bytes, 0 where it cannot be encoded in what the client takes. */
static uint32_t encode_reply(struct mbm_service *service, struct rpc_msg *reply)
{
    uint32_t most = service->origin.reply_most < service->message_most
                        ? service->origin.reply_most
                        : (uint32_t)service->message_most;
    XDR xdrs;

    xdrmem_create(&xdrs, service->reply, most, XDR_ENCODE);
    if (!transport_encode_reply(&xdrs, reply))
        return 0;
    return XDR_GETPOS(&xdrs);
}

static bool_t answer(SVCXPRT *transport, struct rpc_msg *reply)
{
    struct mbm_service *service = of(transport);
    uint32_t length;

    reply->rm_xid = service->origin.caller.xid;
    reply->rm_direction = REPLY;
    length = encode_reply(service, reply);
    if (length == 0 && reply->rm_reply.rp_stat == MSG_ACCEPTED &&
        reply->acpted_rply.ar_stat == SUCCESS) {
        /* longer than the client takes, or not of its type */
        reply->acpted_rply.ar_stat = SYSTEM_ERR;
        length = encode_reply(service, reply);
    }
    if (length == 0)
        return FALSE;
    if (service->cache != NULL)
        mbm_cache_keep(service->cache, &service->origin.caller, service->reply, length);
    send_reply(service, service->reply, length);
    return TRUE;
}

static void destroy(SVCXPRT *transport)
{
    (void)transport; /* one for each task, as long as it lives */
}

bool mbm_service_init(struct mbm_service *service, size_t message_most, const char *netid)
{
    static const struct xp_ops operations = {receive, idle,           get_arguments,
                                             answer,  free_arguments, destroy};

    service->transport =
        (SVCXPRT){.xp_fd = -1, .xp_ops = &operations, .xp_p1 = service, .xp_netid = netid};
    service->message_most = message_most;
    service->reply = malloc(message_most);
    return service->reply != NULL;
}

void mbm_service_call(struct mbm_service *service, const struct mbm_origin *origin, void *message,
                      uint32_t length)
{
    const void *kept;

    if (length < MBM_CALL_HEADER) {
        service->counters.malformed++;
        return;
    }
    service->counters.requests++;
    service->origin = *origin;
    service->origin.caller.xid = mbm_word(message, 0);
    service->message = message;
    service->length = length;
    if (service->cache != NULL &&
        (kept = mbm_cache_find(service->cache, &service->origin.caller, &length)) != NULL) {
        service->counters.replayed++;
        send_reply(service, kept, length);
        return;
    }
    service->transport.xp_raddr.sin_addr.s_addr = origin->caller.node;
    service->transport.xp_raddr.sin_port = origin->caller.task;
    svc_getreq_transport(&service->transport);
}
