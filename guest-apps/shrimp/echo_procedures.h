/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The procedures of echo.x. Payloads are checked, and what the next call will get is made, after
 * the replies: neither is in the time of a call.
 */
#pragma once

#include "echo_shrimp.h"
#include "shrimp_vmmc.h"

enum { ECHO_PROCEDURES = 7 };
extern const char *const echo_procedure_names[ECHO_PROCEDURES + 1]; /* by number; then NULL */

struct echo_counts {
    uint64_t by_procedure[ECHO_PROCEDURES];
    uint64_t bad_payload, bytes_in, bytes_out;
    uint64_t
        overtaken; /* payloads over which the client's next call came while they were checked */
};

/* The payload of a call, in the buffer: until the client's next call. */
struct echo_payload {
    const struct shrimp_server *server;
    const uint8_t *data;
    size_t length;
};

/* The context of the procedures: echo_begin. */
struct echo_work {
    struct echo_payload *next;
    struct echo_payload unchecked[SHRIMP_PEERS];
    struct echo_counts counts;
    uint32_t made_sequence, made_size;
    uint8_t made[ECHO_LIMIT];
    bool is_made;
};

void echo_begin(struct echo_work *work);
/* After each turn that has served. */
void echo_after(struct echo_work *work);
