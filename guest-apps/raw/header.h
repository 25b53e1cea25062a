/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "functions.h"

/*
 * The payload of the raw workloads (harness/schemas/README.md, "Samples"), big endian:
 *
 *      0        4          8         12        16
 *      | "SDL1" | sequence | length | attempt | pattern from byte 16 on |
 *
 * `length` counts the whole payload. `attempt` is 0 in a first datagram and counts up with each
 * retransmission. A datagram shorter than 16 bytes holds the beginning of this.
 *
 * A call of one of the twelve functions has "SDF" and the function's number in the place of "SDL1",
 * and in that of the pattern the argument or the result (values.h).
 */
enum { HEADER_BYTES = 16 };

struct header {
    uint32_t sequence;
    uint32_t length;
    uint32_t attempt;
    enum function function; /* 0: an echo */
};

/* Writes a payload of `size` bytes. */
void header_make_payload(uint8_t *payload, size_t size, uint32_t sequence, uint32_t attempt);

/* Changes the attempt of a payload that has been made. */
void header_set_attempt(uint8_t *payload, size_t size, uint32_t attempt);

/* Reads the header; false if these are not the first 16 bytes of a payload. */
bool header_read(const uint8_t *bytes, size_t length, struct header *header);

/* Whether `bytes` are a whole payload of exactly `size` bytes of this call, in any attempt. */
bool header_is_payload(const uint8_t *bytes, size_t size, uint32_t sequence);

/* Whether `bytes` are a whole payload of any call, of a function too: what a server can check. */
bool header_is_any_payload(const uint8_t *bytes, size_t size);

/* ---- functions ---- */

/* Bytes of a call, and of what it returns. */
size_t header_call_size(enum function function);
size_t header_return_size(enum function function);

void header_make_call(uint8_t *message, enum function function, uint32_t sequence,
                      uint32_t attempt);

/* What goes back for a message of `length` bytes, whose length it becomes: the message itself, or
 * in `room` what the function returns. */
enum { ANSWER_ROOM = HEADER_BYTES + 8 };
const uint8_t *header_answer(const uint8_t *message, uint8_t room[ANSWER_ROOM], size_t *length);

/* Whether it is what this call of a function returns, in any attempt. */
bool header_is_return(const uint8_t *message, enum function function, uint32_t sequence);
