/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The procedures of echo.x and of function_calls.x. What differs between libtirpc and the own
 * runtime is in service_port.h, of which each of them has one: service_count, service_argument,
 * service_free and service_execute.
 */
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>

#include "functions.h"

/* What is counted by all services. */
enum echo_count {
    ECHO_COUNT_CALLS, /* one for each procedure */
    ECHO_PROCEDURES = FUNCTIONS + 1,
    ECHO_COUNT_EXECUTED = ECHO_PROCEDURES,
    ECHO_COUNT_BAD_PAYLOAD,
    ECHO_COUNT_UNDECODABLE,
    ECHO_COUNT_BYTES_IN,
    ECHO_COUNT_BYTES_OUT,
    ECHO_COUNT_DUPLICATES,
    ECHO_COUNTS,
};

/* What a server serves: one of them. */
struct service_program {
    rpcprog_t number;
    rpcvers_t version;
    rpcproc_t first, end;     /* its procedures; `end` is none any more */
    const char *const *names; /* from that of `first` on */
    void (*serve)(struct svc_req *request, SVCXPRT *transport);
};
extern const struct service_program service_programs[];
/* In their order; ended by NULL. */
extern const char *const service_program_names[];

/* Memory for arguments and replies of at most `bytes`; false: there is none. */
bool service_prepare(size_t bytes);
/* Executes a call of one of its procedures. */
void service_serve(const struct service_program *program, struct svc_req *request,
                   SVCXPRT *transport);
/* Whether the program has the procedure that is called; answers the caller where it has not. */
bool service_has(const struct service_program *program, const struct svc_req *request,
                 SVCXPRT *transport);
