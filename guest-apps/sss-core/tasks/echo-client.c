/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Sun RPC client over UDP, TCP and MBCF: measures one batch of calls for each size, as
 * guest-apps/echo/client.c does on Linux. What is measured is the call alone: arguments are made
 * before and results checked after it.
 */
#include <rpc/async.h>
#include <rpc/mbcf.h>
#include <rpc/pmap_prot.h>
#include <rpc/rpc.h>
#include <rpc/socket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "echo.h"
#include "mix.h"
#include "options.h"
#include "pattern.h"
#include "samples.h"
#include "sss/system.h"

enum transport { TRANSPORT_UDP, TRANSPORT_TCP, TRANSPORT_MBCF /* and the types that follow */ };
enum procedure {
    PROCEDURE_NULL,
    PROCEDURE_ECHO,
    PROCEDURE_STRING,
    PROCEDURE_SINK,
    PROCEDURE_SOURCE
};
enum {
    SIZES_MOST = 64,
    CALLS_LIMIT = 1000000,
    NUMBER_LIMIT = 0x7fffffff,
    PORT_LIMIT = 65535,
    BUFFER_LIMIT = 1 << 24,
    UDP_MESSAGE_LIMIT = 65507,
    TIMEOUT_LIMIT_MS = 3600 * 1000,
    RETRY_DEFAULT_MS = 5000,
    TOTAL_DEFAULT_MS = 25000,
    BINDING_DEFAULT_MS = 30000,
    FIRST_PAUSE_MS = 10,
    LONGEST_PAUSE_MS = 500,
    HEADER_AND_LENGTH = 44, /* of a call with AUTH_NONE; a reply's is shorter */
    CREDENTIAL_MOST = 2 * (8 + MAX_AUTH_BYTES),
    NAME_BYTES = 64,
    FIELDS_BYTES = 768,
};
#define NS_PER_MS 1000000ull

static const char *const transport_names[] = {"udp",   "tcp",    "mbcf1",  "mbcf2", "mbcf12",
                                              "mbcf3", "mbcf3a", "mbcf3b", NULL};
static const char *const procedure_names[] = {"null", "echo",   "echo_string",
                                              "sink", "source", NULL};

static struct {
    unsigned transport;
    char server_text[NAME_BYTES];
    struct sockaddr_in server;
    uint16_t node;
    enum procedure procedure;
    bool one_way;
    long long series;
    long long sizes[SIZES_MOST];
    size_t size_count;
    size_t calls, warmup;
    bool connection_per_size;
    unsigned client_port;
    unsigned send_buffer, recv_buffer, udp_message_size;
    uint64_t retry_ns, total_ns, binding_ns;
    enum rpc_semantics semantics;
    unsigned depth;
    bool ack;
    bool auth_sys;
    char auth_machine[MAX_MACHINE_NAME + 1];
    long long auth_uid, auth_gid, auth_gids[NGRPS];
    size_t auth_gid_count;
} settings;

/* One call under way, with everything that is made before the clock is read. */
struct exchange {
    struct rpc_call *call; /* asynchronous */
    size_t index;
    rpcproc_t procedure;
    xdrproc_t encode, decode;
    void *argument, *result;
    echo_data data, data_back;
    echo_text text, text_back;
    echo_source_request request;
    size_t expected;
    char *sent, *received;
};

static CLIENT *client;
static struct exchange *exchanges; /* `depth` of them */
static struct call_record *records;
static uint32_t next_xid;
static unsigned local_port;
static size_t largest;

static bool over_mbcf(void)
{
    return settings.transport >= TRANSPORT_MBCF;
}

/* ---- options ---- */

