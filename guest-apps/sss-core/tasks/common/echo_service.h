/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The procedures of echo.x or function_calls.x: of the server task, and of its dummies of type 3b.
 */
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stdint.h>

#include "service.h"

/* What is counted beside enum echo_count. A dummy's counters are words that its dispatcher shares.
 */
enum echo_counter {
    ECHO_COUNT_CALLS_SEEN = ECHO_COUNTS,
    ECHO_COUNT_COPIES,      /* times, by enum rpc_copy */
    ECHO_COUNT_COPIED = 25, /* bytes */
    ECHO_COUNTERS = 30,
};

/* When the server ends itself: before, during or after the execution of its `call`-th call, counted
 * from 1. */
enum echo_death { ECHO_LIVES, ECHO_DIES_BEFORE, ECHO_DIES_DURING, ECHO_DIES_AFTER };
extern const char *const echo_death_names[]; /* "never", "before", "during", "after", NULL */

struct echo_service {
    const struct service_program *program;
    volatile uint64_t *counters; /* ECHO_COUNTERS */
    enum echo_death death;
    uint64_t death_call;
    void (*last_words)(void); /* before it ends itself; NULL: none */
};
extern struct echo_service echo_service;

/* Takes the options "program" and "die". */
void echo_service_read_options(void);
/* Memory for arguments and replies; ends the task where there is none. */
void echo_service_prepare(bool over_sockets);
void echo_service_dispatch(struct svc_req *request, SVCXPRT *transport);
/* Ends the task if the option "die" says so. */
void echo_service_die_if(enum echo_death moment);
/* Puts the copies of this task's runtime among the counters. */
void echo_service_note_copies(void);
