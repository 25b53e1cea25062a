/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The payload of the raw workloads (harness/schemas/README.md, "Samples"), big endian:
 *
 *      0        4          8         12        16
 *      | "SDL1" | sequence | length | attempt | pattern from byte 16 on |
 *
 * `length` counts the whole payload. `attempt` is 0 in a first datagram and counts up with each
 * retransmission. A datagram shorter than 16 bytes holds the beginning of this.
 */
enum { HEADER_BYTES = 16 };

struct header {
    uint32_t sequence;
    uint32_t length;
    uint32_t attempt;
};

/* Writes a payload of `size` bytes. */
void header_make_payload(uint8_t *payload, size_t size, uint32_t sequence, uint32_t attempt);

/* Changes the attempt of a payload that has been made. */
void header_set_attempt(uint8_t *payload, size_t size, uint32_t attempt);

/* Reads the header; false if these are not the first 16 bytes of a payload. */
bool header_read(const uint8_t *bytes, size_t length, struct header *header);

/* Whether `bytes` are a whole payload of exactly `size` bytes of this call, in any attempt. */
bool header_is_payload(const uint8_t *bytes, size_t size, uint32_t sequence);

/* Whether `bytes` are a whole payload of any call: what a server can check. */
bool header_is_any_payload(const uint8_t *bytes, size_t size);
