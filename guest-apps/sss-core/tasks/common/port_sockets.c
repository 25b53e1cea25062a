/* SPDX-License-Identifier: Apache-2.0 */
/* Calls by the own runtime over UDP and TCP. */
#include <rpc/pmap_prot.h>
#include <rpc/socket.h>
#include <stdio.h>

#include "options.h"
#include "port.h"
#include "sss/system.h"

/* One question to the portmapper; 0 with the reason in `status` if the answer is not a port. */
static unsigned short ask_port(const struct settings *settings, enum clnt_stat *status,
                               unsigned *sent)
{
    struct sockaddr_in portmapper = settings->server;
    struct pmap question = {settings->program, settings->version,
                            settings->transport == TRANSPORT_UDP ? IPPROTO_UDP : IPPROTO_TCP, 0};
    int handle = RPC_ANYSOCK;
    unsigned short port = 0;
    unsigned again = 0;
    CLIENT *asker;

    *status = RPC_SYSTEMERROR;
    portmapper.sin_port = htons(PMAPPORT);
    asker = clntudp_create(&portmapper, PMAPPROG, PMAPVERS, port_timeval(1000 * NS_PER_MS),
                           &handle);
    if (asker == NULL)
        return 0;
    *status = clnt_call(asker, PMAPPROC_GETPORT, (xdrproc_t)xdr_pmap, &question,
                        (xdrproc_t)xdr_u_short, &port, port_timeval(5000 * NS_PER_MS));
    clnt_control(asker, CLGET_RETRANSMITS, &again);
    *sent += 1 + again;
    clnt_destroy(asker);
    if (*status == RPC_SUCCESS && port == 0)
        *status = RPC_PROGNOTREGISTERED;
    return *status == RPC_SUCCESS ? port : 0;
}

/* As on Linux: asks until there is a port or the time is over, and puts the binding line into the
 * records. */
static int find_port(struct caller *caller, struct settings *settings)
{
    uint64_t start = sss_now_ns();
    uint64_t end, pause = FIRST_PAUSE_MS;
    unsigned sent = 0, attempts = 0;
    enum clnt_stat status;
    unsigned short port;

    (void)caller;
    if (settings->server.sin_port != 0)
        return 0;
    for (;;) {
        port = ask_port(settings, &status, &sent);
        end = sss_now_ns();
        attempts++;
        if (port != 0 || end >= start + settings->binding_ns)
            break;
        port_sleep_ms(pause);
        pause = port_next_pause_ms(pause);
    }
    settings->server.sin_port = htons(port);
    sss_record("{\"type\":\"binding\",\"step\":%ld,\"app\":\"echo-client\",\"transport\":\"%s\","
               "\"start\":%llu,\"end\":%llu,"
               "\"ok\":%s,\"attempts\":%u,\"sent\":%u,\"port\":%u%s%s%s}",
               options_step() < 0 ? 0 : options_step(), transport_names[settings->transport],
               (unsigned long long)start, (unsigned long long)end, port != 0 ? "true" : "false",
               attempts, sent, port, port != 0 ? "" : ",\"error\":\"",
               port != 0 ? "" : clnt_sperrno(status), port != 0 ? "" : "\"");
    return 0; /* without a port each call fails */
}

static CLIENT *open_client(const struct settings *settings)
{
    struct sockaddr_in server = settings->server;
    int handle = RPC_ANYSOCK;

    if (settings->client_port != 0)
        handle = rpc_socket(settings->transport == TRANSPORT_UDP ? SSS_UDP : SSS_TCP,
                            (uint16_t)settings->client_port);
    if (settings->transport == TRANSPORT_TCP)
        return clnttcp_create(&server, settings->program, settings->version, &handle,
                              settings->send_buffer, settings->recv_buffer);
    return clntudp_bufcreate(&server, settings->program, settings->version,
                             port_timeval(settings->retry_ns), &handle, settings->udp_message_size,
                             settings->udp_message_size);
}

static bool connect_handle(struct caller *caller)
{
    rpc_createerr.cf_stat = RPC_PMAPFAILURE;
    if (caller->settings->server.sin_port == 0)
        return false; /* the library would ask for it */
    caller->handle = open_client(caller->settings);
    if (caller->handle == NULL)
        return false;
    port_set_auth(caller);
    clnt_control(caller->handle, CLGET_LOCAL_PORT, &caller->client_port);
    return true;
}

static bool is_stream(const struct caller *caller)
{
    return caller->settings->transport == TRANSPORT_TCP;
}

static enum clnt_stat call(struct caller *caller, struct exchange *exchange,
                           struct call_record *record)
{
    unsigned before = port_retransmits(caller);
    enum clnt_stat status = port_call(caller, exchange, record);

    if (!is_stream(caller))
        record->retransmits = (uint16_t)(port_retransmits(caller) - before);
    return exchange->decode == NULL && status == RPC_TIMEDOUT ? RPC_SUCCESS : status;
}

static unsigned stream_retransmits(const struct caller *caller)
{
    return is_stream(caller) ? caller->closed_retransmits + port_retransmits(caller) : 0;
}

static void note_failure(struct caller *caller, struct call_record *record,
                         enum call_failure failure, enum clnt_stat status)
{
    port_note(record, failure, failure == CALL_UNCONNECTED ? rpc_createerr.cf_stat : status, NULL);
    if (failure == CALL_FAILED && is_stream(caller)) {
        caller->closed_retransmits = stream_retransmits(caller);
        port_disconnect(caller); /* a late reply may still come on the stream */
    }
}

static void put_fields(const struct caller *caller, char *text, size_t size)
{
    const struct settings *settings = caller->settings;

    snprintf(text, size,
             ",\"server_port\":%u,\"client_port\":%u,\"tcp_retransmits\":%u,\"semantics\":\"%s\"",
             ntohs(settings->server.sin_port), caller->client_port, caller->tcp_retransmits,
             rpc_semantics_names[settings->semantics]);
}

const struct own_port port_sockets = {
    {connect_handle, port_disconnect, port_begin, call, note_failure, stream_retransmits},
    find_port,
    put_fields};
