/* SPDX-License-Identifier: Apache-2.0 */
/* What all transports' calls have in common, whether a thread waits for them or not. */
#include <rpc/async.h>
#include <rpc/rpc.h>
#include <sss/system.h>

enum {
    PLAIN_HEADER_WORDS = 10, /* of a call with AUTH_NONE */
    PLAIN_REPLY_WORDS = 6,
};

/* ---- messages ---- */

/* Where the stream is in one piece, a header is ten stores. */
static bool_t put_plain_header(XDR *xdrs, const uint32_t first[6])
{
    int32_t *words = XDR_INLINE(xdrs, PLAIN_HEADER_WORDS * BYTES_PER_XDR_UNIT);

    if (words == NULL)
        return FALSE;
    for (unsigned i = 0; i < 6; i++)
        IXDR_PUT_U_INT32(words, first[i]);
    memset(words, 0, (PLAIN_HEADER_WORDS - 6) * sizeof(*words)); /* two times AUTH_NONE, no bytes */
    return TRUE;
}

bool_t rpc_call_encode(CLIENT *client, XDR *xdrs, uint32_t xid, rpcprog_t program,
                       rpcvers_t version, rpcproc_t procedure, xdrproc_t encode, void *arguments)
{
    uint32_t header[6] = {xid, CALL, RPC_MSG_VERSION, program, version, procedure};

    if (client->cl_auth->ah_cred.oa_flavor != AUTH_NONE || !put_plain_header(xdrs, header)) {
        for (unsigned i = 0; i < 6; i++)
            if (!xdr_uint32_t(xdrs, &header[i]))
                return FALSE;
        if (!AUTH_MARSHALL(client->cl_auth, xdrs))
            return FALSE;
    }
    return encode(xdrs, arguments);
}

/* An accepted, successful reply with an empty verifier, whose words are all 0; else the stream
 * stays where it is. */
static bool_t take_plain_header(XDR *xdrs)
{
    u_int start = XDR_GETPOS(xdrs);
    int32_t *words = XDR_INLINE(xdrs, PLAIN_REPLY_WORDS * BYTES_PER_XDR_UNIT);

    if (words == NULL)
        return FALSE;
    if (words[1] == (int32_t)__builtin_bswap32(REPLY) &&
        (words[2] | words[3] | words[4] | words[5]) == 0)
        return TRUE;
    XDR_SETPOS(xdrs, start);
    return FALSE;
}

static void take_header(struct rpc_call *call, XDR *xdrs, struct rpc_err *error)
{
    char verifier[MAX_AUTH_BYTES];
    struct rpc_msg reply;

    memset(&reply, 0, sizeof(reply));
    reply.acpted_rply.ar_verf.oa_base = verifier;
    reply.acpted_rply.ar_results.proc = (xdrproc_t)xdr_void;
    if (!xdr_replymsg(xdrs, &reply)) {
        error->re_status = RPC_CANTDECODERES;
        return;
    }
    _seterr_reply(&reply, error);
    if (error->re_status == RPC_SUCCESS &&
        !AUTH_VALIDATE(call->client->cl_auth, &reply.acpted_rply.ar_verf)) {
        error->re_status = RPC_AUTHERROR;
        error->re_why = AUTH_INVALIDRESP;
    }
}

void rpc_call_reply(struct rpc_call *call, XDR *xdrs)
{
    call->error.re_status = RPC_SUCCESS;
    if (!take_plain_header(xdrs))
        take_header(call, xdrs, &call->error);
    if (call->error.re_status == RPC_SUCCESS && !call->decode(xdrs, call->result))
        call->error.re_status = RPC_CANTDECODERES;
    call->status = call->error.re_status;
}

void rpc_call_fail(struct rpc_call *call, enum clnt_stat status, int error)
{
    call->error = (struct rpc_err){.re_status = status};
    call->error.re_errno = error;
    call->status = status;
}

struct rpc_call *rpc_call_find(CLIENT *client, uint32_t xid)
{
    struct rpc_call *call = *client->cl_async->calls(client);

    while (call != NULL && (call->xid != xid || call->status != RPC_INPROGRESS))
        call = call->next;
    return call;
}

