/* SPDX-License-Identifier: Apache-2.0 */
#include "echo_service.h"

#include <rpc/copies.h>
#include <stdlib.h>
#include <string.h>

#include "duplicates.h"
#include "echo.h"
#include "options.h"
#include "service_port.h"
#include "sss/system.h"

enum {
    MBCF_PAYLOAD_MOST = 131072, /* MBCF carries no more */
};
_Static_assert(ECHO_COUNT_COPIES + RPC_COPIES == ECHO_COUNT_COPIED &&
                   ECHO_COUNT_COPIED + RPC_COPIES == ECHO_COUNTERS,
               "a counter for each kind of copy");

const char *const echo_death_names[] = {"never", "before", "during", "after", NULL};

struct echo_service echo_service;

void echo_service_read_options(void)
{
    echo_service.program = &service_programs[options_word("program", service_program_names)];
    if (!options_enter("die"))
        return;
    echo_service.death = (enum echo_death)options_word("when", echo_death_names);
    echo_service.death_call = (uint64_t)options_integer("call", 1, 1, INT64_MAX);
    options_leave();
}

void echo_service_prepare(bool over_sockets)
{
    if (!service_prepare(over_sockets ? ECHO_LIMIT : MBCF_PAYLOAD_MOST))
        task_fail("out of memory");
}

void echo_service_note_copies(void)
{
    for (unsigned i = 0; i < RPC_COPIES; i++) {
        echo_service.counters[ECHO_COUNT_COPIES + i] = rpc_copies.times[i];
        echo_service.counters[ECHO_COUNT_COPIED + i] = rpc_copies.bytes[i];
    }
}

void echo_service_die_if(enum echo_death moment)
{
    if (echo_service.death != moment ||
        echo_service.counters[ECHO_COUNT_CALLS_SEEN] != echo_service.death_call)
        return;
    echo_service_note_copies();
    if (echo_service.last_words != NULL)
        echo_service.last_words();
    sss_exit(0);
}

void echo_service_dispatch(struct svc_req *request, SVCXPRT *transport)
{
    if (!service_has(echo_service.program, request, transport))
        return;
    service_count(ECHO_COUNT_CALLS_SEEN, 1);
    echo_service_die_if(ECHO_DIES_BEFORE);
    service_serve(echo_service.program, request, transport);
    service_count(ECHO_COUNT_CALLS + request->rq_proc, 1);
    if (duplicates_note(request->rq_xid, svc_getcaller(transport)))
        service_count(ECHO_COUNT_DUPLICATES, 1);
    echo_service_die_if(ECHO_DIES_AFTER);
}