static void read_server(void)
{
    unsigned part[4];
    char *at = settings.server_text, *end;

    if (over_mbcf()) {
        settings.node = (uint16_t)options_integer("server", 0, 1, SSS_NODES);
        if (settings.node == 0)
            options_fail("option server: must be given, as a node id");
        snprintf(settings.server_text, NAME_BYTES, "%u", settings.node);
        return;
    }
    options_text("server", NULL, settings.server_text, NAME_BYTES);
    for (unsigned i = 0; i < 4; i++, at = end + 1) {
        part[i] = (unsigned)strtoul(at, &end, 10);
        if (end == at || part[i] > 255 || *end != (i < 3 ? '.' : '\0'))
            options_fail("option server: must be an address like 10.0.0.2");
    }
    settings.server.sin_family = AF_INET;
    settings.server.sin_addr.s_addr = htonl(part[0] << 24 | part[1] << 16 | part[2] << 8 | part[3]);
    settings.server.sin_port = htons((uint16_t)options_integer("port", 0, 0, PORT_LIMIT));
}

static void read_sizes(void)
{
    long long most = over_mbcf() ? MBCF_MESSAGE_MOST - HEADER_AND_LENGTH : ECHO_LIMIT;

    settings.size_count = options_integers("sizes", 0, most, settings.sizes, SIZES_MOST);
    if (settings.size_count == 0)
        settings.size_count = 1;
    for (size_t i = 0; i < settings.size_count; i++)
        if ((size_t)settings.sizes[i] > largest)
            largest = (size_t)settings.sizes[i];
    if (settings.transport == TRANSPORT_MBCF + MBCF1 &&
        largest > MBCF_1_MESSAGE_MOST - HEADER_AND_LENGTH)
        options_fail("option sizes: mbcf1 carries at most %d bytes",
                     MBCF_1_MESSAGE_MOST - HEADER_AND_LENGTH);
}

/* What each transport can give; the first is what it gives where nothing is asked. */
static void read_semantics(void)
{
    static const char *const words[] = {"", "exactly_once", "at_most_once", "at_least_once", NULL};
    int word = options_word("semantics", words);
    enum rpc_semantics absent = settings.transport == TRANSPORT_UDP   ? RPC_AT_LEAST_ONCE
                                : settings.transport == TRANSPORT_TCP ? RPC_AT_MOST_ONCE
                                                                      : RPC_EXACTLY_ONCE;

    settings.semantics = word == 0 ? absent : (enum rpc_semantics)(word - 1);
    if (settings.transport == TRANSPORT_UDP && settings.semantics == RPC_EXACTLY_ONCE)
        options_fail("option semantics: udp gives at_least_once or at_most_once");
    if (settings.transport == TRANSPORT_TCP && settings.semantics != RPC_AT_MOST_ONCE)
        options_fail("option semantics: tcp gives at_most_once");
}

static void read_memory_options(void)
{
    settings.depth = (unsigned)options_integer("depth", 1, 1, over_mbcf() ? 32 : 1);
    settings.ack = options_boolean("ack", false);
    if (settings.ack && !over_mbcf())
        options_fail("option ack: only MBCF has a user-visible ACK");
    if (settings.one_way && settings.depth > 1)
        options_fail("option depth: one-way calls have no replies to wait for");
}

static void read_socket_options(void)
{
    settings.client_port = (unsigned)options_integer("client_port", 0, 0, PORT_LIMIT);
    settings.send_buffer = (unsigned)options_integer("send_buffer", 0, 0, BUFFER_LIMIT);
    settings.recv_buffer = (unsigned)options_integer("recv_buffer", 0, 0, BUFFER_LIMIT);
    settings.udp_message_size = (unsigned)options_integer("udp_message_size", UDPMSGSIZE, 400,
                                                          UDP_MESSAGE_LIMIT);
    if (!options_boolean("tcp_nodelay", true))
        options_fail("option tcp_nodelay: must be true; SSS-CORE's TCP never delays");
    if (options_integer("socket_buffer", 0, 0, BUFFER_LIMIT) != 0)
        options_fail("option socket_buffer: must be 0; SSS-CORE's buffers have one size");
}

static void read_auth(void)
{
    static const char *const flavors[] = {"none", "sys", NULL};

    settings.auth_sys = options_word("auth", flavors) == 1;
    options_text("auth_machine", "sundial", settings.auth_machine, sizeof(settings.auth_machine));
    settings.auth_uid = options_integer("auth_uid", 0, 0, NUMBER_LIMIT);
    settings.auth_gid = options_integer("auth_gid", 0, 0, NUMBER_LIMIT);
    settings.auth_gid_count = options_integers("auth_gids", 0, NUMBER_LIMIT, settings.auth_gids,
                                               NGRPS);
}

