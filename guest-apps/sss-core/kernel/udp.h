/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct socket;

enum { UDP_LARGEST = 65507 /* 65535 - 20 - 8 */ };

void socket_udp_init(void);
long socket_udp_open(struct socket *socket); /* -> 0 or a negative error */
void socket_udp_close(struct socket *socket);
long socket_send_to(struct socket *socket, uint64_t data, uint64_t length, uint64_t address,
                    uint64_t port);
long socket_receive_from(struct socket *socket, uint64_t data, uint64_t size, uint64_t peer);
/* Port unreachable for a datagram of this node: the socket's next receive returns ECONNREFUSED.
 * lwIP drops these. */
void socket_note_unreachable(const uint8_t *frame, size_t length);
