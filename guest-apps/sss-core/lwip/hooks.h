/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lwip/ip_addr.h"

struct tcp_hdr;
struct tcp_pcb;

/* The Internet checksum's sum of `length` bytes (RFC 1071), not complemented, in the order of
 * memory. */
u16_t port_checksum(const void *data, int length);

/* RFC 6528: a clock of 4 us and a hash of the connection. */
u32_t port_initial_sequence(const ip_addr_t *local, u16_t local_port, const ip_addr_t *remote,
                            u16_t remote_port);

/* Sees every TCP segment that goes out, and adds no option. */
u32_t *port_segment_out(const struct tcp_hdr *header, const struct tcp_pcb *pcb, u32_t *options);
