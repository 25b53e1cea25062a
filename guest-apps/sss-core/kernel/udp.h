/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct socket;

enum { UDP_LARGEST = 65507 /* 65535 - 20 - 8 */ };

void socket_udp_init(void);
long socket_udp_open(struct socket *socket); /* -> 0 or a negative error */
void socket_udp_close(struct socket *socket);
/* System calls; [0] was the socket's number. */
long socket_send_to(struct socket *socket, const uint64_t arguments[6]);
long socket_receive_from(struct socket *socket, const uint64_t arguments[6]);

/* Port unreachable for a datagram of this node: the socket's next receive returns ECONNREFUSED.
 * lwIP drops these. */
enum {
    IP_HEADER = 20,
    IP_PROTOCOL_AT = 9,
    ICMP_HEADER = 8,
    UNREACHABLE_BYTES = 2 * IP_HEADER + ICMP_HEADER + 8, /* RFC 792 */
};
/* An Ethernet frame with an ICMP message of that length or more. */
void socket_note_unreachable(const uint8_t *frame);
