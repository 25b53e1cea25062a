/* SPDX-License-Identifier: Apache-2.0 */
#include "service.h"

#include <stdlib.h>
#include <string.h>

#include "echo.h"
#include "pattern.h"
#include "service_port.h"

/* Arguments are decoded into this, and replies of "source" made in it: no call pays for memory. */
static char *buffer;
static size_t buffer_bytes;

bool service_prepare(size_t bytes)
{
    buffer_bytes = bytes;
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

void service_serve(struct svc_req *request, SVCXPRT *transport)
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
