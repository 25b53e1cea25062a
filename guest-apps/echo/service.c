/* SPDX-License-Identifier: Apache-2.0 */
#include "service.h"

#include <stdlib.h>
#include <string.h>

#include "echo.h"
#include "exchange.h"
#include "function_values.h"
#include "pattern.h"
#include "service_port.h"

/* Arguments are decoded into this, and replies of "source" made in it: no call pays for memory. */
static char *buffer;
static size_t buffer_bytes;
static struct function_values values[FUNCTIONS + 1]; /* of each function */

bool service_prepare(size_t bytes)
{
    buffer_bytes = bytes;
    for (int i = FUNCTION_VOID; i <= FUNCTIONS; i++)
        function_values_empty(&values[i], (enum function)i);
    buffer = malloc(bytes + 1);
    return buffer != NULL;
}

static void refuse(SVCXPRT *transport)
{
    service_count(ECHO_COUNT_UNDECODABLE, 1);
    svcerr_decode(transport);
}

/* Replies come first and checks after: what is checked is not part of the time that is measured. */
static void serve_data(const struct svc_req *request, SVCXPRT *transport)
{
    echo_data data = {.echo_data_val = service_argument(transport, buffer)};

    if (!svc_getargs(transport, (xdrproc_t)xdr_echo_data, (caddr_t)&data)) {
        refuse(transport);
        service_free(transport, (xdrproc_t)xdr_echo_data, &data);
        return;
    }
    service_execute();
    service_count(ECHO_COUNT_BYTES_IN, data.echo_data_len);
    if (request->rq_proc == ECHO_OPAQUE) {
        svc_sendreply(transport, (xdrproc_t)xdr_echo_data, (caddr_t)&data);
        service_count(ECHO_COUNT_BYTES_OUT, data.echo_data_len);
    } else if (request->rq_proc == ECHO_SINK) {
        svc_sendreply(transport, (xdrproc_t)xdr_void, NULL);
    }
    if (!pattern_matches_any(PATTERN_OPAQUE, data.echo_data_val, data.echo_data_len))
        service_count(ECHO_COUNT_BAD_PAYLOAD, 1);
    service_free(transport, (xdrproc_t)xdr_echo_data, &data);
}

static void serve_text(SVCXPRT *transport)
{
    echo_text text = service_argument(transport, buffer);
    size_t length;

    if (!svc_getargs(transport, (xdrproc_t)xdr_echo_text, (caddr_t)&text)) {
        refuse(transport);
        service_free(transport, (xdrproc_t)xdr_echo_text, &text);
        return;
    }
    service_execute();
    svc_sendreply(transport, (xdrproc_t)xdr_echo_text, (caddr_t)&text);
    length = strlen(text);
    service_count(ECHO_COUNT_BYTES_IN, length);
    service_count(ECHO_COUNT_BYTES_OUT, length);
    if (!pattern_matches_any(PATTERN_TEXT, text, length))
        service_count(ECHO_COUNT_BAD_PAYLOAD, 1);
    service_free(transport, (xdrproc_t)xdr_echo_text, &text);
}

static void serve_source(SVCXPRT *transport)
{
    echo_source_request request = {0};
    echo_data data = {.echo_data_val = buffer};

    if (!svc_getargs(transport, (xdrproc_t)xdr_echo_source_request, (caddr_t)&request) ||
        request.size > buffer_bytes) {
        refuse(transport);
        return;
    }
    service_execute();
    data.echo_data_len = request.size;
    pattern_fill(PATTERN_OPAQUE, request.sequence, 0, buffer, request.size);
    svc_sendreply(transport, (xdrproc_t)xdr_echo_data, (caddr_t)&data);
    service_count(ECHO_COUNT_BYTES_OUT, request.size);
}

static void serve_echo(struct svc_req *request, SVCXPRT *transport)
{
    switch (request->rq_proc) {
    case ECHO_NULL:
        service_execute();
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

static void serve_function(struct svc_req *request, SVCXPRT *transport)
{
    enum function function = (enum function)request->rq_proc;
    struct function_values *own = &values[function];
    size_t bytes;

    if (!svc_getargs(transport, function_argument_filter(function),
                     (caddr_t)function_argument(own))) {
        refuse(transport);
        return;
    }
    service_execute();
    bytes = function_execute(own, function);
    svc_sendreply(transport, function_result_filter(function),
                  (caddr_t)function_result(own, function));
    service_count(ECHO_COUNT_BYTES_IN, function_size(function));
    service_count(ECHO_COUNT_BYTES_OUT, bytes);
    if (!function_is_argument(own, function))
        service_count(ECHO_COUNT_BAD_PAYLOAD, 1);
}

const char *const service_program_names[] = {"echo", "functions", NULL};
const struct service_program service_programs[] = {
    {ECHO_PROGRAM, ECHO_VERSION, ECHO_NULL, ECHO_SINK_ONE_WAY + 1, echo_procedure_names,
     serve_echo},
    {CALLS_PROGRAM, CALLS_VERSION, CALLS_VOID, CALLS_DISTANCE + 1, function_names, serve_function},
};

bool service_has(const struct service_program *program, const struct svc_req *request,
                 SVCXPRT *transport)
{
    bool has = request->rq_proc >= program->first && request->rq_proc < program->end;

    if (!has)
        svcerr_noproc(transport);
    return has;
}

void service_serve(const struct service_program *program, struct svc_req *request,
                   SVCXPRT *transport)
{
    program->serve(request, transport);
}
