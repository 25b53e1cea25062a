/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Calls that do not wait: an extension of the Sun RPC interface for every transport whose CLIENT
 * has cl_async.
 *
 *   struct rpc_call *call = rpc_async(client, ECHO_OPAQUE, (xdrproc_t)xdr_echo_data, &data,
 * (xdrproc_t)xdr_echo_data, &back);
 *   ... other calls, on this handle too ...
 *   enum clnt_stat status = rpc_wait(call, 25 * 1000000000ull);
 *
 * A call with a NULL result filter is one-way (the server must not answer it). The argument may be
 * used again as soon as rpc_async has returned; the result must stay until rpc_wait has.
 */
#include <rpc/clnt.h>
#include <sss/abi.h>
#include <stdbool.h>

struct rpc_call {
    struct rpc_call *next; /* calls of one handle that wait for their reply, oldest first */
    CLIENT *client;
    uint32_t xid;
    rpcproc_t procedure;
    xdrproc_t decode;
    void *result;
    enum clnt_stat status; /* RPC_INPROGRESS until it is decided */
    struct rpc_err error;
    uint32_t retransmits;
    uint64_t retry_due_ns; /* of transports that send again; else UINT64_MAX */
    uint64_t retry_ns;     /* the next interval */
    void *message;         /* the transport's: kept for sending again */
    uint32_t message_bytes;
    bool hold; /* may wait for the next call on a stream (Sun's batching) */
};

/* Sends the call. NULL where memory is short; a call that cannot be sent says so in rpc_wait. */
struct rpc_call *rpc_async(CLIENT *client, rpcproc_t procedure, xdrproc_t encode, void *arguments,
                           xdrproc_t decode, void *result);
/* TRUE when rpc_wait would not wait. Takes in what has arrived. */
bool rpc_poll(struct rpc_call *call);
/* Waits for the reply, at most `timeout_ns`; the call is over then, whatever came, and `call` is
 * gone. */
enum clnt_stat rpc_wait(struct rpc_call *call, uint64_t timeout_ns);
/* The same; `retransmits` becomes how often the call was sent again. */
enum clnt_stat rpc_wait_counted(struct rpc_call *call, uint64_t timeout_ns, uint32_t *retransmits);
/* Sends without waiting for any reply. */
enum clnt_stat rpc_one_way(CLIENT *client, rpcproc_t procedure, xdrproc_t encode, void *arguments);

/* ---- for transports ---- */

/*
 * What a transport does for the generic part (rpc/calls.c). `start` gives the call its xid and
 * sends it; where that fails it decides the call (call->status, call->error). `progress` takes in
 * all that has arrived, decides the calls that it answers (rpc_call_find, rpc_call_reply), sends
 * again what is due, fills in the words whose change may bring more, each with the value it had
 * before looking, and in *due_ns when to be called at the latest (UINT64_MAX: never). It never
 * sleeps. `abandon` ends a call that nothing waits for any longer. `calls` gives the head of
 * the list of waiting calls.
 */
struct clnt_async_ops {
    void (*start)(CLIENT *, struct rpc_call *, xdrproc_t encode, void *arguments);
    unsigned (*progress)(CLIENT *, struct sss_wait words[SSS_WAITS], uint64_t *due_ns);
    void (*abandon)(CLIENT *, struct rpc_call *);
    struct rpc_call **(*calls)(CLIENT *);
};

/* A whole clnt_call over start and progress: what cl_call of such a transport is, with its timeout
 * decided. */
enum clnt_stat rpc_call_now(CLIENT *, rpcproc_t, xdrproc_t encode, void *arguments,
                            xdrproc_t decode, void *result, uint64_t timeout_ns,
                            struct rpc_err *error);
struct rpc_call *rpc_call_find(CLIENT *, uint32_t xid);
/* Decodes a reply whose first word has not been taken from `xdrs` yet, and decides the call. */
void rpc_call_reply(struct rpc_call *, XDR *xdrs);
void rpc_call_fail(struct rpc_call *, enum clnt_stat, int error);
/* Encodes a whole call message: header, credential, arguments. */
bool_t rpc_call_encode(CLIENT *, XDR *, uint32_t xid, rpcprog_t, rpcvers_t, rpcproc_t,
                       xdrproc_t encode, void *arguments);
/* Where a handle's transaction numbers begin, from which it counts: far from those of this task's
 * other handles. */
uint32_t rpc_next_xid(void);
static inline uint64_t rpc_timeval_ns(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}