/* ---- the life of a call ---- */

static void begin(struct rpc_call *call, CLIENT *client, rpcproc_t procedure, xdrproc_t encode,
                  void *arguments, xdrproc_t decode, void *result)
{
    struct rpc_call **place = client->cl_async->calls(client);

    call->next = NULL;
    call->client = client;
    call->procedure = procedure;
    call->decode = decode;
    call->result = result;
    call->status = RPC_INPROGRESS;
    call->error.re_status = RPC_SUCCESS;
    call->retransmits = 0;
    call->retry_due_ns = UINT64_MAX;
    call->message = NULL;
    while (*place != NULL)
        place = &(*place)->next;
    *place = call;
    client->cl_async->start(client, call, encode, arguments);
    if (decode == NULL_xdrproc_t && call->status == RPC_INPROGRESS)
        call->status = RPC_SUCCESS;
}

static void end(struct rpc_call *call)
{
    struct rpc_call **place = call->client->cl_async->calls(call->client);

    while (*place != NULL && *place != call)
        place = &(*place)->next;
    if (*place != NULL)
        *place = call->next;
    call->client->cl_async->abandon(call->client, call);
}

static enum clnt_stat finish(struct rpc_call *call, uint64_t timeout_ns, struct rpc_err *error)
{
    const struct clnt_async_ops *ops = call->client->cl_async;
    uint64_t now = sss_now_ns();
    uint64_t deadline = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
    struct sss_wait words[SSS_WAITS];

    while (call->status == RPC_INPROGRESS) {
        uint64_t due = UINT64_MAX;
        unsigned count = ops->progress(call->client, words, &due);

        if (call->status != RPC_INPROGRESS)
            break;
        now = sss_now_ns();
        if (now >= deadline) {
            rpc_call_fail(call, RPC_TIMEDOUT, 0);
            break;
        }
        if (due > deadline)
            due = deadline;
        if (due > now)
            sss_wait(words, count, due == UINT64_MAX ? SSS_FOREVER : due - now);
    }
    *error = call->error;
    end(call);
    return error->re_status;
}

enum clnt_stat rpc_call_now(CLIENT *client, rpcproc_t procedure, xdrproc_t encode, void *arguments,
                            xdrproc_t decode, void *result, uint64_t timeout_ns,
                            struct rpc_err *error)
{
    struct rpc_call call;

    call.hold = decode == NULL_xdrproc_t && timeout_ns == 0;
    begin(&call, client, procedure, encode, arguments, decode, result);
    return finish(&call, timeout_ns, error);
}

struct rpc_call *rpc_async(CLIENT *client, rpcproc_t procedure, xdrproc_t encode, void *arguments,
                           xdrproc_t decode, void *result)
{
    struct rpc_call *call = malloc(sizeof(*call));

    if (call == NULL)
        return NULL;
    call->hold = false;
    begin(call, client, procedure, encode, arguments, decode, result);
    return call;
}

bool rpc_poll(struct rpc_call *call)
{
    struct sss_wait words[SSS_WAITS];
    uint64_t due = UINT64_MAX;

#ifdef SSS_LINUX
    sss_yield(); /* there no interrupt receives for who only looks */
#endif
    if (call->status == RPC_INPROGRESS)
        call->client->cl_async->progress(call->client, words, &due);
    return call->status != RPC_INPROGRESS;
}

enum clnt_stat rpc_wait_counted(struct rpc_call *call, uint64_t timeout_ns, uint32_t *retransmits)
{
    struct rpc_err error;
    enum clnt_stat status = finish(call, timeout_ns, &error);

    *retransmits = call->retransmits;
    free(call);
    return status;
}

enum clnt_stat rpc_wait(struct rpc_call *call, uint64_t timeout_ns)
{
    uint32_t retransmits;

    return rpc_wait_counted(call, timeout_ns, &retransmits);
}

enum clnt_stat rpc_one_way(CLIENT *client, rpcproc_t procedure, xdrproc_t encode, void *arguments)
{
    struct rpc_call call = {.hold = false};
    struct rpc_err error;

    begin(&call, client, procedure, encode, arguments, NULL_xdrproc_t, NULL);
    return finish(&call, 0, &error);
}
