/* SPDX-License-Identifier: Apache-2.0 */
#include "transport.h"

#include <rpc/socket.h>

enum { PLAIN_REPLY_WORDS = 6 };

int transport_socket(int socket, int protocol)
{
    return socket == RPC_ANYSOCK ? rpc_socket(protocol, 0) : socket;
}

void transport_set_caller(SVCXPRT *transport, const struct sss_peer *peer)
{
    transport->xp_raddr = (struct sockaddr_in){.sin_family = AF_INET,
                                               .sin_port = htons(peer->port),
                                               .sin_addr.s_addr = htonl(peer->address)};
    transport->xp_addrlen = sizeof(transport->xp_raddr);
    transport->xp_peer_task = peer->task;
}

static bool is_plain(const struct rpc_msg *reply)
{
    const struct accepted_reply *accepted = &reply->acpted_rply;

    return reply->rm_reply.rp_stat == MSG_ACCEPTED && accepted->ar_stat == SUCCESS &&
           accepted->ar_verf.oa_flavor == AUTH_NONE && accepted->ar_verf.oa_length == 0;
}

bool_t transport_encode_reply(XDR *xdrs, struct rpc_msg *reply)
{
    const struct accepted_reply *accepted = &reply->acpted_rply;
    int32_t *words;

    if (!is_plain(reply))
        return xdr_replymsg(xdrs, reply);
    words = XDR_INLINE(xdrs, PLAIN_REPLY_WORDS * BYTES_PER_XDR_UNIT);
    if (words == NULL)
        return xdr_replymsg(xdrs, reply);
    IXDR_PUT_U_INT32(words, reply->rm_xid);
    IXDR_PUT_ENUM(words, REPLY);
    IXDR_PUT_ENUM(words, MSG_ACCEPTED);
    IXDR_PUT_ENUM(words, AUTH_NONE);
    IXDR_PUT_U_INT32(words, 0);
    IXDR_PUT_ENUM(words, SUCCESS);
    return accepted->ar_results.proc(xdrs, accepted->ar_results.where);
}

bool_t transport_measure_reply(struct rpc_msg *reply, u_int *bytes)
{
    const struct accepted_reply *accepted = &reply->acpted_rply;

    if (!is_plain(reply))
        return xdr_measure((xdrproc_t)xdr_replymsg, reply, bytes);
    if (!xdr_measure(accepted->ar_results.proc, accepted->ar_results.where, bytes))
        return FALSE;
    *bytes += PLAIN_REPLY_WORDS * BYTES_PER_XDR_UNIT;
    return TRUE;
}