static void read_settings(int argc, char **argv)
{
    static const char *const connections[] = {"one", "per-size", NULL};

    options_open(argc, argv, "echo-client");
    settings.transport = (unsigned)options_word("transport", transport_names);
#ifdef SSS_LINUX
    if (!over_mbcf())
        options_fail("option transport: must be one of mbcf's; echo-client speaks udp and tcp");
#endif
    read_server();
    settings.procedure = (enum procedure)options_word("procedure", procedure_names);
    settings.one_way = options_boolean("one_way", false);
    if (settings.one_way && settings.procedure != PROCEDURE_SINK)
        options_fail("option one_way: only with the procedure \"sink\"");
    settings.series = options_integer("series", 0, 0, NUMBER_LIMIT);
    read_sizes();
    settings.calls = (size_t)options_integer("calls", 1, 0, CALLS_LIMIT);
    settings.warmup = (size_t)options_integer("warmup", 0, 0, CALLS_LIMIT);
    options_integer("threads", 1, 1, 1);
    settings.connection_per_size = options_word("connection", connections) == 1;
    settings.retry_ns = (uint64_t)options_integer("retry_timeout_ms", RETRY_DEFAULT_MS, 1,
                                                  TIMEOUT_LIMIT_MS) *
                        NS_PER_MS;
    settings.total_ns = (uint64_t)options_integer("total_timeout_ms", TOTAL_DEFAULT_MS, 1,
                                                  TIMEOUT_LIMIT_MS) *
                        NS_PER_MS;
    settings.binding_ns = (uint64_t)options_integer("binding_timeout_ms", BINDING_DEFAULT_MS, 1,
                                                    TIMEOUT_LIMIT_MS) *
                          NS_PER_MS;
    read_semantics();
    read_memory_options();
    if (!over_mbcf())
        read_socket_options();
    read_auth();
    options_check_all_taken();
}

/* ---- connections ---- */

static struct timeval timeval_of(uint64_t ns)
{
    return (struct timeval){.tv_sec = (time_t)(ns / 1000000000u),
                            .tv_usec = (suseconds_t)(ns % 1000000000u / 1000u)};
}

static void sleep_ms(uint64_t ms)
{
    static const volatile uint32_t nothing;

    sss_wait_word(&nothing, 0, ms * NS_PER_MS);
}

/* One question to the portmapper; 0 with the reason in `status` where the answer is no port. */
static unsigned short ask_port(enum clnt_stat *status, unsigned *sent)
{
    struct sockaddr_in portmapper = settings.server;
    struct pmap wanted = {ECHO_PROGRAM, ECHO_VERSION,
                          settings.transport == TRANSPORT_UDP ? IPPROTO_UDP : IPPROTO_TCP, 0};
    int handle = RPC_ANYSOCK;
    unsigned short port = 0;
    unsigned again = 0;
    CLIENT *asker;

    *status = RPC_SYSTEMERROR;
    portmapper.sin_port = htons(PMAPPORT);
    asker = clntudp_create(&portmapper, PMAPPROG, PMAPVERS, timeval_of(1000 * NS_PER_MS), &handle);
    if (asker == NULL)
        return 0;
    *status = clnt_call(asker, PMAPPROC_GETPORT, (xdrproc_t)xdr_pmap, &wanted,
                        (xdrproc_t)xdr_u_short, &port, timeval_of(5000 * NS_PER_MS));
    clnt_control(asker, CLGET_RETRANSMITS, &again);
    *sent += 1 + again;
    clnt_destroy(asker);
    if (*status == RPC_SUCCESS && port == 0)
        *status = RPC_PROGNOTREGISTERED;
    return *status == RPC_SUCCESS ? port : 0;
}

/* As on Linux: asks until there is a port or the time is over, and puts the binding line into the
 * records. */
