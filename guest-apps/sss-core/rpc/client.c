/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <rpc/socket.h>
#include <sss/system.h>

enum { NS_PER_US = 1000, US_PER_S = 1000000 };

struct rpc_createerr rpc_createerr;

static struct client_base *base_of(CLIENT *client)
{
    return client->cl_private;
}

CLIENT *client_refused(enum clnt_stat status, int error)
{
    rpc_createerr.cf_stat = status;
    rpc_createerr.cf_error = (struct rpc_err){.re_status = status};
    rpc_createerr.cf_error.re_errno = error;
    return NULL;
}

struct timeval client_timeval(uint64_t ns)
{
    uint64_t us = ns / NS_PER_US;

    return (struct timeval){.tv_sec = (time_t)(us / US_PER_S),
                            .tv_usec = (suseconds_t)(us % US_PER_S)};
}

CLIENT *client_create(struct client_base *base, const char *netid, int protocol,
                      const struct sockaddr_in *server, rpcprog_t program, rpcvers_t version,
                      int *sockp)
{
    CLIENT *client;

    *base = (struct client_base){
        .socket = *sockp,
        .server = {.address = ntohl(server->sin_addr.s_addr), .port = ntohs(server->sin_port)},
        .program = program,
        .version = version,
        .next_xid = rpc_next_xid(),
    };
    if (base->socket < 0) {
        base->socket = rpc_socket(protocol, 0);
        base->owns_socket = true;
    }
    if (base->socket < 0)
        return client_refused(RPC_SYSTEMERROR, -base->socket);
    client = mem_alloc(sizeof(*client));
    if (client == NULL) {
        if (base->owns_socket)
            rpc_socket_close(base->socket);
        return client_refused(RPC_SYSTEMERROR, SSS_ENOMEM);
    }
    client->cl_auth = authnone_create();
    client->cl_private = base;
    client->cl_netid = netid;
    *sockp = base->socket;
    return client;
}

uint32_t client_take_xid(struct client_base *base)
{
    return base->next_xid++;
}

void client_fail_all(CLIENT *client, enum clnt_stat status, int error)
{
    for (struct rpc_call *call = base_of(client)->calls; call != NULL; call = call->next)
        if (call->status == RPC_INPROGRESS)
            rpc_call_fail(call, status, error);
}

/* As in Sun's library, a call that is given no time and yet a result filter is sent, and "times
 * out" at once. */
enum clnt_stat client_call(CLIENT *client, rpcproc_t procedure, xdrproc_t encode, void *arguments,
                           xdrproc_t decode, void *result, struct timeval timeout)
{
    struct client_base *base = base_of(client);
    uint64_t timeout_ns = base->timeout_is_set ? base->timeout_ns : rpc_timeval_ns(timeout);

    return rpc_call_now(client, procedure, encode, arguments, decode, result, timeout_ns,
                        &base->error);
}

void client_abort(CLIENT *client)
{
    (void)client;
}

void client_geterr(CLIENT *client, struct rpc_err *error)
{
    *error = base_of(client)->error;
}

bool_t client_freeres(CLIENT *client, xdrproc_t proc, void *result)
{
    (void)client;
    xdr_free(proc, result);
    return TRUE;
}

struct rpc_call **client_calls(CLIENT *client)
{
    return &base_of(client)->calls;
}

static void get_server(const struct client_base *base, struct sockaddr_in *address)
{
    *address = (struct sockaddr_in){.sin_family = AF_INET,
                                    .sin_port = htons(base->server.port),
                                    .sin_addr.s_addr = htonl(base->server.address)};
}

bool_t client_control(CLIENT *client, u_int request, void *info)
{
    struct client_base *base = base_of(client);

    switch (request) {
    case CLSET_TIMEOUT:
        base->timeout_ns = rpc_timeval_ns(*(struct timeval *)info);
        base->timeout_is_set = true;
        return TRUE;
    case CLGET_TIMEOUT:
        *(struct timeval *)info = client_timeval(base->timeout_ns);
        return TRUE;
    case CLGET_SERVER_ADDR:
        get_server(base, info);
        return TRUE;
    case CLGET_FD:
        *(int *)info = base->socket;
        return TRUE;
    case CLSET_FD_CLOSE:
    case CLSET_FD_NCLOSE:
        base->owns_socket = request == CLSET_FD_CLOSE;
        return TRUE;
    case CLGET_XID:
        *(uint32_t *)info = base->next_xid - 1;
        return TRUE;
    case CLSET_XID:
        base->next_xid = *(uint32_t *)info;
        return TRUE;
    case CLGET_VERS:
        *(rpcvers_t *)info = base->version;
        return TRUE;
    case CLSET_VERS:
        base->version = *(rpcvers_t *)info;
        return TRUE;
    case CLGET_PROG:
        *(rpcprog_t *)info = base->program;
        return TRUE;
    case CLSET_PROG:
        base->program = *(rpcprog_t *)info;
        return TRUE;
    case CLGET_RETRANSMITS:
        *(unsigned *)info = base->retransmits;
        return TRUE;
    case CLGET_LOCAL_PORT:
        *(unsigned *)info = rpc_socket_port(base->socket);
        return TRUE;
    default:
        return FALSE;
    }
}

void client_destroy(CLIENT *client)
{
    struct client_base *base = base_of(client);

    client_fail_all(client, RPC_FAILED, 0);
    if (base->owns_socket)
        rpc_socket_close(base->socket);
    free(base);
    free(client);
}
