/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Sun RPC client: binds, then measures one batch of calls for each size and caller. All callers work
 * on the same size at the same time; the records are written when all have finished it.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"
#include "caller.h"
#include "clock.h"
#include "samples.h"
#include "settings.h"

struct worker {
    struct caller caller;
    struct call_record *records;
    unsigned tcp_retransmits; /* during the batch */
    bool flushed;
    pthread_t thread;
};

static struct settings settings;
static struct worker *workers;
static pthread_barrier_t batch_begins;
static pthread_barrier_t batch_ended;

static size_t batch_calls(void)
{
    return settings.warmup + settings.calls;
}

static void run_batch(struct worker *worker, size_t size)
{
    struct caller *caller = &worker->caller;
    unsigned before;

    if (settings.connection == CONNECTION_PER_SIZE)
        caller_disconnect(caller);
    if (caller->handle == NULL)
        caller_connect(caller); /* if this fails, each call tries again and says why */
    before = caller_tcp_retransmits(caller);
    for (size_t call = 0; call < batch_calls(); call++)
        caller_call(caller, (uint32_t)call, size, &worker->records[call]);
    worker->flushed = !settings.one_way || caller_flush(caller);
    worker->tcp_retransmits = caller_tcp_retransmits(caller) - before;
}

static void *run_worker(void *argument)
{
    struct worker *worker = argument;

    for (size_t i = 0; i < settings.size_count; i++) {
        pthread_barrier_wait(&batch_begins);
        run_batch(worker, (size_t)settings.sizes[i]);
        pthread_barrier_wait(&batch_ended);
    }
    return NULL;
}

static void write_batch(const struct worker *worker, size_t size)
{
    const struct caller *caller = &worker->caller;
    json_t *header = samples_object("batch");

    json_object_update_new(
        header,
        json_pack("{sI ss ss sI si ss si si si si}", "series", (json_int_t)settings.series,
                  "transport", settings.transport_text, "procedure", settings.procedure_text,
                  "size", (json_int_t)size, "thread", (int)caller->thread, "server",
                  settings.server_text, "server_port", (int)ntohs(settings.server.sin_port),
                  "client_port", (int)caller->client_port, "warmup", (int)settings.warmup,
                  "tcp_retransmits", (int)worker->tcp_retransmits));
    samples_put_batch(header, worker->records, batch_calls(), caller_failure_text);
    if (!worker->flushed)
        samples_put_error("size %zu: the call after the one-way calls failed", size);
}

static void start_workers(void)
{
    workers = calloc(settings.threads, sizeof(*workers));
    for (size_t i = 0; workers != NULL && i < settings.threads; i++) {
        caller_init(&workers[i].caller, &settings, i);
        workers[i].records = calloc(batch_calls() + 1, sizeof(*workers[i].records));
        if (workers[i].records == NULL)
            samples_fail("out of memory");
        /* Touched now, so that no page fault falls into a measured call. */
        memset(workers[i].records, 0, batch_calls() * sizeof(*workers[i].records));
    }
    if (workers == NULL)
        samples_fail("out of memory");
    if (settings.threads == 1)
        return; /* the main thread makes the calls */
    pthread_barrier_init(&batch_begins, NULL, (unsigned)settings.threads + 1);
    pthread_barrier_init(&batch_ended, NULL, (unsigned)settings.threads + 1);
    for (size_t i = 0; i < settings.threads; i++)
        if (pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]) != 0)
            samples_fail("cannot start thread %zu", i);
}

/* Calls that failed are results, told in their rows; only a step that cannot measure ends badly. */
int main(int argc, char **argv)
{
    if (clock_select_from_environment() != 0)
        samples_fail("SUNDIAL_CLOCK: must be tsc or monotonic");
    settings_read(&settings, argc, argv);
    if (settings.server.sin_port == 0 && !binding_find_port(&settings))
        return 1;
    start_workers();
    for (size_t i = 0; i < settings.size_count; i++) {
        if (settings.threads == 1) {
            run_batch(&workers[0], (size_t)settings.sizes[i]);
        } else {
            pthread_barrier_wait(&batch_begins);
            pthread_barrier_wait(&batch_ended);
        }
        for (size_t thread = 0; thread < settings.threads; thread++)
            write_batch(&workers[thread], (size_t)settings.sizes[i]);
    }
    for (size_t thread = 0; thread < settings.threads; thread++) {
        if (settings.threads > 1)
            pthread_join(workers[thread].thread, NULL);
        caller_disconnect(&workers[thread].caller);
    }
    return 0;
}
