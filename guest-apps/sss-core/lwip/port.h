/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* lwIP on the kernel's adapters and timers. Addresses are in host byte order here. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tcp_pcb;

void port_init(void);
void port_interface(unsigned adapter, uint32_t address, uint32_t netmask, uint16_t mtu);
/* false: on no interface's network, or the table is full */
bool port_neighbour(uint32_t address, const uint8_t mac[6]);
void port_received(unsigned adapter, const uint8_t *frame, size_t length);
bool port_is_own(uint32_t address);

/*
 * After anything has been done with lwIP, and before the kernel goes on: delivers what was sent to
 * this node itself, and arms the timers of the protocols that wait for something.
 */
void port_settle(void);
/* no connection, no fragment, no unanswered ARP request is left; nothing is sent */
void port_restart(void);

/* Given by sockets.c: a TCP segment goes out that went out before. */
void sockets_segment_again(const struct tcp_pcb *pcb);
