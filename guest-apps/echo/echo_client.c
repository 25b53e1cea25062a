/* SPDX-License-Identifier: Apache-2.0 */
/* The Sun RPC client: binds, then measures one batch of calls for each size and caller. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>

#include "apps.h"
#include "binding.h"
#include "clock.h"
#include "port.h"
#include "samples.h"
#include "settings.h"
#include "workload.h"

static struct settings settings;
static struct caller *callers; /* one a thread */

static void run_batch(size_t thread, size_t size, struct call_record *records)
{
    struct caller *caller = &callers[thread];

    if (settings.workload.connection_per_size)
        tirpc_port.disconnect(caller);
    if (settings.workload.functions)
        caller->function = (enum function)size;
    caller_batch(caller, size, records, workload_batch_calls(&settings.workload), caller_calls);
}

static void write_batch(size_t thread, size_t size, const struct call_record *records)
{
    const struct caller *caller = &callers[thread];
    bool function = caller->function != 0;
    const char *procedure = function ? function_names[caller->function - 1]
                                     : settings.procedure_text;
    size_t bytes = function ? function_size(caller->function) : size;
    json_t *header = samples_object("batch");

    json_object_update_new(
        header,
        json_pack("{sI ss ss sI si ss si si si si}", "series", (json_int_t)settings.workload.series,
                  "transport", settings.transport_text, "procedure", procedure, "size",
                  (json_int_t)bytes, "thread", (int)thread, "server", settings.server_text,
                  "server_port", (int)ntohs(settings.server.sin_port), "client_port",
                  (int)caller->client_port, "warmup", (int)settings.workload.warmup,
                  "tcp_retransmits", (int)caller->tcp_retransmits));
    if (function)
        json_object_set_new(header, "function", json_integer(caller->function));
    samples_put_batch(header, records, workload_batch_calls(&settings.workload), port_failure_text);
}

/* Calls that failed are results, in rows of their own; only a step that cannot measure fails. */
int echo_client_main(int argc, char **argv)
{
    static const struct workload_calls calls = {.run = run_batch, .write = write_batch};

    if (clock_select_from_environment() != 0)
        samples_fail("SUNDIAL_CLOCK: must be tsc or monotonic");
    /* A call over a connection that has timed out fails in write(). */
    signal(SIGPIPE, SIG_IGN);
    settings_read(&settings, argc, argv);
    if (settings.server.sin_port == 0)
        binding_find_port(&settings); /* without a port each call fails */
    callers = calloc(settings.workload.threads, sizeof(*callers));
    if (callers == NULL)
        samples_fail("out of memory");
    for (size_t thread = 0; thread < settings.workload.threads; thread++)
        port_init(&callers[thread], &settings, thread);
    workload_run(&settings.workload, &calls);
    for (size_t thread = 0; thread < settings.workload.threads; thread++)
        tirpc_port.disconnect(&callers[thread]);
    return 0;
}
