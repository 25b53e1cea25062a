/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client of the raw workloads: echoes over plain UDP or TCP sockets, a batch a size and caller.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "apps.h"
#include "channel.h"
#include "clock.h"
#include "header.h"
#include "options.h"
#include "samples.h"
#include "workload.h"

enum {
    DEFAULT_PORT = 1026,
    PORT_LIMIT = 65535,
    BUFFER_LIMIT = 1 << 24,
    TIMEOUT_LIMIT_MS = 3600 * 1000,
    RETRY_DEFAULT_MS = 1000,
    TOTAL_DEFAULT_MS = 25000,
};

struct slot {
    struct channel channel;
    unsigned tcp_retransmits; /* during the batch */
};

static const char *const transports[] = {"udp", "tcp", NULL};

static struct channel_settings settings;
static struct workload workload;
static char *server_text;
static struct slot *slots; /* one a thread */

static void read_settings(int argc, char **argv)
{
    struct options *options = options_open(argc, argv);
    bool udp;

    server_text = strdup(options_text(options, "server", NULL));
    settings.server.sin_family = AF_INET;
    if (inet_pton(AF_INET, server_text, &settings.server.sin_addr) != 1)
        samples_refuse("option server: must be an address like 10.0.0.2");
    settings.server.sin_port =
        htons((uint16_t)options_integer(options, "port", DEFAULT_PORT, 1, PORT_LIMIT));
    settings.transport = (enum transport)options_word(options, "transport", transports);
    settings.client_port = (unsigned)options_integer(options, "client_port", 0, 0, PORT_LIMIT);
    settings.socket_buffer = (int)options_integer(options, "socket_buffer", 0, 0, BUFFER_LIMIT);
    settings.tcp_nodelay = options_boolean(options, "tcp_nodelay", true);
    settings.retry_timeout_ms = options_integer(options, "retry_timeout_ms", RETRY_DEFAULT_MS, 1,
                                                TIMEOUT_LIMIT_MS);
    settings.total_timeout_ms = options_integer(options, "total_timeout_ms", TOTAL_DEFAULT_MS, 1,
                                                TIMEOUT_LIMIT_MS);
    udp = settings.transport == TRANSPORT_UDP;
    workload_read_functions(&workload, options);
    workload_read(&workload, options, udp ? 0 : HEADER_BYTES, udp ? DATAGRAM_LIMIT : PAYLOAD_LIMIT);
    options_check_all_taken(options);
    options_close(options);
}

static void run_batch(size_t thread, size_t size, struct call_record *records)
{
    struct slot *slot = &slots[thread];
    struct channel *channel = &slot->channel;
    unsigned before;

    if (workload.connection_per_size)
        channel_disconnect(channel);
    if (workload.functions)
        channel->function = (enum function)size;
    if (channel->socket < 0)
        channel_connect(channel); /* if this fails, each call tries again and says why */
    before = channel_tcp_retransmits(channel);
    for (size_t call = 0; call < workload_batch_calls(&workload); call++)
        channel_exchange(channel, (uint32_t)call, size, &records[call]);
    slot->tcp_retransmits = channel_tcp_retransmits(channel) - before;
}

static void write_batch(size_t thread, size_t size, const struct call_record *records)
{
    const struct slot *slot = &slots[thread];
    enum function function = slot->channel.function;
    const char *procedure = function == 0 ? "echo" : function_names[function - 1];
    size_t bytes = function == 0 ? size : function_size(function);
    json_t *header = samples_object("batch");

    json_object_update_new(
        header, json_pack("{sI ss ss sI si ss si si si si}", "series", (json_int_t)workload.series,
                          "transport", transports[settings.transport], "procedure", procedure,
                          "size", (json_int_t)bytes, "thread", (int)thread, "server", server_text,
                          "server_port", (int)ntohs(settings.server.sin_port), "client_port",
                          (int)slot->channel.client_port, "warmup", (int)workload.warmup,
                          "tcp_retransmits", (int)slot->tcp_retransmits));
    if (function != 0)
        json_object_set_new(header, "function", json_integer(function));
    samples_put_batch(header, records, workload_batch_calls(&workload), channel_failure_text);
}

int raw_client_main(int argc, char **argv)
{
    static const struct workload_calls calls = {.run = run_batch, .write = write_batch};

    if (clock_select_from_environment() != 0)
        samples_fail("SUNDIAL_CLOCK: must be tsc or monotonic");
    read_settings(argc, argv);
    slots = calloc(workload.threads, sizeof(*slots));
    if (slots == NULL)
        samples_fail("out of memory");
    for (size_t thread = 0; thread < workload.threads; thread++)
        channel_init(&slots[thread].channel, &settings, thread);
    workload_run(&workload, &calls);
    for (size_t thread = 0; thread < workload.threads; thread++)
        channel_disconnect(&slots[thread].channel);
    return 0;
}
