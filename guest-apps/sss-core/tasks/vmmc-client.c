/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures automatic and deliberate updates against vmmc-server. Round trip: from the first store
 * until the server's answer of the same size is there, whole. Stream: transfers as fast as there is
 * room for them, until the server has said that it has the last one; all of them are one sample.
 * Both check each byte, outside of what is measured where it is a round trip.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client_limits.h"
#include "options.h"
#include "samples.h"
#include "sss/system.h"
#include "vmmc_target.h"

enum {
    BINDING_MS = 30000,
    FIELDS_BYTES = 512,
};

static const char *const mode_names[] = {"round_trip", "stream", NULL};

static struct {
    uint16_t node;
    bool stream;
    long long series;
    long long sizes[SIZES_MOST];
    size_t size_count;
    size_t calls, warmup;
    size_t transfers; /* of each call; more than 1 in a stream */
    uint64_t total_ns;
} settings;

static struct vmmc_target target;
static struct call_record *records;
static const char *const late = "nothing came in time", *const wrong = "what came is not right";

static void read_settings(int argc, char **argv)
{
    options_open(argc, argv, "vmmc-client");
    settings.node = (uint16_t)options_integer("server", 0, 1, SSS_NODES);
    if (settings.node == 0)
        options_fail("option server: must be given, as a node id");
    target.operation = (enum vmmc_operation)options_word("transport", vmmc_operation_names);
    settings.stream = options_word("procedure", mode_names) == 1;
    settings.series = options_integer("series", 0, 0, NUMBER_LIMIT);
    settings.size_count = options_integers("sizes", VMMC_TARGET_WORD, VMMC_TARGET_MOST,
                                           settings.sizes, SIZES_MOST);
    if (settings.size_count == 0) {
        settings.sizes[0] = VMMC_TARGET_WORD;
        settings.size_count = 1;
    }
    for (size_t i = 0; i < settings.size_count; i++)
        if (settings.sizes[i] % VMMC_TARGET_WORD != 0)
            options_fail("option sizes: %lld is no multiple of %d", settings.sizes[i],
                         VMMC_TARGET_WORD);
    settings.calls = (size_t)options_integer("calls", 1, 0, CALLS_LIMIT);
    settings.warmup = (size_t)options_integer("warmup", 0, 0, CALLS_LIMIT);
    settings.transfers = (size_t)options_integer("transfers", 1, 1, CALLS_LIMIT);
    if (settings.transfers > 1 && !settings.stream)
        options_fail("option transfers: a round trip is one");
    settings.total_ns = (uint64_t)options_integer("total_timeout_ms", TOTAL_DEFAULT_MS, 1,
                                                  TIMEOUT_LIMIT_MS) *
                        NS_PER_MS;
    options_check_all_taken();
}

static void connect_server(void)
{
    struct vmmc_pair_setup setup = vmmc_target_setup(target.operation);
    int error;

    setup.timeout_ns = BINDING_MS * NS_PER_MS;
    error = vmmc_pair_connect(&target.pair, settings.node, &setup);
    if (error < 0)
        options_fail("node %u: %s", settings.node, vmmc_error_text(error));
    error = vmmc_target_prepare(&target);
    if (error < 0)
        task_fail("messages: %s", vmmc_error_text(error));
}

/* ---- what is measured ---- */

static const char *round_trip(uint32_t number, struct call_record *record)
{
    bool came;

    vmmc_target_fill(&target, number);
    record->start_ns = sss_now_ns();
    vmmc_target_send(&target, number);
    came = vmmc_target_await(&target, number, record->start_ns + settings.total_ns);
    record->end_ns = sss_now_ns();
    if (!came)
        return late;
    return vmmc_target_is_right(&target, number) ? NULL : wrong;
}

static const char *stream(uint32_t first, struct call_record *record)
{
    uint32_t slots = vmmc_target_slots(target.batch.size), end = first + settings.transfers;
    uint64_t deadline_ns;

    record->start_ns = record->end_ns = sss_now_ns();
    deadline_ns = record->start_ns + settings.total_ns;
    for (uint32_t number = first; number < end; number++) {
        if (number >= slots &&
            !vmmc_target_await_word(&target, VMMC_TARGET_TAKEN, number - slots + 1, deadline_ns))
            return late;
        vmmc_target_fill(&target, number);
        vmmc_target_send(&target, number);
    }
    if (!vmmc_target_await_word(&target, VMMC_TARGET_TAKEN, end, deadline_ns))
        return late;
    record->end_ns = sss_now_ns();
    return NULL;
}

static void run_calls(size_t count)
{
    const char *error = NULL;

    for (size_t i = 0; i < count; i++) {
        struct call_record *record = &records[i];

        *record = (struct call_record){0};
        if (error != NULL)
            record->start_ns = record->end_ns = sss_now_ns();
        else if (settings.stream)
            error = stream((uint32_t)(i * settings.transfers), record);
        else
            error = round_trip((uint32_t)i, record);
        record->error = error;
        record->ok = error == NULL;
    }
    if (error != NULL)
        task_error("size %u: %s", target.batch.size, error);
}

/* ---- batches ---- */

static void begin_batch(uint32_t size, size_t count)
{
    uint64_t word;

    target.batch = (struct vmmc_batch){.number = target.batch.number + 1,
                                       .stream = settings.stream,
                                       .transfers = (uint32_t)(count * settings.transfers),
                                       .size = size};
    word = vmmc_batch_word(&target.batch);
    *vmmc_target_word(target.pair.out, VMMC_TARGET_BATCH) = word;
    if (!vmmc_target_await_word(&target, VMMC_TARGET_BATCH, word, sss_now_ns() + settings.total_ns))
        task_fail("node %u: the server does not answer", settings.node);
    target.polls = 0;
}

/* Which task has an export is not said to who imports it. */
static void put_batch(uint32_t size, size_t count)
{
    char fields[FIELDS_BYTES];

    snprintf(fields, sizeof(fields),
             "\"series\":%lld,\"transport\":\"%s\",\"procedure\":\"%s\",\"size\":%u,\"thread\":0,"
             "\"server\":\"%u\",\"warmup\":%zu,\"server_node\":%u,\"server_task\":0,"
             "\"client_task\":%u,\"transfers\":%zu,\"wait\":\"poll\",\"polls\":%llu",
             settings.series, vmmc_operation_names[target.operation], mode_names[settings.stream],
             size, settings.node, settings.warmup, settings.node, SSS_INFO->task,
             settings.transfers, (unsigned long long)target.polls);
    samples_put_batch(fields, records, count);
}

int main(int argc, char **argv)
{
    size_t count;

    read_settings(argc, argv);
    count = settings.warmup + settings.calls;
    records = calloc(count + 1, sizeof(*records));
    if (records == NULL)
        task_fail("out of memory");
    connect_server();
    for (size_t i = 0; i < settings.size_count; i++) {
        uint32_t size = (uint32_t)settings.sizes[i];

        begin_batch(size, count);
        run_calls(count);
        put_batch(size, count);
        vmmc_target_end(&target);
    }
    vmmc_target_close(&target);
    return 0;
}