static bool find_port(void)
{
    uint64_t start = sss_now_ns();
    uint64_t end, pause = FIRST_PAUSE_MS;
    unsigned sent = 0, attempts = 0;
    enum clnt_stat status;
    unsigned short port;

    for (;;) {
        port = ask_port(&status, &sent);
        end = sss_now_ns();
        attempts++;
        if (port != 0 || end >= start + settings.binding_ns)
            break;
        sleep_ms(pause);
        pause = pause * 2 > LONGEST_PAUSE_MS ? LONGEST_PAUSE_MS : pause * 2;
    }
    settings.server.sin_port = htons(port);
    sss_record("{\"type\":\"binding\",\"step\":%ld,\"app\":\"echo-client\",\"transport\":\"%s\","
               "\"start\":%llu,\"end\":%llu,"
               "\"ok\":%s,\"attempts\":%u,\"sent\":%u,\"port\":%u%s%s%s}",
               options_step() < 0 ? 0 : options_step(), transport_names[settings.transport],
               (unsigned long long)start, (unsigned long long)end, port != 0 ? "true" : "false",
               attempts, sent, port, port != 0 ? "" : ",\"error\":\"",
               port != 0 ? "" : clnt_sperrno(status), port != 0 ? "" : "\"");
    return port != 0;
}

static CLIENT *open_mbcf(void)
{
    struct clntmb_options options = {
        .type = (enum mbcf_type)(settings.transport - TRANSPORT_MBCF),
        .semantics = settings.semantics,
        .depth = settings.depth,
        .ack = settings.ack,
        .retry_ns = settings.retry_ns,
        .connect_ns = settings.total_ns,
    };

    if (options.type != MBCF1)
        options.message_most = HEADER_AND_LENGTH + CREDENTIAL_MOST + ((largest + 3) & ~(size_t)3);
    if (options.message_most > MBCF_MESSAGE_MOST)
        options.message_most = MBCF_MESSAGE_MOST;
    return clntmb_create(settings.node, ECHO_PROGRAM, ECHO_VERSION, &options);
}

static CLIENT *open_socket_client(void)
{
    int handle = RPC_ANYSOCK;

    if (settings.client_port != 0)
        handle = rpc_socket(settings.transport == TRANSPORT_UDP ? SSS_UDP : SSS_TCP,
                            (uint16_t)settings.client_port);
    if (settings.transport == TRANSPORT_TCP)
        return clnttcp_create(&settings.server, ECHO_PROGRAM, ECHO_VERSION, &handle,
                              settings.send_buffer, settings.recv_buffer);
    return clntudp_bufcreate(&settings.server, ECHO_PROGRAM, ECHO_VERSION,
                             timeval_of(settings.retry_ns), &handle, settings.udp_message_size,
                             settings.udp_message_size);
}

static void set_auth(void)
{
    gid_t gids[NGRPS];

    if (!settings.auth_sys)
        return;
    for (size_t i = 0; i < settings.auth_gid_count; i++)
        gids[i] = (gid_t)settings.auth_gids[i];
    auth_destroy(client->cl_auth);
    client->cl_auth = authunix_create(settings.auth_machine, (uid_t)settings.auth_uid,
                                      (gid_t)settings.auth_gid, (int)settings.auth_gid_count, gids);
    if (client->cl_auth == NULL)
        options_fail("option auth: the credential is longer than RFC 5531 allows");
}

static bool connect_client(void)
{
    client = over_mbcf() ? open_mbcf() : open_socket_client();
    if (client == NULL)
        return false;
    set_auth();
    if (!over_mbcf())
        clnt_control(client, CLGET_LOCAL_PORT, &local_port);
    return true;
}

static void disconnect_client(void)
{
    if (client != NULL) {
        auth_destroy(client->cl_auth);
        clnt_destroy(client);
    }
    client = NULL;
}

/* The server may still be coming up. Over MBCF there is no line for it: no frame of it is a
 * portmapper's. */
