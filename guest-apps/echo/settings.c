/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "samples.h"

enum {
    PORT_LIMIT = 65535,
    BUFFER_LIMIT = 1 << 24,
    TIMEOUT_LIMIT_MS = 3600 * 1000,
    NUMBER_LIMIT = 0x7fffffff,
    UDP_MESSAGE_DEFAULT = 8800, /* UDPMSGSIZE */
    UDP_MESSAGE_LIMIT = 65507,  /* 65535 less the IPv4 and UDP headers */
    RETRY_DEFAULT_MS = 5000,    /* what rpcgen's stubs and rpcinfo wait */
    TOTAL_DEFAULT_MS = 25000,
    BINDING_DEFAULT_MS = 30000,
};

static void read_auth(struct settings *settings, struct options *options)
{
    static const char *const flavors[] = {"none", "sys", NULL};
    long long *gids;

    settings->auth_sys = options_word(options, "auth", flavors) == 1;
    snprintf(settings->auth_machine, sizeof(settings->auth_machine), "%s",
             options_text(options, "auth_machine", "sundial"));
    settings->auth_uid = (uid_t)options_integer(options, "auth_uid", 0, 0, NUMBER_LIMIT);
    settings->auth_gid = (gid_t)options_integer(options, "auth_gid", 0, 0, NUMBER_LIMIT);
    gids = options_integers(options, "auth_gids", 0, NUMBER_LIMIT, &settings->auth_gid_count);
    if (settings->auth_gid_count > GROUPS_LIMIT)
        samples_refuse("option auth_gids: at most %d", GROUPS_LIMIT);
    for (size_t i = 0; i < settings->auth_gid_count; i++)
        settings->auth_gids[i] = (gid_t)gids[i];
    free(gids);
}

static void read_buffers(struct settings *settings, struct options *options)
{
    settings->send_buffer = (unsigned)options_integer(options, "send_buffer", 0, 0, BUFFER_LIMIT);
    settings->recv_buffer = (unsigned)options_integer(options, "recv_buffer", 0, 0, BUFFER_LIMIT);
    settings->udp_message_size = (unsigned)options_integer(
        options, "udp_message_size", UDP_MESSAGE_DEFAULT, 400, UDP_MESSAGE_LIMIT);
    settings->socket_buffer = (int)options_integer(options, "socket_buffer", 0, 0, BUFFER_LIMIT);
    settings->tcp_nodelay = options_boolean(options, "tcp_nodelay", true);
}

static void read_target(struct settings *settings, struct options *options)
{
    static const char *const transports[] = {"udp", "tcp", NULL};

    settings->server_text = strdup(options_text(options, "server", NULL));
    settings->server.sin_family = AF_INET;
    if (inet_pton(AF_INET, settings->server_text, &settings->server.sin_addr) != 1)
        samples_refuse("option server: must be an address like 10.0.0.2");
    settings->server.sin_port = htons((uint16_t)options_integer(options, "port", 0, 0, PORT_LIMIT));
    settings->transport = (enum transport)options_word(options, "transport", transports);
    settings->transport_text = transports[settings->transport];
}

/* Functions are a program of their own, without the options of the other. */
static void read_program(struct settings *settings, struct options *options)
{
    if (settings->workload.functions) {
        settings->program = CALLS_PROGRAM;
        settings->version = CALLS_VERSION;
        return;
    }
    settings->program = ECHO_PROGRAM;
    settings->version = ECHO_VERSION;
    settings->procedure = (enum procedure)options_word(options, "procedure",
                                                       echo_client_procedures);
    settings->procedure_text = echo_client_procedures[settings->procedure];
    settings->one_way = options_boolean(options, "one_way", false);
    if (settings->one_way && settings->procedure != PROCEDURE_SINK)
        samples_refuse("option one_way: only with the procedure \"sink\"");
}

void settings_read(struct settings *settings, int argc, char **argv)
{
    struct options *options = options_open(argc, argv);

    memset(settings, 0, sizeof(*settings));
    read_target(settings, options);
    workload_read_functions(&settings->workload, options);
    read_program(settings, options);
    workload_read(&settings->workload, options, 0, ECHO_LIMIT);
    settings->client_port = (unsigned)options_integer(options, "client_port", 0, 0, PORT_LIMIT);
    read_buffers(settings, options);
    settings->retry_timeout_ms = options_integer(options, "retry_timeout_ms", RETRY_DEFAULT_MS, 1,
                                                 TIMEOUT_LIMIT_MS);
    settings->total_timeout_ms = options_integer(options, "total_timeout_ms", TOTAL_DEFAULT_MS, 1,
                                                 TIMEOUT_LIMIT_MS);
    settings->binding_timeout_ms = options_integer(options, "binding_timeout_ms",
                                                   BINDING_DEFAULT_MS, 1, TIMEOUT_LIMIT_MS);
    read_auth(settings, options);
    options_check_all_taken(options);
    options_close(options);
}
