/* SPDX-License-Identifier: Apache-2.0 */
#include <rpc/rpc.h>

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
    return client_refused(RPC_UNKNOWNPROTO, 0);
}
