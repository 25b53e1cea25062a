/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Sun RPC server: answers each call, then checks its payload, and reports its counters whenever
 * it has been idle for a while and on a request to end.
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
#include "samples.h"
#include "server.h"
#include "service_port.h"

enum {
    DEFAULT_PORT = 1025,
    BUFFER_LIMIT = 1 << 24,
    UDP_MESSAGE_DEFAULT = 8800,
    UDP_MESSAGE_LIMIT = 65507,
};

struct settings {
    struct server_settings server;
    unsigned send_buffer;
    unsigned recv_buffer;
    unsigned udp_message_size;
    bool registered;
    const struct service_program *program;
};

static struct settings settings;
static long long connections;
long long service_counts[ECHO_COUNTS];
static SVCXPRT *udp_transport;

static void read_settings(int argc, char **argv)
{
    struct options *options = options_open(argc, argv);

    server_read_settings(&settings.server, options, DEFAULT_PORT, 0);
    settings.send_buffer = (unsigned)options_integer(options, "send_buffer", 0, 0, BUFFER_LIMIT);
    settings.recv_buffer = (unsigned)options_integer(options, "recv_buffer", 0, 0, BUFFER_LIMIT);
    settings.udp_message_size = (unsigned)options_integer(
        options, "udp_message_size", UDP_MESSAGE_DEFAULT, 400, UDP_MESSAGE_LIMIT);
    settings.registered = options_boolean(options, "register", true);
    settings.program = &service_programs[options_word(options, "program", service_program_names)];
    options_check_all_taken(options);
    options_close(options);
}

static void note_call(const struct svc_req *request, SVCXPRT *transport)
{
    const struct svc_dg_data *datagram = transport->xp_p2;
    const struct sockaddr_in *caller = (const void *)svc_getcaller(transport);

    service_count(ECHO_COUNT_CALLS + request->rq_proc, 1);
    /* Only datagrams are ever sent twice by a caller. */
    if (transport == udp_transport && duplicates_note(datagram->su_xid, caller))
        service_count(ECHO_COUNT_DUPLICATES, 1);
}

static void serve(struct svc_req *request, SVCXPRT *transport)
{
    if (!service_has(settings.program, request, transport))
        return;
    note_call(request, transport);
    service_serve(settings.program, request, transport);
}

static void report_counters(void)
{
    json_t *line = samples_object("counters");
    json_t *by_procedure = json_object();
    const struct service_program *program = settings.program;
    long long calls = 0;

    for (rpcproc_t i = program->first; i < program->end; i++) {
        calls += service_counts[ECHO_COUNT_CALLS + i];
        json_object_set_new(by_procedure, program->names[i - program->first],
                            json_integer(service_counts[ECHO_COUNT_CALLS + i]));
    }
    json_object_update_new(
        line,
        json_pack("{sI so sI sI sI sI sI sI}", "calls", (json_int_t)calls, "by_procedure",
                  by_procedure, "bad_payload", (json_int_t)service_counts[ECHO_COUNT_BAD_PAYLOAD],
                  "undecodable", (json_int_t)service_counts[ECHO_COUNT_UNDECODABLE], "bytes_in",
                  (json_int_t)service_counts[ECHO_COUNT_BYTES_IN], "bytes_out",
                  (json_int_t)service_counts[ECHO_COUNT_BYTES_OUT], "duplicates",
                  (json_int_t)service_counts[ECHO_COUNT_DUPLICATES], "connections",
                  (json_int_t)connections));
    samples_put(line);
}

static void start_service(SVCXPRT *transport, const char *name, int protocol)
{
    if (transport == NULL)
        samples_fail("cannot make the %s transport", name);
    /* Protocol 0 tells the library not to ask the portmapper. */
    if (!svc_register(transport, settings.program->number, settings.program->version, serve,
                      settings.registered ? (unsigned)protocol : 0))
        samples_fail("cannot register %s with the portmapper (is rpcbind running?)", name);
}

static void start_services(void)
{
    if (settings.registered)
        pmap_unset(settings.program->number, settings.program->version); /* of an earlier server */
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
        connections++;
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
    if (!service_prepare(ECHO_LIMIT))
        samples_fail("out of memory");
    start_services();
    server_run(&server);
    if (settings.registered)
        pmap_unset(settings.program->number, settings.program->version);
    return 0;
}
