/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>

#include "options.h"
#include "vrpc_options.h"

enum {
    PORT_LIMIT = 65535,
    BUFFER_LIMIT = 1 << 24,
    RETRY_DEFAULT_MS = 5000,
    BINDING_DEFAULT_MS = 30000,
    /* The longest argument of a function, the array of strings: its length, and in each element. */
    WORDS_BYTES = 4 + CALLS_ELEMENTS * (4 + (CALLS_WORD + 3) / 4 * 4),
};

bool settings_over_mbcf(const struct settings *settings)
{
    return settings->transport >= TRANSPORT_MBCF && settings->transport < TRANSPORT_VRPC;
}

bool settings_over_vrpc(const struct settings *settings)
{
    return settings->transport >= TRANSPORT_VRPC;
}

static bool over_sockets(const struct settings *settings)
{
    return settings->transport < TRANSPORT_MBCF;
}

static void read_server(struct settings *settings)
{
    unsigned part[4];
    char *at = settings->server_text, *end;

    if (!over_sockets(settings)) {
        settings->node = (uint16_t)options_integer("server", 0, 1, SSS_NODES);
        if (settings->node == 0)
            options_fail("option server: must be given, as a node id");
        snprintf(settings->server_text, SERVER_TEXT_BYTES, "%u", settings->node);
        return;
    }
    options_text("server", NULL, settings->server_text, SERVER_TEXT_BYTES);
    for (unsigned i = 0; i < 4; i++, at = end + 1) {
        part[i] = (unsigned)strtoul(at, &end, 10);
        if (end == at || part[i] > 255 || *end != (i < 3 ? '.' : '\0'))
            options_fail("option server: must be an address like 10.0.0.2");
    }
    settings->server.sin_family = AF_INET;
    settings->server.sin_addr.s_addr = htonl(part[0] << 24 | part[1] << 16 | part[2] << 8 |
                                             part[3]);
    settings->server.sin_port = htons((uint16_t)options_integer("port", 0, 0, PORT_LIMIT));
}

/* Functions are a program of their own, without the options of the other. */
static bool read_functions(struct settings *settings)
{
    int places[SIZES_MOST];

    settings->size_count = options_word_list("functions", function_names, places, SIZES_MOST);
    settings->functions = settings->size_count > 0;
    for (size_t i = 0; i < settings->size_count; i++)
        settings->sizes[i] = places[i] + 1;
    for (size_t i = 0; i < settings->size_count; i++)
        if (settings->transport == TRANSPORT_MBCF + MBCF1 &&
            settings->sizes[i] == FUNCTION_STRING_ARRAY)
            options_fail("option functions: mbcf1 does not carry \"%s\"",
                         function_names[FUNCTION_STRING_ARRAY - 1]);
    settings->largest = settings->functions ? WORDS_BYTES : 0;
    settings->program = settings->functions ? CALLS_PROGRAM : ECHO_PROGRAM;
    settings->version = settings->functions ? CALLS_VERSION : ECHO_VERSION;
    return settings->functions;
}

static void read_procedure(struct settings *settings)
{
    settings->procedure = (enum procedure)options_word("procedure", echo_client_procedures);
    settings->one_way = options_boolean("one_way", false);
    if (settings->one_way && settings->procedure != PROCEDURE_SINK)
        options_fail("option one_way: only with the procedure \"sink\"");
}

static void read_sizes(struct settings *settings)
{
    long long most = settings_over_mbcf(settings)   ? MBCF_MESSAGE_MOST - HEADER_AND_LENGTH
                     : settings_over_vrpc(settings) ? VRPC_MESSAGE_MOST - HEADER_AND_LENGTH
                                                    : ECHO_LIMIT;

    settings->size_count = options_integers("sizes", 0, most, settings->sizes, SIZES_MOST);
    if (settings->size_count == 0)
        settings->size_count = 1;
    for (size_t i = 0; i < settings->size_count; i++)
        if ((size_t)settings->sizes[i] > settings->largest)
            settings->largest = (size_t)settings->sizes[i];
    if (settings->transport == TRANSPORT_MBCF + MBCF1 &&
        settings->largest > MBCF_1_MESSAGE_MOST - HEADER_AND_LENGTH)
        options_fail("option sizes: mbcf1 carries at most %d bytes",
                     MBCF_1_MESSAGE_MOST - HEADER_AND_LENGTH);
}

