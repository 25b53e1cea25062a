/* SPDX-License-Identifier: Apache-2.0 */
/* The RPC message (RFC 5531 section 9). */
#include <rpc/rpc.h>

bool_t xdr_opaque_auth(XDR *xdrs, struct opaque_auth *auth)
{
    return xdr_enum(xdrs, &auth->oa_flavor) &&
           xdr_bytes(xdrs, &auth->oa_base, &auth->oa_length, MAX_AUTH_BYTES);
}

static bool_t code_versions(XDR *xdrs, rpcvers_t *low, rpcvers_t *high)
{
    return xdr_u_int(xdrs, low) && xdr_u_int(xdrs, high);
}

bool_t xdr_accepted_reply(XDR *xdrs, struct accepted_reply *reply)
{
    enum_t status = (enum_t)reply->ar_stat;

    if (!xdr_opaque_auth(xdrs, &reply->ar_verf) || !xdr_enum(xdrs, &status))
        return FALSE;
    reply->ar_stat = (enum accept_stat)status;
    switch (status) {
    case SUCCESS:
        return reply->ar_results.proc(xdrs, reply->ar_results.where);
    case PROG_MISMATCH:
        return code_versions(xdrs, &reply->ar_vers.low, &reply->ar_vers.high);
    default:
        return status >= PROG_UNAVAIL && status <= SYSTEM_ERR;
    }
}

bool_t xdr_rejected_reply(XDR *xdrs, struct rejected_reply *reply)
{
    enum_t status = (enum_t)reply->rj_stat;
    enum_t why = (enum_t)reply->rj_why;

    if (!xdr_enum(xdrs, &status))
        return FALSE;
    reply->rj_stat = (enum reject_stat)status;
    switch (status) {
    case RPC_MISMATCH:
        return code_versions(xdrs, &reply->rj_vers.low, &reply->rj_vers.high);
    case AUTH_ERROR:
        if (!xdr_enum(xdrs, &why))
            return FALSE;
        reply->rj_why = (enum auth_stat)why;
        return TRUE;
    default:
        return FALSE;
    }
}

bool_t xdr_replymsg(XDR *xdrs, struct rpc_msg *message)
{
    enum_t direction = REPLY;
    enum_t status = (enum_t)message->rm_reply.rp_stat;

    if (!xdr_u_int(xdrs, &message->rm_xid) || !xdr_enum(xdrs, &direction) || direction != REPLY ||
        !xdr_enum(xdrs, &status))
        return FALSE;
    message->rm_direction = REPLY;
    message->rm_reply.rp_stat = (enum reply_stat)status;
    switch (status) {
    case MSG_ACCEPTED:
        return xdr_accepted_reply(xdrs, &message->acpted_rply);
    case MSG_DENIED:
        return xdr_rejected_reply(xdrs, &message->rjcted_rply);
    default:
        return FALSE;
    }
}

bool_t xdr_callhdr(XDR *xdrs, struct rpc_msg *message)
{
    enum_t direction = CALL;

    message->rm_direction = CALL;
    message->rm_call.cb_rpcvers = RPC_MSG_VERSION;
    return xdrs->x_op == XDR_ENCODE && xdr_u_int(xdrs, &message->rm_xid) &&
           xdr_enum(xdrs, &direction) && xdr_u_int(xdrs, &message->rm_call.cb_rpcvers) &&
           xdr_u_int(xdrs, &message->rm_call.cb_prog) && xdr_u_int(xdrs, &message->rm_call.cb_vers);
}

/* A call with AUTH_NONE from a stream in one piece; else the stream stays where it is. */
static bool_t take_plain_call(XDR *xdrs, struct rpc_msg *message)
{
    enum { WORDS = 10, FIRST_OF_AUTH = 6 };
    struct call_body *call = &message->rm_call;
    u_int start = XDR_GETPOS(xdrs);
    int32_t *words = XDR_INLINE(xdrs, WORDS * BYTES_PER_XDR_UNIT);

    if (words == NULL)
        return FALSE;
    if (words[1] != 0 || words[2] != (int32_t)__builtin_bswap32(RPC_MSG_VERSION) ||
        (words[FIRST_OF_AUTH] | words[FIRST_OF_AUTH + 1] | words[FIRST_OF_AUTH + 2] |
         words[FIRST_OF_AUTH + 3]) != 0) {
        XDR_SETPOS(xdrs, start);
        return FALSE;
    }
    message->rm_xid = IXDR_GET_U_INT32(words);
    message->rm_direction = CALL;
    call->cb_rpcvers = RPC_MSG_VERSION;
    words += 2;
    call->cb_prog = IXDR_GET_U_INT32(words);
    call->cb_vers = IXDR_GET_U_INT32(words);
    call->cb_proc = IXDR_GET_U_INT32(words);
    call->cb_cred.oa_flavor = AUTH_NONE;
    call->cb_verf.oa_flavor = AUTH_NONE;
    call->cb_cred.oa_length = 0;
    call->cb_verf.oa_length = 0;
    return TRUE;
}

/*
 * Decoding a call of another RPC version succeeds and ends behind cb_rpcvers, so that the server
 * can say RPC_MISMATCH; what follows in it is not known.
 */
bool_t xdr_callmsg(XDR *xdrs, struct rpc_msg *message)
{
    struct call_body *call = &message->rm_call;
    enum_t direction = CALL;

    if (xdrs->x_op == XDR_DECODE && take_plain_call(xdrs, message))
        return TRUE;
    if (!xdr_u_int(xdrs, &message->rm_xid) || !xdr_enum(xdrs, &direction) || direction != CALL ||
        !xdr_u_int(xdrs, &call->cb_rpcvers))
        return FALSE;
    message->rm_direction = CALL;
    if (call->cb_rpcvers != RPC_MSG_VERSION)
        return xdrs->x_op == XDR_DECODE;
    return xdr_u_int(xdrs, &call->cb_prog) && xdr_u_int(xdrs, &call->cb_vers) &&
           xdr_u_int(xdrs, &call->cb_proc) && xdr_opaque_auth(xdrs, &call->cb_cred) &&
           xdr_opaque_auth(xdrs, &call->cb_verf);
}

static enum clnt_stat status_of_accepted(const struct accepted_reply *reply)
{
    switch (reply->ar_stat) {
    case SUCCESS:
        return RPC_SUCCESS;
    case PROG_UNAVAIL:
        return RPC_PROGUNAVAIL;
    case PROG_MISMATCH:
        return RPC_PROGVERSMISMATCH;
    case PROC_UNAVAIL:
        return RPC_PROCUNAVAIL;
    case GARBAGE_ARGS:
        return RPC_CANTDECODEARGS;
    case SYSTEM_ERR:
        return RPC_SYSTEMERROR;
    }
    return RPC_FAILED;
}

void _seterr_reply(struct rpc_msg *message, struct rpc_err *error)
{
    if (message->rm_reply.rp_stat == MSG_ACCEPTED) {
        error->re_status = status_of_accepted(&message->acpted_rply);
        if (error->re_status == RPC_PROGVERSMISMATCH) {
            error->re_vers.low = message->acpted_rply.ar_vers.low;
            error->re_vers.high = message->acpted_rply.ar_vers.high;
        }
        return;
    }
    if (message->rjcted_rply.rj_stat == RPC_MISMATCH) {
        error->re_status = RPC_VERSMISMATCH;
        error->re_vers.low = message->rjcted_rply.rj_vers.low;
        error->re_vers.high = message->rjcted_rply.rj_vers.high;
    } else {
        error->re_status = RPC_AUTHERROR;
        error->re_why = message->rjcted_rply.rj_why;
    }
}
