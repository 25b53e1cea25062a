/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * UDP and TCP over lwIP's raw interface. No call sleeps: if nothing can be done it returns EAGAIN,
 * and the word that the task has named for the socket is incremented as soon as that changes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sss/abi.h"

struct task;

void sockets_init(void);
void sockets_restart(void); /* closes all without sending anything */
void sockets_interface(unsigned adapter, uint32_t address, uint32_t netmask, uint16_t mtu);
/* A static ARP entry. */
void sockets_neighbour(unsigned adapter, uint32_t address, const uint8_t mac[6]);
void sockets_received(unsigned adapter, const uint8_t *frame, size_t length); /* IPv4 and ARP */
void sockets_task_ended(struct task *task);
long sockets_call(unsigned call, const uint64_t arguments[6]); /* SSS_SOCKET... */

struct socket_row {
    uint16_t number, task;
    int protocol; /* SSS_UDP or SSS_TCP */
    struct sss_socket_state state;
};
/* For the monitor; false past the last one. */
bool socket_at(unsigned index, struct socket_row *row);
