/* SPDX-License-Identifier: Apache-2.0 */
#include <rpc/rpc.h>
#include <rpc/vrpc.h>

#include "client.h"

enum { RETRY_S = 5 };

/* "10.0.0.1", and nothing else */
static bool parse_address(const char *text, struct in_addr *address)
{
    uint32_t value = 0;

    for (unsigned part = 0; part < 4; part++) {
        uint32_t octet = 0;
        unsigned digits = 0;

        for (; *text >= '0' && *text <= '9' && digits < 4; digits++)
            octet = octet * 10 + (uint32_t)(*text++ - '0');
        if (digits == 0 || octet > 255 || *text != (part < 3 ? '.' : '\0'))
            return false;
        text++;
        value = value << 8 | octet;
    }
    address->s_addr = htonl(value);
    return true;
}

/* Asks the server's portmapper where the port is 0. False with rpc_createerr. */
static bool bind_port(struct sockaddr_in *server, rpcprog_t program, rpcvers_t version,
                      int protocol)
{
    if (server->sin_port == 0)
        server->sin_port = htons(pmap_getport(server, program, version, (u_int)protocol));
    return server->sin_port != 0;
}

CLIENT *clntudp_bufcreate(struct sockaddr_in *server, rpcprog_t program, rpcvers_t version,
                          struct timeval retry_time, int *sockp, u_int sendsize, u_int recvsize)
{
    if (!bind_port(server, program, version, IPPROTO_UDP))
        return NULL;
    return client_udp(server, program, version, retry_time, sockp, sendsize, recvsize);
}

CLIENT *clntudp_create(struct sockaddr_in *server, rpcprog_t program, rpcvers_t version,
                       struct timeval retry_time, int *sockp)
{
    return clntudp_bufcreate(server, program, version, retry_time, sockp, UDPMSGSIZE, UDPMSGSIZE);
}

CLIENT *clnttcp_create(struct sockaddr_in *server, rpcprog_t program, rpcvers_t version, int *sockp,
                       u_int sendsize, u_int recvsize)
{
    if (!bind_port(server, program, version, IPPROTO_TCP))
        return NULL;
    return client_tcp(server, program, version, sockp, sendsize, recvsize);
}

/* What the portmapper knows of such a program is its node. */
static CLIENT *create_vrpc(struct sockaddr_in *server, rpcprog_t program, rpcvers_t version)
{
    uint16_t node = pmap_getport(server, program, version, IPPROTO_VRPC);

    return node == 0 ? NULL : clntvrpc_create(node, program, version, NULL);
}

CLIENT *clnt_create(const char *host, rpcprog_t program, rpcvers_t version, const char *protocol)
{
    struct sockaddr_in server = {.sin_family = AF_INET};
    struct timeval retry = {.tv_sec = RETRY_S};
    int socket = RPC_ANYSOCK;

    if (!parse_address(host, &server.sin_addr))
        return client_refused(RPC_UNKNOWNHOST, 0);
    if (strcmp(protocol, "udp") == 0)
        return clntudp_create(&server, program, version, retry, &socket);
    if (strcmp(protocol, "tcp") == 0)
        return clnttcp_create(&server, program, version, &socket, 0, 0);
    if (strcmp(protocol, "vrpc") == 0)
        return create_vrpc(&server, program, version);
    return client_refused(RPC_UNKNOWNPROTO, 0);
}
