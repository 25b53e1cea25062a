/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Sun RPC server: answers each call, then checks its payload, and reports its counters whenever
 * it has been idle for a while and when it is told to end.
 */
#include <netinet/tcp.h>
#include <rpc/rpc.h>
#include <rpc/svc_dg.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "apps.h"
#include "duplicates.h"
#include "echo.h"
#include "options.h"
#include "pattern.h"
#include "samples.h"
#include "server.h"

enum {
    PROCEDURES = 6,
    DEFAULT_PORT = 1025,
    BUFFER_LIMIT = 1 << 24,
    UDP_MESSAGE_DEFAULT = 8800,
    UDP_MESSAGE_LIMIT = 65507,
};

static const char *const procedure_names[PROCEDURES] = {"null", "echo",   "echo_string",
                                                        "sink", "source", "sink_one_way"};

struct settings {
    struct server_settings server;
    unsigned send_buffer;
    unsigned recv_buffer;
    unsigned udp_message_size;
    bool registered;
};

struct counters {
    long long calls[PROCEDURES];
    long long bad_payload;
    long long undecodable;
    long long bytes_in;
    long long bytes_out;
    long long duplicates;
    long long connections;
};

static struct settings settings;
static struct counters counters;
static SVCXPRT *udp_transport;

/* Arguments are decoded into this, and replies made in it: no call pays for memory. */
static char *buffer;

static void read_settings(int argc, char **argv)
{
    struct options *options = options_open(argc, argv);

    server_read_settings(&settings.server, options, DEFAULT_PORT, 0);
    settings.send_buffer = (unsigned)options_integer(options, "send_buffer", 0, 0, BUFFER_LIMIT);
    settings.recv_buffer = (unsigned)options_integer(options, "recv_buffer", 0, 0, BUFFER_LIMIT);
    settings.udp_message_size = (unsigned)options_integer(
        options, "udp_message_size", UDP_MESSAGE_DEFAULT, 400, UDP_MESSAGE_LIMIT);
    settings.registered = options_boolean(options, "register", true);
    options_check_all_taken(options);
    options_close(options);
}

static void note_call(const struct svc_req *request, SVCXPRT *transport)
{
    const struct svc_dg_data *datagram = transport->xp_p2;
    const struct sockaddr_in *caller = (const void *)svc_getcaller(transport);

    counters.calls[request->rq_proc]++;
    /* Only datagrams are ever sent twice by a caller. */
    if (transport == udp_transport && duplicates_note(datagram->su_xid, caller))
        counters.duplicates++;
}

/* Replies come first and checks after: what is checked is not part of the time that is measured. */
static void serve_data(const struct svc_req *request, SVCXPRT *transport)
{
    echo_data data = {.echo_data_val = buffer};

    if (!svc_getargs(transport, (xdrproc_t)xdr_echo_data, (caddr_t)&data)) {
        counters.undecodable++;
        svcerr_decode(transport);
        return;
    }
    counters.bytes_in += data.echo_data_len;
    if (request->rq_proc == ECHO_OPAQUE) {
        svc_sendreply(transport, (xdrproc_t)xdr_echo_data, (caddr_t)&data);
        counters.bytes_out += data.echo_data_len;
    } else if (request->rq_proc == ECHO_SINK) {
        svc_sendreply(transport, (xdrproc_t)xdr_void, NULL);
    }
    if (!pattern_matches_any(PATTERN_OPAQUE, data.echo_data_val, data.echo_data_len))
        counters.bad_payload++;
}

static void serve_text(SVCXPRT *transport)
{
    echo_text text = buffer;
    size_t length;

    if (!svc_getargs(transport, (xdrproc_t)xdr_echo_text, (caddr_t)&text)) {
        counters.undecodable++;
        svcerr_decode(transport);
        return;
    }
    svc_sendreply(transport, (xdrproc_t)xdr_echo_text, (caddr_t)&text);
    length = strlen(text);
    counters.bytes_in += (long long)length;
    counters.bytes_out += (long long)length;
    if (!pattern_matches_any(PATTERN_TEXT, text, length))
        counters.bad_payload++;
}

