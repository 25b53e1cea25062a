/* SPDX-License-Identifier: Apache-2.0 */
/* Calls by libtirpc over UDP and TCP. */
#include "port.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "mix.h"
#include "sends.h"

enum {
    MS_PER_S = 1000,
    US_PER_MS = 1000,
    THREAD_SHIFT = 24, /* 16 million transaction numbers for each caller */

    /* Failures beside the library's (enum clnt_stat, all below 100). */
    FAILURE_WRONG_PAYLOAD = 1000,
    FAILURE_CANNOT_CONNECT,
    FAILURE_NO_PORT,
};

static struct timeval milliseconds(long long ms)
{
    return (struct timeval){.tv_sec = ms / MS_PER_S, .tv_usec = ms % MS_PER_S * US_PER_MS};
}

/* Transaction numbers come from the machine's seed, so that a run repeats to the byte. */
static uint32_t first_xid(size_t thread)
{
    const char *seed = getenv("SUNDIAL_SEED");
    const char *machine = getenv("SUNDIAL_MACHINE");
    const char *step = getenv("SUNDIAL_STEP");
    uint64_t mixed = mix_seed(seed == NULL ? 0 : strtoull(seed, NULL, 10),
                              machine == NULL ? "" : machine,
                              step == NULL ? 0 : strtoull(step, NULL, 10));

    return (uint32_t)mixed + ((uint32_t)thread << THREAD_SHIFT);
}

void port_init(struct caller *caller, const struct settings *settings, size_t thread)
{
    *caller = (struct caller){.port = &tirpc_port,
                              .settings = settings,
                              .procedure = settings->procedure,
                              .one_way = settings->one_way,
                              .thread = thread,
                              .socket = -1};
    caller->xid = first_xid(thread);
    caller->exchange.sent = malloc(ECHO_LIMIT + 1);
    caller->exchange.received = malloc(ECHO_LIMIT + 1);
    if (caller->exchange.sent == NULL || caller->exchange.received == NULL)
        samples_fail("out of memory");
}

static int set_option(int handle, int level, int option, int value)
{
    return setsockopt(handle, level, option, &value, sizeof(value));
}

/* A socket with the asked buffers, bound, so that the library does not choose a reserved port. */
static int open_socket(const struct caller *caller)
{
    const struct settings *settings = caller->settings;
    bool udp = settings->transport == TRANSPORT_UDP;
    unsigned port = settings->client_port == 0 ? 0
                                               : settings->client_port + (unsigned)caller->thread;
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct timeval timeout = milliseconds(settings->total_timeout_ms);
    struct timeval none = {0};
    int handle = socket(AF_INET, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);

    if (handle < 0)
        return -1;
    if ((settings->socket_buffer > 0 &&
         (set_option(handle, SOL_SOCKET, SO_SNDBUF, settings->socket_buffer) != 0 ||
          set_option(handle, SOL_SOCKET, SO_RCVBUF, settings->socket_buffer) != 0)) ||
        (port != 0 && set_option(handle, SOL_SOCKET, SO_REUSEADDR, 1) != 0) ||
        bind(handle, (struct sockaddr *)&local, sizeof(local)) != 0)
        goto failed;
    if (udp)
        return handle;
    /* The send timeout limits connect() too; nothing later wants it. */
    if (setsockopt(handle, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) == 0 &&
        connect(handle, (const struct sockaddr *)&settings->server, sizeof(settings->server)) ==
            0 &&
        setsockopt(handle, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none)) == 0)
        return handle;
failed:
    close(handle);
    return -1;
}

static CLIENT *open_handle(const struct caller *caller, int *handle)
{
    const struct settings *settings = caller->settings;
    struct sockaddr_in server = settings->server;

    if (settings->transport == TRANSPORT_TCP)
        return clnttcp_create(&server, settings->program, settings->version, handle,
                              settings->send_buffer, settings->recv_buffer);
    return clntudp_bufcreate(&server, settings->program, settings->version,
                             milliseconds(settings->retry_timeout_ms), handle,
                             settings->udp_message_size, settings->udp_message_size);
}

static bool connect_handle(struct caller *caller)
{
    const struct settings *settings = caller->settings;
    struct sockaddr_in local;
    socklen_t length = sizeof(local);

    if (settings->server.sin_port == 0)
        return false; /* the library would ask for it */
    caller->socket = open_socket(caller);
    if (caller->socket < 0)
        return false;
    caller->handle = open_handle(caller, &caller->socket);
    if (caller->handle == NULL) {
        errno = rpc_createerr.cf_error.re_errno;
        close(caller->socket);
        caller->socket = -1;
        return false;
    }
    /* The library sets the option on its own, so it is set as asked in both directions. */
    if (settings->transport == TRANSPORT_TCP)
        set_option(caller->socket, IPPROTO_TCP, TCP_NODELAY, settings->tcp_nodelay);
    if (settings->auth_sys) {
        auth_destroy(caller->handle->cl_auth);
        caller->handle->cl_auth = authunix_create(
            (char *)(uintptr_t)settings->auth_machine, settings->auth_uid, settings->auth_gid,
            (int)settings->auth_gid_count, (gid_t *)(uintptr_t)settings->auth_gids);
    }
    if (getsockname(caller->socket, (struct sockaddr *)&local, &length) == 0)
        caller->client_port = ntohs(local.sin_port);
    return true;
}