static bool find_server(void)
{
    uint64_t deadline = sss_now_ns() + settings.binding_ns;
    uint64_t pause = FIRST_PAUSE_MS;

    if (!over_mbcf())
        return settings.server.sin_port != 0 || find_port();
    while (!connect_client()) {
        bool hopeless = rpc_createerr.cf_stat == RPC_SYSTEMERROR ||
                        rpc_createerr.cf_error.re_errno == MB_STATUS_BASE + MB_NO_NODE;

        if (sss_now_ns() >= deadline || hopeless) {
            task_error("node %u: %s: %s", settings.node, clnt_sperrno(rpc_createerr.cf_stat),
                       clntmb_create_error());
            return false;
        }
        sleep_ms(pause);
        pause = pause * 2 > LONGEST_PAUSE_MS ? LONGEST_PAUSE_MS : pause * 2;
    }
    return true;
}

/* ---- calls ---- */

static void prepare_data(struct exchange *exchange, uint32_t sequence, size_t size)
{
    pattern_fill(PATTERN_OPAQUE, sequence, 0, exchange->sent, size);
    exchange->data = (echo_data){(u_int)size, exchange->sent};
    exchange->encode = (xdrproc_t)xdr_echo_data;
    exchange->argument = &exchange->data;
}

static void expect_data(struct exchange *exchange, size_t size)
{
    exchange->data_back = (echo_data){.echo_data_val = exchange->received};
    exchange->decode = (xdrproc_t)xdr_echo_data;
    exchange->result = &exchange->data_back;
    exchange->expected = size;
}

static void prepare_text(struct exchange *exchange, uint32_t sequence, size_t size)
{
    pattern_fill(PATTERN_TEXT, sequence, 0, exchange->sent, size);
    exchange->sent[size] = '\0';
    exchange->text = exchange->sent;
    exchange->text_back = exchange->received;
    exchange->encode = exchange->decode = (xdrproc_t)xdr_echo_text;
    exchange->argument = &exchange->text;
    exchange->result = &exchange->text_back;
    exchange->expected = size;
}

static void prepare(struct exchange *exchange, size_t index, size_t size)
{
    uint32_t sequence = (uint32_t)index;

    exchange->index = index;
    exchange->encode = exchange->decode = (xdrproc_t)xdr_void;
    exchange->argument = exchange->result = NULL;
    exchange->expected = 0;
    switch (settings.procedure) {
    case PROCEDURE_NULL:
        exchange->procedure = ECHO_NULL;
        break;
    case PROCEDURE_ECHO:
        exchange->procedure = ECHO_OPAQUE;
        prepare_data(exchange, sequence, size);
        expect_data(exchange, size);
        break;
    case PROCEDURE_STRING:
        exchange->procedure = ECHO_STRING;
        prepare_text(exchange, sequence, size);
        break;
    case PROCEDURE_SINK:
        exchange->procedure = settings.one_way ? ECHO_SINK_ONE_WAY : ECHO_SINK;
        prepare_data(exchange, sequence, size);
        break;
    case PROCEDURE_SOURCE:
        exchange->procedure = ECHO_SOURCE;
        exchange->request = (echo_source_request){.sequence = sequence, .size = (u_int)size};
        exchange->encode = (xdrproc_t)xdr_echo_source_request;
        exchange->argument = &exchange->request;
        expect_data(exchange, size);
        break;
    }
}

static bool came_back_right(const struct exchange *exchange)
{
    uint32_t sequence = (uint32_t)exchange->index;

    switch (settings.procedure) {
    case PROCEDURE_ECHO:
    case PROCEDURE_SOURCE:
        return exchange->data_back.echo_data_len == exchange->expected &&
               pattern_matches(PATTERN_OPAQUE, sequence, 0, exchange->received, exchange->expected);
    case PROCEDURE_STRING:
        return strlen(exchange->received) == exchange->expected &&
               pattern_matches(PATTERN_TEXT, sequence, 0, exchange->received, exchange->expected);
    default:
        return true;
    }
}

/* What is known of the execution goes along: it is what exactly-once promises of a failure. */
static const char *detail_of_failure(void)
{
    if (!over_mbcf())
        return NULL;
    switch (clntmb_execution(client)) {
    case RPC_NOT_EXECUTED:
        return "not executed";
    case RPC_EXECUTED:
        return "executed";
    default:
        return "maybe executed";
    }
}

