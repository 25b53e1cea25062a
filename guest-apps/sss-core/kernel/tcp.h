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
long socket_listen(struct socket *socket, uint64_t backlog);
long socket_accept(struct socket *listener, uint64_t counter, uint64_t peer);
long socket_send(struct socket *socket, uint64_t data, uint64_t length);
long socket_receive(struct socket *socket, uint64_t to, uint64_t size);
