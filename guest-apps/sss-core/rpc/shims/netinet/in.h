/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sys/socket.h>

typedef uint32_t in_addr_t;
typedef uint16_t in_port_t;

#define IPPROTO_TCP     6
#define IPPROTO_UDP     17
#define INADDR_ANY      ((in_addr_t)0)
#define INADDR_LOOPBACK ((in_addr_t)0x7f000001)

struct in_addr {
    in_addr_t s_addr; /* network byte order */
};
struct sockaddr_in {
    sa_family_t sin_family;
    in_port_t sin_port; /* network byte order */
    struct in_addr sin_addr;
    unsigned char sin_zero[8];
};

static inline uint32_t htonl(uint32_t value)
{
    return __builtin_bswap32(value);
}
static inline uint32_t ntohl(uint32_t value)
{
    return __builtin_bswap32(value);
}
static inline uint16_t htons(uint16_t value)
{
    return __builtin_bswap16(value);
}
static inline uint16_t ntohs(uint16_t value)
{
    return __builtin_bswap16(value);
}