static void note_result(struct call_record *record, const struct exchange *exchange,
                        enum clnt_stat status)
{
    if (status != RPC_SUCCESS) {
        record->error = clnt_sperrno(status);
        record->detail = detail_of_failure();
        if (settings.transport == TRANSPORT_TCP)
            disconnect_client(); /* a late reply may still come on the stream */
    } else if (!came_back_right(exchange)) {
        record->error = "reply does not hold the expected payload";
    } else {
        record->ok = true;
    }
}

static unsigned retransmits(void)
{
    unsigned sent = 0;

    if (client != NULL)
        clnt_control(client, CLGET_RETRANSMITS, &sent);
    return sent;
}

static bool reconnected(struct call_record *record)
{
    if (client != NULL || connect_client())
        return true;
    record->start_ns = record->end_ns = sss_now_ns();
    record->error = clnt_sperrno(rpc_createerr.cf_stat);
    record->detail = over_mbcf() ? clntmb_create_error() : NULL;
    return false;
}

static void call_and_wait(size_t index, size_t size)
{
    struct exchange *exchange = &exchanges[0];
    struct call_record *record = &records[index];
    struct timeval total = timeval_of(settings.one_way ? 0 : settings.total_ns);
    unsigned before;
    enum clnt_stat status;

    *record = (struct call_record){.xid = next_xid++, .has_xid = true};
    if (!reconnected(record))
        return;
    prepare(exchange, index, size);
    clnt_control(client, CLSET_XID, &record->xid);
    before = retransmits();
    if (settings.one_way)
        exchange->decode = NULL;

    record->start_ns = sss_now_ns();
    status = clnt_call(client, exchange->procedure, exchange->encode, exchange->argument,
                       exchange->decode, exchange->result, total);
    record->end_ns = sss_now_ns();

    if (settings.transport != TRANSPORT_TCP)
        record->retransmits = (uint16_t)(retransmits() - before);
    if (settings.one_way && !over_mbcf() && status == RPC_TIMEDOUT)
        status = RPC_SUCCESS;
    note_result(record, exchange, status);
}

/* ---- several calls under way ---- */

static void finish_call(struct exchange *exchange)
{
    struct call_record *record = &records[exchange->index];
    uint32_t again = exchange->call->retransmits;
    enum clnt_stat status;

    record->xid = exchange->call->xid;
    status = rpc_wait(exchange->call, settings.total_ns);
    record->end_ns = sss_now_ns();
    record->retransmits = (uint16_t)again;
    exchange->call = NULL;
    note_result(record, exchange, status);
}

static void start_call(struct exchange *exchange, size_t index, size_t size)
{
    struct call_record *record = &records[index];

    *record = (struct call_record){.xid = next_xid++, .has_xid = true};
    prepare(exchange, index, size);
    clnt_control(client, CLSET_XID, &record->xid);
    record->start_ns = sss_now_ns();
    exchange->call = rpc_async(client, exchange->procedure, exchange->encode, exchange->argument,
                               exchange->decode, exchange->result);
    if (exchange->call != NULL)
        return;
    record->end_ns = sss_now_ns();
    record->error = "out of memory";
}

/* Always `depth` calls under way; each that has ended makes place for the next one, whatever its
 * order. */
static void run_deep(size_t size, size_t count)
{
    size_t started = 0, oldest = 0;

    while (oldest < count) {
        struct exchange *first;

        for (size_t i = 0; i < settings.depth && started < count; i++)
            if (exchanges[i].call == NULL && started < count)
                start_call(&exchanges[i], started++, size);
        first = NULL;
        for (size_t i = 0; i < settings.depth; i++)
            if (exchanges[i].call != NULL && (first == NULL || exchanges[i].index < first->index))
                first = &exchanges[i];
        if (first == NULL) {
            oldest = started;
            continue;
        }
        finish_call(first);
        for (size_t i = 0; i < settings.depth; i++)
            if (exchanges[i].call != NULL && rpc_poll(exchanges[i].call))
                finish_call(&exchanges[i]);
    }
}

/* After one-way calls: one call with a reply, so that everything before it has been executed. */
static bool flush_one_way(void)
{
    uint32_t xid = next_xid++;

    if (client == NULL)
        return false;
    clnt_control(client, CLSET_XID, &xid);
    return clnt_call(client, ECHO_NULL, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL,
                     timeval_of(settings.total_ns)) == RPC_SUCCESS;
}

