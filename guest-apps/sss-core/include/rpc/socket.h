/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The sockets of the runtime: each has a word of its own that the kernel increments when something
 * has changed. */
#include <sss/abi.h>
#include <stdint.h>

/* A socket bound to `port` (0: one that the kernel chooses) of any address -> socket, or a negative
 * enum sss_error. */
int rpc_socket(int protocol, uint16_t port);
/* likewise; -SSS_EAGAIN where no connection waits */
int rpc_socket_accept(int listener, struct sss_peer *peer);
const volatile uint32_t *rpc_socket_counter(int socket);
uint16_t rpc_socket_port(int socket); /* its own, host byte order */
void rpc_socket_close(int socket);
