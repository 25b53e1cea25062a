/* SPDX-License-Identifier: Apache-2.0 */
#include "caller.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "echo.h"
#include "mix.h"
#include "pattern.h"
#include "sends.h"

enum {
    MS_PER_S = 1000,
    US_PER_MS = 1000,
    THREAD_SHIFT = 24, /* 16 million transaction numbers for each caller */

    /* Failures beside the library's (enum clnt_stat, all below 100). */
    FAILURE_WRONG_PAYLOAD = 1000,
    FAILURE_CANNOT_CONNECT,
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

void caller_init(struct caller *caller, const struct settings *settings, size_t thread)
{
    *caller = (struct caller){.settings = settings, .thread = thread, .socket = -1};
    caller->xid = first_xid(thread);
    caller->argument = malloc(ECHO_LIMIT + 1);
    caller->result = malloc(ECHO_LIMIT + 1);
    if (caller->argument == NULL || caller->result == NULL)
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
        return clnttcp_create(&server, ECHO_PROGRAM, ECHO_VERSION, handle, settings->send_buffer,
                              settings->recv_buffer);
    return clntudp_bufcreate(&server, ECHO_PROGRAM, ECHO_VERSION,
                             milliseconds(settings->retry_timeout_ms), handle,
                             settings->udp_message_size, settings->udp_message_size);
}

bool caller_connect(struct caller *caller)
{
    const struct settings *settings = caller->settings;
    struct sockaddr_in local;
    socklen_t length = sizeof(local);

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

void caller_disconnect(struct caller *caller)
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

/* Everything of one call that is prepared before the clock is read. */
struct exchange {
    rpcproc_t procedure;
    xdrproc_t encode;
    void *argument;
    xdrproc_t decode;
    void *result;
    echo_data data;
    echo_text text;
    echo_source_request request;
    echo_data data_back;
    echo_text text_back;
    size_t expected; /* bytes that must come back */
};

static void prepare_data(struct exchange *exchange, struct caller *caller, uint32_t sequence,
                         size_t size)
{
    pattern_fill(PATTERN_OPAQUE, sequence, 0, caller->argument, size);
    exchange->data.echo_data_len = (unsigned)size;
    exchange->data.echo_data_val = caller->argument;
    exchange->encode = (xdrproc_t)xdr_echo_data;
    exchange->argument = &exchange->data;
}

static void expect_data(struct exchange *exchange, struct caller *caller, size_t size)
{
    exchange->data_back = (echo_data){.echo_data_val = caller->result};
    exchange->decode = (xdrproc_t)xdr_echo_data;
    exchange->result = &exchange->data_back;
    exchange->expected = size;
}

static void prepare(struct exchange *exchange, struct caller *caller, uint32_t sequence,
                    size_t size)
{
    const struct settings *settings = caller->settings;

    exchange->encode = exchange->decode = (xdrproc_t)xdr_void;
    exchange->argument = exchange->result = NULL;
    exchange->expected = 0;
    switch (settings->procedure) {
    case PROCEDURE_NULL:
        exchange->procedure = ECHO_NULL;
        break;
    case PROCEDURE_ECHO:
        exchange->procedure = ECHO_OPAQUE;
        prepare_data(exchange, caller, sequence, size);
        expect_data(exchange, caller, size);
        break;
    case PROCEDURE_STRING:
        exchange->procedure = ECHO_STRING;
        pattern_fill(PATTERN_TEXT, sequence, 0, caller->argument, size);
        caller->argument[size] = '\0';
        exchange->text = caller->argument;
        exchange->text_back = caller->result;
        exchange->encode = exchange->decode = (xdrproc_t)xdr_echo_text;
        exchange->argument = &exchange->text;
        exchange->result = &exchange->text_back;
        exchange->expected = size;
        break;
    case PROCEDURE_SINK:
        exchange->procedure = settings->one_way ? ECHO_SINK_ONE_WAY : ECHO_SINK;
        prepare_data(exchange, caller, sequence, size);
        break;
    case PROCEDURE_SOURCE:
        exchange->procedure = ECHO_SOURCE;
        exchange->request = (echo_source_request){.sequence = sequence, .size = (unsigned)size};
        exchange->encode = (xdrproc_t)xdr_echo_source_request;
        exchange->argument = &exchange->request;
        expect_data(exchange, caller, size);
        break;
    }
}

static bool came_back_right(const struct exchange *exchange, const struct caller *caller,
                            uint32_t sequence)
{
    switch (caller->settings->procedure) {
    case PROCEDURE_ECHO:
    case PROCEDURE_SOURCE:
        return exchange->data_back.echo_data_len == exchange->expected &&
               pattern_matches(PATTERN_OPAQUE, sequence, 0, caller->result, exchange->expected);
    case PROCEDURE_STRING:
        return strlen(caller->result) == exchange->expected &&
               pattern_matches(PATTERN_TEXT, sequence, 0, caller->result, exchange->expected);
    default:
        return true;
    }
}

/* A one-way call is given no time to wait for a reply; that it then "times out" is its success. */
static enum clnt_stat call(struct caller *caller, struct exchange *exchange)
{
    struct timeval total = milliseconds(caller->settings->total_timeout_ms);
    struct timeval none = {0};
    enum clnt_stat status;

    if (!caller->settings->one_way)
        return clnt_call(caller->handle, exchange->procedure, exchange->encode, exchange->argument,
                         exchange->decode, exchange->result, total);
    status = clnt_call(caller->handle, exchange->procedure, exchange->encode, exchange->argument,
                       (xdrproc_t)NULL, NULL, none);
    return status == RPC_TIMEDOUT ? RPC_SUCCESS : status;
}

static void note_failure(struct caller *caller, enum clnt_stat status, struct call_record *record)
{
    struct rpc_err error = {0};

    clnt_geterr(caller->handle, &error);
    record->failure = (uint16_t)status;
    if (status == RPC_CANTSEND || status == RPC_CANTRECV)
        record->failure_errno = (int16_t)error.re_errno;
    /*
     * A late reply or half a record may still come on a stream: only a new one is in a known state.
     */
    if (caller->settings->transport == TRANSPORT_TCP)
        caller_disconnect(caller);
}

/*
 * Makes `xid` the number of the next call. On a stream libtirpc 1.3.3 stores the number plus one in
 * network order and then counts the stored word down in the host's order: undone here, so that the
 * numbers on the wire are those that were chosen.
 */
static void set_xid(struct caller *caller, uint32_t xid)
{
    if (caller->settings->transport == TRANSPORT_TCP)
        xid = ntohl(htonl(xid) + 1) - 1;
    clnt_control(caller->handle, CLSET_XID, (char *)&xid);
}

void caller_call(struct caller *caller, uint32_t sequence, size_t size, struct call_record *record)
{
    struct exchange exchange;
    enum clnt_stat status;
    uint32_t seen;

    *record = (struct call_record){.xid = caller->xid++, .has_xid = true};
    if (caller->handle == NULL && !caller_connect(caller)) {
        record->start_ns = record->end_ns = clock_now_ns();
        record->failure = FAILURE_CANNOT_CONNECT;
        record->failure_errno = (int16_t)errno;
        return;
    }
    prepare(&exchange, caller, sequence, size);
    set_xid(caller, record->xid);
    sends_begin(caller->settings->transport == TRANSPORT_TCP);

    record->start_ns = clock_now_ns();
    status = call(caller, &exchange);
    record->end_ns = clock_now_ns();

    if (sends_count() > 1)
        record->retransmits = (uint16_t)(sends_count() - 1);
    /*
     * What went out is the truth; but one-way calls lie in the library's buffer, and what it writes
     * during one begins with another.
     */
    if (!caller->settings->one_way && sends_xid(&seen))
        record->xid = seen;
    if (status != RPC_SUCCESS)
        note_failure(caller, status, record);
    else if (!came_back_right(&exchange, caller, sequence))
        record->failure = FAILURE_WRONG_PAYLOAD;
    else
        record->ok = true;
}

bool caller_flush(struct caller *caller)
{
    struct timeval total = milliseconds(caller->settings->total_timeout_ms);
    uint32_t xid = caller->xid++;

    if (caller->handle == NULL)
        return false;
    set_xid(caller, xid);
    return clnt_call(caller->handle, ECHO_NULL, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void,
                     NULL, total) == RPC_SUCCESS;
}

unsigned caller_tcp_retransmits(const struct caller *caller)
{
    struct tcp_info info;
    socklen_t length = sizeof(info);

    if (caller->settings->transport == TRANSPORT_UDP || caller->socket < 0 ||
        getsockopt(caller->socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return 0;
    return info.tcpi_total_retrans;
}

void caller_failure_text(const struct call_record *record, char *text, size_t size)
{
    if (record->failure == FAILURE_WRONG_PAYLOAD)
        snprintf(text, size, "reply does not hold the expected payload");
    else if (record->failure == FAILURE_CANNOT_CONNECT)
        snprintf(text, size, "cannot connect: %s", strerror(record->failure_errno));
    else if (record->failure_errno != 0)
        snprintf(text, size, "%s; %s", clnt_sperrno((enum clnt_stat)record->failure),
                 strerror(record->failure_errno));
    else
        snprintf(text, size, "%s", clnt_sperrno((enum clnt_stat)record->failure));
}