/* ---- batches ---- */

static void put_batch(size_t size, size_t count, unsigned tcp_retransmits)
{
    char fields[FIELDS_BYTES];
    int length = snprintf(
        fields, sizeof(fields),
        "\"series\":%lld,\"transport\":\"%s\",\"procedure\":\"%s\",\"size\":%zu,\"thread\":0,"
        "\"server\":\"%s\",\"warmup\":%zu",
        settings.series, transport_names[settings.transport], procedure_names[settings.procedure],
        size, settings.server_text, settings.warmup);

    if (over_mbcf()) {
        uint16_t node, task = 0, self_node, self;

        mb_self(&self_node, &self);
        if (client != NULL)
            clntmb_server(client, &node, &task);
        snprintf(fields + length, sizeof(fields) - (size_t)length,
                 ",\"server_node\":%u,\"server_task\":%u,\"client_task\":%u,\"ack\":%s,\"depth\":%"
                 "u,\"semantics\":\"%s\","
                 "\"one_way\":%s",
                 settings.node, task, self, settings.ack ? "true" : "false", settings.depth,
                 rpc_semantics_names[settings.semantics], settings.one_way ? "true" : "false");
    } else {
        snprintf(
            fields + length, sizeof(fields) - (size_t)length,
            ",\"server_port\":%u,\"client_port\":%u,\"tcp_retransmits\":%u,\"semantics\":\"%s\"",
            ntohs(settings.server.sin_port), local_port, tcp_retransmits,
            rpc_semantics_names[settings.semantics]);
    }
    samples_put_batch(fields, records, count);
}

static void run_batch(size_t size)
{
    size_t count = settings.warmup + settings.calls;
    unsigned before;
    bool flushed;

    if (client == NULL)
        connect_client(); /* if this fails, each call tries again and says why */
    before = retransmits();
    if (settings.depth > 1 && client != NULL)
        run_deep(size, count);
    else
        for (size_t index = 0; index < count; index++)
            call_and_wait(index, size);
    flushed = !settings.one_way || flush_one_way();
    put_batch(size, count, settings.transport == TRANSPORT_TCP ? retransmits() - before : 0);
    if (!flushed)
        task_error("size %zu: the call after the one-way calls failed", size);
}

static void prepare_memory(void)
{
    size_t count = settings.warmup + settings.calls;
    /* What a reply could hold at most, whatever the server answers. */
    size_t result = over_mbcf() ? MBCF_1_MESSAGE_MOST + CREDENTIAL_MOST + largest
                    : settings.transport == TRANSPORT_UDP ? UDP_MESSAGE_LIMIT + 1
                                                          : ECHO_LIMIT + 1;

    exchanges = calloc(settings.depth, sizeof(*exchanges));
    records = calloc(count + 1, sizeof(*records));
    if (exchanges == NULL || records == NULL)
        task_fail("out of memory");
    for (size_t i = 0; i < settings.depth; i++) {
        exchanges[i].sent = malloc(largest + 1);
        exchanges[i].received = malloc(result);
        if (exchanges[i].sent == NULL || exchanges[i].received == NULL)
            task_fail("out of memory");
    }
}

/* Calls that failed are results, told in their rows; only a step that cannot measure ends badly. */
int main(int argc, char **argv)
{
    char machine[sizeof(SSS_INFO->machine)];

    read_settings(argc, argv);
    for (size_t i = 0; i < sizeof(machine); i++)
        machine[i] = SSS_INFO->machine[i];
    machine[sizeof(machine) - 1] = '\0';
    next_xid = (uint32_t)mix_seed(options_seed(), machine,
                                  (uint64_t)(options_step() < 0 ? 0 : options_step()));
    prepare_memory();
    if (!find_server())
        return over_mbcf() ? OPTIONS_BAD : 1;
    for (size_t i = 0; i < settings.size_count; i++) {
        if (settings.connection_per_size && i > 0)
            disconnect_client();
        run_batch((size_t)settings.sizes[i]);
    }
    disconnect_client();
    return 0;
}