/* What each transport can give; the first is what it gives where nothing is asked. */
static void read_semantics(struct settings *settings)
{
    static const char *const words[] = {"", "exactly_once", "at_most_once", "at_least_once", NULL};
    int word = options_word("semantics", words);
    enum rpc_semantics absent = settings->transport == TRANSPORT_UDP ? RPC_AT_LEAST_ONCE
                                : settings->transport == TRANSPORT_TCP ||
                                        settings_over_vrpc(settings)
                                    ? RPC_AT_MOST_ONCE
                                    : RPC_EXACTLY_ONCE;

    settings->semantics = word == 0 ? absent : (enum rpc_semantics)(word - 1);
    if (settings->transport == TRANSPORT_UDP && settings->semantics == RPC_EXACTLY_ONCE)
        options_fail("option semantics: udp gives at_least_once or at_most_once");
    if (settings->transport == TRANSPORT_TCP && settings->semantics != RPC_AT_MOST_ONCE)
        options_fail("option semantics: tcp gives at_most_once");
    if (settings_over_vrpc(settings) && settings->semantics != RPC_AT_MOST_ONCE)
        options_fail("option semantics: vrpc gives at_most_once");
}

static void read_memory_options(struct settings *settings)
{
    settings->depth = (unsigned)options_integer("depth", 1, 1, over_sockets(settings) ? 1 : 32);
    settings->ack = options_boolean("ack", false);
    if (settings->ack && !settings_over_mbcf(settings))
        options_fail("option ack: only MBCF has a user-visible ACK");
    if (settings->functions && settings->depth > 1)
        options_fail("option depth: functions are called one after another");
    if (settings->one_way && settings->depth > 1)
        options_fail("option depth: one-way calls have no replies to wait for");
}

static void read_socket_options(struct settings *settings)
{
    settings->client_port = (unsigned)options_integer("client_port", 0, 0, PORT_LIMIT);
    settings->send_buffer = (unsigned)options_integer("send_buffer", 0, 0, BUFFER_LIMIT);
    settings->recv_buffer = (unsigned)options_integer("recv_buffer", 0, 0, BUFFER_LIMIT);
    settings->udp_message_size = (unsigned)options_integer("udp_message_size", UDPMSGSIZE, 400,
                                                           UDP_MESSAGE_LIMIT);
    if (!options_boolean("tcp_nodelay", true))
        options_fail("option tcp_nodelay: must be true; SSS-CORE's TCP never delays");
    if (options_integer("socket_buffer", 0, 0, BUFFER_LIMIT) != 0)
        options_fail("option socket_buffer: must be 0; SSS-CORE's buffers have one size");
}

static void read_auth(struct settings *settings)
{
    static const char *const flavors[] = {"none", "sys", NULL};

    settings->auth_sys = options_word("auth", flavors) == 1;
    options_text("auth_machine", "sundial", settings->auth_machine, sizeof(settings->auth_machine));
    settings->auth_uid = options_integer("auth_uid", 0, 0, NUMBER_LIMIT);
    settings->auth_gid = options_integer("auth_gid", 0, 0, NUMBER_LIMIT);
    settings->auth_gid_count = options_integers("auth_gids", 0, NUMBER_LIMIT, settings->auth_gids,
                                                NGRPS);
}

void settings_read(struct settings *settings, int argc, char **argv)
{
    static const char *const connections[] = {"one", "per-size", NULL};

    options_open(argc, argv, "echo-client");
    settings->transport = (unsigned)options_word("transport", transport_names);
#ifdef SSS_LINUX
    if (settings->transport == TRANSPORT_VRPC || over_sockets(settings))
        options_fail("option transport: must be one of mbcf's; echo-client speaks udp and tcp");
#endif
    read_server(settings);
    if (!read_functions(settings)) {
        read_procedure(settings);
        read_sizes(settings);
    }
    settings->series = options_integer("series", 0, 0, NUMBER_LIMIT);
    settings->calls = (size_t)options_integer("calls", 1, 0, CALLS_LIMIT);
    settings->warmup = (size_t)options_integer("warmup", 0, 0, CALLS_LIMIT);
    options_integer("threads", 1, 1, 1);
    settings->connection_per_size = options_word("connection", connections) == 1;
    settings->retry_ns = (uint64_t)options_integer("retry_timeout_ms", RETRY_DEFAULT_MS, 1,
                                                   TIMEOUT_LIMIT_MS) *
                         NS_PER_MS;
    settings->total_ns = (uint64_t)options_integer("total_timeout_ms", TOTAL_DEFAULT_MS, 1,
                                                   TIMEOUT_LIMIT_MS) *
                         NS_PER_MS;
    settings->binding_ns = (uint64_t)options_integer("binding_timeout_ms", BINDING_DEFAULT_MS, 1,
                                                     TIMEOUT_LIMIT_MS) *
                           NS_PER_MS;
    read_semantics(settings);
    read_memory_options(settings);
    if (over_sockets(settings))
        read_socket_options(settings);
    if (settings_over_vrpc(settings))
        vrpc_options_read(&settings->wait, &settings->deliberate_above);
    read_auth(settings);
    options_check_all_taken();
}
