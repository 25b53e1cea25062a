/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lwip/ip_addr.h"

struct socket;

long socket_tcp_open(struct socket *socket); /* -> 0 or a negative error */
/* `quietly`: nothing is sent, as if the node had crashed. */
void socket_tcp_close(struct socket *socket, bool quietly);
long socket_tcp_connect(struct socket *socket, const ip_addr_t *to, uint16_t port);
/* System calls; [0] was the socket's number. */
long socket_listen(struct socket *socket, const uint64_t arguments[6]);
long socket_accept(struct socket *listener, const uint64_t arguments[6]);
long socket_send(struct socket *socket, const uint64_t arguments[6]);
long socket_receive(struct socket *socket, const uint64_t arguments[6]);