static void disconnect_handle(struct caller *caller)
{
    if (caller->handle != NULL) {
        auth_destroy(caller->handle->cl_auth);
        clnt_destroy(caller->handle);
    }
    if (caller->socket >= 0)
        close(caller->socket);
    caller->handle = NULL;
    caller->socket = -1;
}

/*
 * Makes `xid` the number of the next call. On a stream libtirpc 1.3.3 stores the number plus one in
 * network order and then counts the stored word down in the host's order: undone here, so that the
 * numbers on the wire are those that were chosen.
 */
static void begin(struct caller *caller, uint32_t xid)
{
    if (caller->settings->transport == TRANSPORT_TCP)
        xid = ntohl(htonl(xid) + 1) - 1;
    clnt_control(caller->handle, CLSET_XID, (char *)&xid);
    sends_begin(caller->settings->transport == TRANSPORT_TCP);
}

/* A one-way call is given no time to wait for a reply; that it then "times out" is its success. */
static enum clnt_stat call(struct caller *caller, struct exchange *exchange,
                           struct call_record *record)
{
    bool one_way = exchange->decode == (xdrproc_t)NULL;
    struct timeval total = milliseconds(one_way ? 0 : caller->settings->total_timeout_ms);
    enum clnt_stat status;
    uint32_t xid;

    record->start_ns = clock_now_ns();
    status = clnt_call(caller->handle, exchange->procedure, exchange->encode, exchange->argument,
                       exchange->decode, exchange->result, total);
    record->end_ns = clock_now_ns();

    if (sends_count() > 1)
        record->retransmits = (uint16_t)(sends_count() - 1);
    if (one_way)
        return status == RPC_TIMEDOUT ? RPC_SUCCESS : status;
    /*
     * What went out is the truth; but one-way calls are in the library's buffer, and what it writes
     * during one begins with another.
     */
    if (sends_xid(&xid))
        record->xid = xid;
    return status;
}

/* Those of connections that failed calls have closed, too. */
static unsigned stream_retransmits(const struct caller *caller)
{
    struct tcp_info info;
    socklen_t length = sizeof(info);

    if (caller->settings->transport == TRANSPORT_UDP || caller->socket < 0 ||
        getsockopt(caller->socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return caller->closed_retransmits;
    return caller->closed_retransmits + info.tcpi_total_retrans;
}

static void note_failure(struct caller *caller, struct call_record *record,
                         enum call_failure failure, enum clnt_stat status)
{
    struct rpc_err error = {0};

    switch (failure) {
    case CALL_WRONG_PAYLOAD:
        record->failure = FAILURE_WRONG_PAYLOAD;
        return;
    case CALL_UNCONNECTED:
        if (caller->settings->server.sin_port == 0) {
            record->failure = FAILURE_NO_PORT;
        } else {
            record->failure_errno = (int16_t)errno;
            record->failure = FAILURE_CANNOT_CONNECT;
        }
        record->start_ns = record->end_ns = clock_now_ns();
        return;
    case CALL_FAILED:
        break;
    }
    clnt_geterr(caller->handle, &error);
    record->failure = (uint16_t)status;
    if (status == RPC_CANTSEND || status == RPC_CANTRECV)
        record->failure_errno = (int16_t)error.re_errno;
    /*
     * A late reply or half a record may still come on a stream: only a new one is in a known state.
     */
    if (caller->settings->transport == TRANSPORT_TCP) {
        caller->closed_retransmits = stream_retransmits(caller);
        disconnect_handle(caller);
    }
}

const struct rpc_port tirpc_port = {connect_handle, disconnect_handle, begin,
                                    call,           note_failure,      stream_retransmits};

void port_failure_text(const struct call_record *record, char *text, size_t size)
{
    if (record->failure == FAILURE_WRONG_PAYLOAD)
        snprintf(text, size, "reply does not hold the expected payload");
    else if (record->failure == FAILURE_CANNOT_CONNECT)
        snprintf(text, size, "cannot connect: %s", strerror(record->failure_errno));
    else if (record->failure == FAILURE_NO_PORT)
        snprintf(text, size, "%s", clnt_sperrno(RPC_PMAPFAILURE));
    else if (record->failure_errno != 0)
        snprintf(text, size, "%s; %s", clnt_sperrno((enum clnt_stat)record->failure),
                 strerror(record->failure_errno));
    else
        snprintf(text, size, "%s", clnt_sperrno((enum clnt_stat)record->failure));
}
