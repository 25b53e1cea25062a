/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ShrimpRPC client: measures one batch of calls for each size. What is measured is the call
 * alone: arguments are made before and results checked after it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "client_limits.h"
#include "echo_procedures.h"
#include "options.h"
#include "pattern.h"
#include "samples.h"
#include "sss/system.h"

enum {
    FIXED = 64,
    FIELDS_BYTES = 512,
};

static const char *const wait_names[] = {"poll", "notify", NULL};

static struct {
    uint16_t node;
    int procedure; /* its number in echo.x */
    int wait;
    long long series;
    long long sizes[SIZES_MOST];
    size_t size_count;
    size_t calls, warmup;
    uint64_t total_ns;
} settings;

static struct shrimp_binding binding;
static struct shrimp_client *const client = &binding.client;
static struct call_record *records;
static uint8_t sent[ECHO_LIMIT];

static bool is_fixed(void)
{
    return settings.procedure >= ECHO_IN_64;
}

static void read_sizes(void)
{
    long long least = is_fixed() ? FIXED : 0, most = least;

    if (!is_fixed() && settings.procedure != ECHO_NULL)
        most = ECHO_LIMIT;
    settings.size_count = options_integers("sizes", least, most, settings.sizes, SIZES_MOST);
    if (settings.size_count == 0) {
        settings.sizes[0] = least;
        settings.size_count = 1;
    }
}

static void read_settings(int argc, char **argv)
{
    options_open(argc, argv, "shrimp-client");
    settings.node = (uint16_t)options_integer("server", 0, 1, SSS_NODES);
    if (settings.node == 0)
        options_fail("option server: must be given, as a node id");
    settings.procedure = options_word("procedure", echo_procedure_names);
    settings.wait = options_word("wait", wait_names);
    settings.series = options_integer("series", 0, 0, NUMBER_LIMIT);
    read_sizes();
    settings.calls = (size_t)options_integer("calls", 1, 0, CALLS_LIMIT);
    settings.warmup = (size_t)options_integer("warmup", 0, 0, CALLS_LIMIT);
    settings.total_ns = (uint64_t)options_integer("total_timeout_ms", TOTAL_DEFAULT_MS, 1,
                                                  TIMEOUT_LIMIT_MS) *
                        NS_PER_MS;
    options_check_all_taken();
}

static const uint8_t *back;
static uint32_t back_length;

static uint16_t call(uint32_t sequence, uint32_t size)
{
    switch (settings.procedure) {
    case ECHO_NULL:
        return echo_null(client);
    case ECHO_IN:
        return echo_in(client, sent, size);
    case ECHO_OUT:
        return echo_out(client, sequence, size, &back, &back_length);
    case ECHO_INOUT:
        return echo_inout(client, sent, size, &back, &back_length);
    case ECHO_IN_64:
        return echo_in_64(client, sent);
    case ECHO_OUT_64:
        return echo_out_64(client, &back);
    default:
        return echo_inout_64(client, sent, &back);
    }
}

/* What comes back has the pattern; that of out_64 is always that of call 0. */
static bool result_is_right(uint32_t sequence, uint32_t size)
{
    switch (settings.procedure) {
    case ECHO_OUT:
    case ECHO_INOUT:
        return back_length == size && pattern_matches(PATTERN_OPAQUE, sequence, 0, back, size);
    case ECHO_OUT_64:
        return pattern_matches(PATTERN_OPAQUE, 0, 0, back, size);
    case ECHO_INOUT_64:
        return pattern_matches(PATTERN_OPAQUE, sequence, 0, back, size);
    default:
        return true;
    }
}

/* -> turns of polling that found nothing. */
static uint64_t run_calls(uint32_t size, size_t count)
{
    uint64_t polls = 0;

    for (uint32_t sequence = 0; sequence < count; sequence++) {
        struct call_record *record = &records[sequence];
        uint16_t status;

        *record = (struct call_record){.has_xid = true};
        pattern_fill(PATTERN_OPAQUE, sequence, 0, sent, size);
        record->start_ns = sss_now_ns();
        status = call(sequence, size);
        record->end_ns = sss_now_ns();
        /* The sequence number in the flag: 1 is that of a binding's first call. */
        record->xid = (uint32_t)(client->sequence / SHRIMP_NEXT);
        if (status != SHRIMP_OK)
            record->error = shrimp_status_text(status);
        else if (!result_is_right(sequence, size))
            record->error = "the result is not what it must be";
        record->ok = record->error == NULL;
        polls += shrimp_polls(&binding);
    }
    return polls;
}

static void run_batch(uint32_t size)
{
    char fields[FIELDS_BYTES];
    size_t count = settings.warmup + settings.calls;
    uint64_t polls = run_calls(size, count);

    snprintf(fields, sizeof(fields),
             "\"series\":%lld,\"transport\":\"shrimprpc\",\"procedure\":\"%s\",\"size\":%u,"
             "\"thread\":0,\"server\":\"%u\",\"warmup\":%zu,\"server_node\":%u,\"server_task\":%u,"
             "\"client_task\":%u,\"wait\":\"%s\",\"polls\":%llu",
             settings.series, echo_procedure_names[settings.procedure], size, settings.node,
             settings.warmup, settings.node, binding.pair.peer_task, SSS_INFO->task,
             wait_names[settings.wait], (unsigned long long)polls);
    samples_put_batch(fields, records, count);
}

int main(int argc, char **argv)
{
    struct shrimp_options options = {0};
    int error;

    read_settings(argc, argv);
    records = calloc(settings.warmup + settings.calls + 1, sizeof(*records));
    if (records == NULL)
        task_fail("out of memory");
    options.timeout_ns = settings.total_ns;
    options.notify = settings.wait == 1;
    error = shrimp_bind(&binding, settings.node, &echo_shrimp_identity, &options);
    if (error)
        options_fail("node %u: %s", settings.node, shrimp_error_text(error));
    for (size_t i = 0; i < settings.size_count; i++)
        run_batch((uint32_t)settings.sizes[i]);
    shrimp_unbind(&binding);
    return 0;
}
