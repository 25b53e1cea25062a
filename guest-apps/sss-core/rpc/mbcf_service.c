/* SPDX-License-Identifier: Apache-2.0 */
#include "mbcf_service.h"

#include <rpc/copies.h>
#include <stdlib.h>
#include <string.h>

static struct mbm_service *of(SVCXPRT *transport)
{
    return transport->xp_p1;
}

/* Nothing but AUTH_NONE twice: the words of the header are then at fixed places. */
static bool is_plain_call(const char *message, uint32_t length)
{
    const uint32_t *words = (const uint32_t *)message;

    return length >= MBM_CALL_HEADER && words[1] == 0 && mbm_word(message, 2) == RPC_MSG_VERSION &&
           (words[6] | words[7] | words[8] | words[9]) == 0;
}

static bool_t receive(SVCXPRT *transport, struct rpc_msg *call)
{
    struct mbm_service *service = of(transport);

    if (is_plain_call(service->message, service->length)) {
        call->rm_xid = mbm_word(service->message, 0);
        call->rm_direction = CALL;
        call->rm_call.cb_rpcvers = RPC_MSG_VERSION;
        call->rm_call.cb_prog = mbm_word(service->message, 3);
        call->rm_call.cb_vers = mbm_word(service->message, 4);
        call->rm_call.cb_proc = mbm_word(service->message, 5);
        call->rm_call.cb_cred.oa_flavor = call->rm_call.cb_verf.oa_flavor = AUTH_NONE;
        call->rm_call.cb_cred.oa_length = call->rm_call.cb_verf.oa_length = 0;
        xdrmem_create(&service->arguments, service->message + MBM_CALL_HEADER, service->length - MBM_CALL_HEADER,
                      XDR_DECODE);
        return TRUE;
    }
    xdrmem_create(&service->arguments, service->message, service->length, XDR_DECODE);
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
    struct mbm_service *service = of(transport);
    u_int before = XDR_GETPOS(&service->arguments);
    bool_t fine = decode(&service->arguments, arguments);

    rpc_copied(RPC_COPY_DECODE, XDR_GETPOS(&service->arguments) - before);
    return fine;
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

static bool is_plain_reply(const struct rpc_msg *reply)
{
    return reply->rm_reply.rp_stat == MSG_ACCEPTED && reply->acpted_rply.ar_stat == SUCCESS &&
           reply->acpted_rply.ar_verf.oa_length == 0 && reply->acpted_rply.ar_verf.oa_flavor == AUTH_NONE;
}

/* -> bytes, 0 where it cannot be encoded in what the client takes. */
static uint32_t encode_reply(struct mbm_service *service, struct rpc_msg *reply)
{
    uint32_t most = service->origin.reply_most < service->message_most ? service->origin.reply_most
                                                                       : (uint32_t)service->message_most;
    XDR xdrs;

    if (most < MBM_REPLY_HEADER)
        return 0;
    if (!is_plain_reply(reply)) {
        xdrmem_create(&xdrs, service->reply, most, XDR_ENCODE);
        return xdr_replymsg(&xdrs, reply) ? XDR_GETPOS(&xdrs) : 0;
    }
    mbm_put(service->reply, 0, reply->rm_xid);
    mbm_put(service->reply, 1, REPLY);
    memset(service->reply + 8, 0, MBM_REPLY_HEADER - 8);
    if (reply->acpted_rply.ar_results.proc == (xdrproc_t)xdr_void)
        return MBM_REPLY_HEADER;
    xdrmem_create(&xdrs, service->reply + MBM_REPLY_HEADER, most - MBM_REPLY_HEADER, XDR_ENCODE);
    if (!reply->acpted_rply.ar_results.proc(&xdrs, reply->acpted_rply.ar_results.where))
        return 0;
    rpc_copied(RPC_COPY_ENCODE, XDR_GETPOS(&xdrs));
    return MBM_REPLY_HEADER + XDR_GETPOS(&xdrs);
}

static bool_t answer(SVCXPRT *transport, struct rpc_msg *reply)
{
    struct mbm_service *service = of(transport);
    uint32_t length;

    reply->rm_xid = service->origin.caller.xid;
    reply->rm_direction = REPLY;
    length = encode_reply(service, reply);
    if (length == 0 && is_plain_reply(reply)) {
        reply->acpted_rply.ar_stat = SYSTEM_ERR; /* longer than the client takes, or not of its type */
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
    static const struct xp_ops operations = {receive, idle, get_arguments, answer, free_arguments, destroy};

    service->transport = (SVCXPRT){.xp_fd = -1, .xp_ops = &operations, .xp_p1 = service, .xp_netid = netid};
    service->message_most = message_most;
    service->reply = malloc(message_most);
    return service->reply != NULL;
}

void mbm_service_call(struct mbm_service *service, const struct mbm_origin *origin, void *message, uint32_t length)
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
