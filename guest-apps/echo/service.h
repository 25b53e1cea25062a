/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The procedures of echo.x. What differs between libtirpc and the own runtime is in
 * service_port.h, of which each of them has one: service_count, service_argument, service_free and
 * service_execute.
 */
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>

/* What is counted by all services. */
enum echo_count {
    ECHO_COUNT_CALLS, /* one for each procedure */
    ECHO_PROCEDURES = 6,
    ECHO_COUNT_EXECUTED = ECHO_PROCEDURES,
    ECHO_COUNT_BAD_PAYLOAD,
    ECHO_COUNT_UNDECODABLE,
    ECHO_COUNT_BYTES_IN,
    ECHO_COUNT_BYTES_OUT,
    ECHO_COUNT_DUPLICATES,
    ECHO_COUNTS,
};

/* Memory for arguments and replies of at most `bytes`; false: there is none. */
bool service_prepare(size_t bytes);
/* Executes a call of a procedure below ECHO_PROCEDURES. */
void service_serve(struct svc_req *request, SVCXPRT *transport);