static void serve_source(SVCXPRT *transport)
{
    echo_source_request wanted = {0};
    echo_data data = {.echo_data_val = buffer};

    if (!svc_getargs(transport, (xdrproc_t)xdr_echo_source_request, (caddr_t)&wanted) ||
        wanted.size > ECHO_LIMIT) {
        counters.undecodable++;
        svcerr_decode(transport);
        return;
    }
    data.echo_data_len = wanted.size;
    pattern_fill(PATTERN_OPAQUE, wanted.sequence, 0, buffer, wanted.size);
    svc_sendreply(transport, (xdrproc_t)xdr_echo_data, (caddr_t)&data);
    counters.bytes_out += wanted.size;
}

static void serve(struct svc_req *request, SVCXPRT *transport)
{
    if (request->rq_proc >= PROCEDURES) {
        svcerr_noproc(transport);
        return;
    }
    note_call(request, transport);
    switch (request->rq_proc) {
    case ECHO_NULL:
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

static void report_counters(void)
{
    json_t *line = samples_object("counters");
    json_t *by_procedure = json_object();
    long long calls = 0;

    for (size_t i = 0; i < PROCEDURES; i++) {
        calls += counters.calls[i];
        json_object_set_new(by_procedure, procedure_names[i], json_integer(counters.calls[i]));
    }
    json_object_update_new(
        line, json_pack("{sI so sI sI sI sI sI sI}", "calls", (json_int_t)calls, "by_procedure",
                        by_procedure, "bad_payload", (json_int_t)counters.bad_payload,
                        "undecodable", (json_int_t)counters.undecodable, "bytes_in",
                        (json_int_t)counters.bytes_in, "bytes_out", (json_int_t)counters.bytes_out,
                        "duplicates", (json_int_t)counters.duplicates, "connections",
                        (json_int_t)counters.connections));
    samples_put(line);
}

static void start_service(SVCXPRT *transport, const char *name, int protocol)
{
    if (transport == NULL)
        samples_fail("cannot make the %s transport", name);
    /* Protocol 0 tells the library not to ask the portmapper. */
    if (!svc_register(transport, ECHO_PROGRAM, ECHO_VERSION, serve,
                      settings.registered ? (unsigned)protocol : 0))
        samples_fail("cannot register %s with the portmapper (is rpcbind running?)", name);
}

static void start_services(void)
{
    if (settings.registered)
        pmap_unset(ECHO_PROGRAM, ECHO_VERSION); /* of an earlier server */
    if (settings.server.udp) {
        udp_transport = svcudp_bufcreate(server_open_socket(&settings.server, SOCK_DGRAM),
                                         settings.udp_message_size, settings.udp_message_size);
        start_service(udp_transport, "udp", IPPROTO_UDP);
    }
    if (settings.server.tcp)
        start_service(svctcp_create(server_open_socket(&settings.server, SOCK_STREAM),
                                    settings.send_buffer, settings.recv_buffer),
                      "tcp", IPPROTO_TCP);
}

/* The library may change its descriptors while it serves, so it is given a copy. */
static struct pollfd *watch(nfds_t *count)
{
    static struct pollfd *watched;

    *count = (nfds_t)svc_max_pollfd;
    watched = realloc(watched, *count * sizeof(*watched));
    if (watched == NULL)
        samples_fail("out of memory");
    memcpy(watched, svc_pollfd, *count * sizeof(*watched));
    return watched;
}

/* The library turns TCP_NODELAY on for each connection it accepts; this makes it what was asked. */
static void adopt_connections(const struct pollfd *before, nfds_t before_count)
{
    for (int i = 0; i < svc_max_pollfd; i++) {
        int handle = svc_pollfd[i].fd;
        bool known = handle < 0;

        for (nfds_t j = 0; j < before_count && !known; j++)
            known = before[j].fd == handle;
        if (known)
            continue;
        counters.connections++;
        server_set_option(handle, IPPROTO_TCP, TCP_NODELAY, settings.server.tcp_nodelay);
    }
}

static void serve_ready(struct pollfd *watched, nfds_t count, int happened)
{
    svc_getreq_poll(watched, happened);
    adopt_connections(watched, count);
}

int echo_server_main(int argc, char **argv)
{
    static const struct server server = {watch, serve_ready, report_counters};

    server_hold_end();
    signal(SIGPIPE, SIG_IGN);
    read_settings(argc, argv);
    buffer = malloc(ECHO_LIMIT + 1);
    if (buffer == NULL)
        samples_fail("out of memory");
    start_services();
    server_run(&server);
    if (settings.registered)
        pmap_unset(ECHO_PROGRAM, ECHO_VERSION);
    return 0;
}
