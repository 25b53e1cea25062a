/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Sun RPC client over UDP, TCP, MBCF and in rings: measures one batch of calls for each size.
 * What is measured is the call alone: arguments are made before and results checked after it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "mix.h"
#include "options.h"
#include "port.h"
#include "settings.h"
#include "sss/system.h"

enum { FIELDS_BYTES = 768 };

static struct settings settings;
static struct caller caller;
static struct call_record *records;

static const struct own_port *port(void)
{
    return settings_over_mbcf(&settings)   ? &port_mbcf
           : settings_over_vrpc(&settings) ? &port_vrpc
                                           : &port_sockets;
}

static void put_batch(size_t size, size_t count)
{
    bool function = caller.function != 0;
    const char *procedure = function ? function_names[caller.function - 1]
                                     : echo_client_procedures[settings.procedure];
    size_t bytes = function ? function_size(caller.function) : size;
    char fields[FIELDS_BYTES];
    int length = snprintf(
        fields, sizeof(fields),
        "\"series\":%lld,\"transport\":\"%s\",\"procedure\":\"%s\",\"size\":%zu,\"thread\":0,"
        "\"server\":\"%s\",\"warmup\":%zu",
        settings.series, transport_names[settings.transport], procedure, bytes,
        settings.server_text, settings.warmup);

    if (function)
        length += snprintf(fields + length, sizeof(fields) - (size_t)length, ",\"function\":%d",
                           (int)caller.function);
    port()->put_fields(&caller, fields + length, sizeof(fields) - (size_t)length);
    samples_put_batch(fields, records, count);
}

static void run_batch(size_t size)
{
    size_t count = settings.warmup + settings.calls;

    if (settings.functions)
        caller.function = (enum function)size;
    caller_batch(&caller, size, records, count, settings.depth > 1 ? depth_calls : caller_calls);
    put_batch(size, count);
}

static uint32_t first_xid(void)
{
    char machine[sizeof(SSS_INFO->machine)];

    for (size_t i = 0; i < sizeof(machine); i++)
        machine[i] = SSS_INFO->machine[i];
    machine[sizeof(machine) - 1] = '\0';
    return (uint32_t)mix_seed(options_seed(), machine,
                              (uint64_t)(options_step() < 0 ? 0 : options_step()));
}

/* What a reply could hold at most, whatever the server answers. */
static size_t received_bytes(void)
{
    if (settings_over_mbcf(&settings) || settings_over_vrpc(&settings))
        return MBCF_1_MESSAGE_MOST + CREDENTIAL_MOST + settings.largest;
    return (settings.transport == TRANSPORT_UDP ? UDP_MESSAGE_LIMIT : ECHO_LIMIT) + 1;
}

static void prepare(void)
{
    records = calloc(settings.warmup + settings.calls + 1, sizeof(*records));
    caller = (struct caller){
        .port = &port()->port,
        .settings = &settings,
        .procedure = settings.procedure,
        .one_way = settings.one_way,
        .xid = first_xid(),
        .exchange = {.sent = malloc(settings.largest + 1), .received = malloc(received_bytes())}};
    if (records == NULL || caller.exchange.sent == NULL || caller.exchange.received == NULL)
        task_fail("out of memory");
    if (settings.depth > 1)
        depth_init(&settings, received_bytes());
}

/* Calls that failed are results, in rows of their own; only a step that cannot measure fails. */
int main(int argc, char **argv)
{
    int status;

    settings_read(&settings, argc, argv);
    prepare();
    status = port()->find_server(&caller, &settings);
    if (status != 0)
        return status;
    for (size_t i = 0; i < settings.size_count; i++) {
        if (settings.connection_per_size && i > 0)
            caller.port->disconnect(&caller);
        run_batch((size_t)settings.sizes[i]);
    }
    caller.port->disconnect(&caller);
    return 0;
}
