/* SPDX-License-Identifier: Apache-2.0 */
/* The Sun RPC client: binds, then measures one batch of calls for each size and caller. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "apps.h"
#include "binding.h"
#include "caller.h"
#include "clock.h"
#include "samples.h"
#include "settings.h"
#include "workload.h"

struct slot {
    struct caller caller;
    unsigned tcp_retransmits; /* during the batch */
    bool flushed;
};

static struct settings settings;
static struct slot *slots; /* one a thread */

static void run_batch(size_t thread, size_t size, struct call_record *records)
{
    struct slot *slot = &slots[thread];
    struct caller *caller = &slot->caller;
    unsigned before;

    if (settings.workload.connection_per_size)
        caller_disconnect(caller);
    if (caller->handle == NULL)
        caller_connect(caller); /* if this fails, each call tries again and says why */
    before = caller_tcp_retransmits(caller);
    for (size_t call = 0; call < workload_batch_calls(&settings.workload); call++)
        caller_call(caller, (uint32_t)call, size, &records[call]);
    slot->flushed = !settings.one_way || caller_flush(caller);
    slot->tcp_retransmits = caller_tcp_retransmits(caller) - before;
}

static void write_batch(size_t thread, size_t size, const struct call_record *records)
{
    const struct slot *slot = &slots[thread];
    json_t *header = samples_object("batch");

    json_object_update_new(
        header,
        json_pack("{sI ss ss sI si ss si si si si}", "series", (json_int_t)settings.workload.series,
                  "transport", settings.transport_text, "procedure", settings.procedure_text,
                  "size", (json_int_t)size, "thread", (int)thread, "server", settings.server_text,
                  "server_port", (int)ntohs(settings.server.sin_port), "client_port",
                  (int)slot->caller.client_port, "warmup", (int)settings.workload.warmup,
                  "tcp_retransmits", (int)slot->tcp_retransmits));
    samples_put_batch(header, records, workload_batch_calls(&settings.workload),
                      caller_failure_text);
    if (!slot->flushed)
        samples_put_error("size %zu: the call after the one-way calls failed", size);
}

/* Calls that failed are results, told in their rows; only a step that cannot measure ends badly. */
int echo_client_main(int argc, char **argv)
{
    static const struct workload_calls calls = {.run = run_batch, .write = write_batch};

    if (clock_select_from_environment() != 0)
        samples_fail("SUNDIAL_CLOCK: must be tsc or monotonic");
    settings_read(&settings, argc, argv);
    if (settings.server.sin_port == 0 && !binding_find_port(&settings))
        return 1;
    slots = calloc(settings.workload.threads, sizeof(*slots));
    if (slots == NULL)
        samples_fail("out of memory");
    for (size_t thread = 0; thread < settings.workload.threads; thread++)
        caller_init(&slots[thread].caller, &settings, thread);
    workload_run(&settings.workload, &calls);
    for (size_t thread = 0; thread < settings.workload.threads; thread++)
        caller_disconnect(&slots[thread].caller);
    return 0;
}
