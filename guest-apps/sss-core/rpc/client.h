/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the handles of UDP and TCP have in common. */
#include <rpc/async.h>
#include <rpc/rpc.h>

struct client_base { /* the first member of a transport's own; freed with the handle */
    int socket;
    bool owns_socket;
    struct sss_peer server;
    rpcprog_t program;
    rpcvers_t version;
    uint32_t next_xid;
    struct rpc_err error;
    struct rpc_call *calls;
    bool timeout_is_set; /* by CLSET_TIMEOUT */
    uint64_t timeout_ns;
    unsigned retransmits;
};

/* Opens or takes the socket. NULL with rpc_createerr, and then `base` is still the caller's. */
CLIENT *client_create(struct client_base *base, const char *netid, int protocol,
                      const struct sockaddr_in *server, rpcprog_t program, rpcvers_t version,
                      int *sockp);
/* Handles of a server whose port is known: the portmapper's, and what clnt_create.c makes of them
 * when it has asked the portmapper. */
CLIENT *client_udp(const struct sockaddr_in *server, rpcprog_t program, rpcvers_t version,
                   struct timeval retry_time, int *sockp, u_int sendsize, u_int recvsize);
CLIENT *client_tcp(const struct sockaddr_in *server, rpcprog_t program, rpcvers_t version,
                   int *sockp, u_int sendsize, u_int recvsize);
CLIENT *client_refused(enum clnt_stat status, int error); /* sets rpc_createerr -> NULL */
uint32_t client_take_xid(struct client_base *base);
void client_fail_all(CLIENT *client, enum clnt_stat status, int error);
struct timeval client_timeval(uint64_t ns);

/* Members of clnt_ops and clnt_async_ops. */
enum clnt_stat client_call(CLIENT *, rpcproc_t, xdrproc_t, void *, xdrproc_t, void *,
                           struct timeval);
void client_abort(CLIENT *);
void client_geterr(CLIENT *, struct rpc_err *);
bool_t client_freeres(CLIENT *, xdrproc_t, void *);
bool_t client_control(CLIENT *, u_int request, void *info);
void client_destroy(CLIENT *);
struct rpc_call **client_calls(CLIENT *);
