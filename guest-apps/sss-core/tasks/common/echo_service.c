/* SPDX-License-Identifier: Apache-2.0 */
#include "echo_service.h"

#include <rpc/copies.h>
#include <stdlib.h>
#include <string.h>

#include "duplicates.h"
#include "echo.h"
#include "options.h"
#include "pattern.h"
#include "sss/system.h"

enum {
    PROCEDURES = 6,
    MBCF_PAYLOAD_MOST = 131072, /* MBCF carries no more */
};
_Static_assert(ECHO_COUNT_COPIES + RPC_COPIES == ECHO_COUNT_COPIED &&
                   ECHO_COUNT_COPIED + RPC_COPIES == ECHO_COUNTERS,
               "a counter for each kind of copy");

const char *const echo_death_names[] = {"never", "before", "during", "after", NULL};

struct echo_service echo_service;

/* Arguments over UDP and TCP are decoded into this, and replies of "source" made in it: no call
 * pays for memory. */
static char *buffer;
static size_t buffer_bytes;

static void count(enum echo_counter counter, uint64_t by)
{
    echo_service.counters[counter] += by;
}

void echo_service_read_options(void)
{
    if (!options_enter("die"))
        return;
    echo_service.death = (enum echo_death)options_word("when", echo_death_names);
    echo_service.death_call = (uint64_t)options_integer("call", 1, 1, INT64_MAX);
    options_leave();
}

void echo_service_prepare(bool over_sockets)
{
    buffer_bytes = over_sockets ? ECHO_LIMIT : MBCF_PAYLOAD_MOST;
    buffer = malloc(buffer_bytes + 1);
    if (buffer == NULL)
        task_fail("out of memory");
}

/* Over MBCF arguments stay where they have arrived. */
static char *argument_place(const SVCXPRT *transport)
{
    return transport->xp_fd < 0 ? NULL : buffer;
}

static void free_arguments(SVCXPRT *transport, xdrproc_t filter, void *arguments)
{
    if (transport->xp_fd < 0)
        svc_freeargs(transport, filter, arguments);
}

void echo_service_note_copies(void)
{
    for (unsigned i = 0; i < RPC_COPIES; i++) {
        echo_service.counters[ECHO_COUNT_COPIES + i] = rpc_copies.times[i];
        echo_service.counters[ECHO_COUNT_COPIED + i] = rpc_copies.bytes[i];
    }
}

static void die_if(enum echo_death moment)
{
    if (echo_service.death != moment ||
        echo_service.counters[ECHO_COUNT_CALLS_SEEN] != echo_service.death_call)
        return;
    echo_service_note_copies();
    if (echo_service.last_words != NULL)
        echo_service.last_words();
    sss_exit(0);
}

/* From here on the call counts as executed. */
static void execute(void)
{
    count(ECHO_COUNT_EXECUTED, 1);
    die_if(ECHO_DIES_DURING);
}

static void undecodable(SVCXPRT *transport)
{
    count(ECHO_COUNT_UNDECODABLE, 1);
    svcerr_decode(transport);
}

/* Replies come first and checks after: what is checked is not part of the time that is measured. */
static void serve_data(const struct svc_req *request, SVCXPRT *transport)
{
    echo_data data = {.echo_data_val = argument_place(transport)};

    if (!svc_getargs(transport, (xdrproc_t)xdr_echo_data, (caddr_t)&data)) {
        undecodable(transport);
        free_arguments(transport, (xdrproc_t)xdr_echo_data, &data);
        return;
    }
    execute();
    count(ECHO_COUNT_BYTES_IN, data.echo_data_len);
    if (request->rq_proc == ECHO_OPAQUE) {
        svc_sendreply(transport, (xdrproc_t)xdr_echo_data, (caddr_t)&data);
        count(ECHO_COUNT_BYTES_OUT, data.echo_data_len);
    } else if (request->rq_proc == ECHO_SINK) {
        svc_sendreply(transport, (xdrproc_t)xdr_void, NULL);
    }
    if (!pattern_matches_any(PATTERN_OPAQUE, data.echo_data_val, data.echo_data_len))
        count(ECHO_COUNT_BAD_PAYLOAD, 1);
    free_arguments(transport, (xdrproc_t)xdr_echo_data, &data);
}

static void serve_text(SVCXPRT *transport)
{
    echo_text text = argument_place(transport);
    size_t length;

    if (!svc_getargs(transport, (xdrproc_t)xdr_echo_text, (caddr_t)&text)) {
        undecodable(transport);
        free_arguments(transport, (xdrproc_t)xdr_echo_text, &text);
        return;
    }
    execute();
    svc_sendreply(transport, (xdrproc_t)xdr_echo_text, (caddr_t)&text);
    length = strlen(text);
    count(ECHO_COUNT_BYTES_IN, length);
    count(ECHO_COUNT_BYTES_OUT, length);
    if (!pattern_matches_any(PATTERN_TEXT, text, length))
        count(ECHO_COUNT_BAD_PAYLOAD, 1);
    free_arguments(transport, (xdrproc_t)xdr_echo_text, &text);
}

static void serve_source(SVCXPRT *transport)
{
    echo_source_request wanted = {0};
    echo_data data = {.echo_data_val = buffer};

    if (!svc_getargs(transport, (xdrproc_t)xdr_echo_source_request, (caddr_t)&wanted) ||
        wanted.size > buffer_bytes) {
        undecodable(transport);
        return;
    }
    execute();
    data.echo_data_len = wanted.size;
    pattern_fill(PATTERN_OPAQUE, wanted.sequence, 0, buffer, wanted.size);
    svc_sendreply(transport, (xdrproc_t)xdr_echo_data, (caddr_t)&data);
    count(ECHO_COUNT_BYTES_OUT, wanted.size);
}

static void serve(struct svc_req *request, SVCXPRT *transport)
{
    switch (request->rq_proc) {
    case ECHO_NULL:
        execute();
        svc_sendreply(transport, (xdrproc_t)xdr_void, NULL);
        break;
    case ECHO_STRING:
        serve_text(transport);
        break;
    case ECHO_SOURCE:
        serve_source(transport);
        break;
    default:
        serve_data(request, transport);
        break;
    }
}

void echo_service_dispatch(struct svc_req *request, SVCXPRT *transport)
{
    if (request->rq_proc >= PROCEDURES) {
        svcerr_noproc(transport);
        return;
    }
    count(ECHO_COUNT_CALLS_SEEN, 1);
    die_if(ECHO_DIES_BEFORE);
    serve(request, transport);
    count(ECHO_COUNT_CALLS + request->rq_proc, 1);
    if (duplicates_note(request->rq_xid, svc_getcaller(transport)))
        count(ECHO_COUNT_DUPLICATES, 1);
    die_if(ECHO_DIES_AFTER);
}
