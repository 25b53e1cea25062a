/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The service on the own runtime: over MBCF arguments stay where they have arrived. */
#include "echo_service.h"

static inline void service_count(unsigned counter, uint64_t by)
{
    echo_service.counters[counter] += by;
}

static inline char *service_argument(const SVCXPRT *transport, char *buffer)
{
    return transport->xp_fd < 0 ? NULL : buffer;
}

static inline void service_free(SVCXPRT *transport, xdrproc_t filter, void *arguments)
{
    if (transport->xp_fd < 0)
        svc_freeargs(transport, filter, arguments);
}

/* From here on the call counts as executed. */
static inline void service_execute(void)
{
    service_count(ECHO_COUNT_EXECUTED, 1);
    echo_service_die_if(ECHO_DIES_DURING);
}
