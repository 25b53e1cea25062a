/* SPDX-License-Identifier: Apache-2.0 */
#include "workload.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_LIMIT = 1000000, THREADS_LIMIT = 64, SERIES_LIMIT = 0x7fffffff };

struct worker {
    const struct workload *workload;
    const struct workload_calls *calls;
    size_t thread;
    struct call_record *records;
    pthread_t handle;
};

static pthread_barrier_t batch_begins;
static pthread_barrier_t batch_ended;

void workload_read(struct workload *workload, struct options *options, long long least_size,
                   long long most_size)
{
    static const char *const connections[] = {"one", "per-size", NULL};

    workload->series = options_integer(options, "series", 0, 0, SERIES_LIMIT);
    workload->sizes = options_integers(options, "sizes", least_size, most_size,
                                       &workload->size_count);
    if (workload->size_count == 0) {
        free(workload->sizes);
        workload->sizes = malloc(sizeof(*workload->sizes));
        if (workload->sizes == NULL)
            samples_fail("out of memory");
        workload->sizes[0] = least_size;
        workload->size_count = 1;
    }
    workload->calls = (size_t)options_integer(options, "calls", 1, 0, CALLS_LIMIT);
    workload->warmup = (size_t)options_integer(options, "warmup", 0, 0, CALLS_LIMIT);
    workload->threads = (size_t)options_integer(options, "threads", 1, 1, THREADS_LIMIT);
    workload->connection_per_size = options_word(options, "connection", connections) == 1;
}

size_t workload_batch_calls(const struct workload *workload)
{
    return workload->warmup + workload->calls;
}

static void run_batch(const struct worker *worker, size_t index)
{
    worker->calls->run(worker->thread, (size_t)worker->workload->sizes[index], worker->records);
}

static void *run_worker(void *argument)
{
    const struct worker *worker = argument;

    for (size_t i = 0; i < worker->workload->size_count; i++) {
        pthread_barrier_wait(&batch_begins);
        run_batch(worker, i);
        pthread_barrier_wait(&batch_ended);
    }
    return NULL;
}

static struct worker *make_workers(const struct workload *workload,
                                   const struct workload_calls *calls)
{
    size_t records = workload_batch_calls(workload);
    struct worker *workers = calloc(workload->threads, sizeof(*workers));

    for (size_t i = 0; workers != NULL && i < workload->threads; i++) {
        workers[i] = (struct worker){.workload = workload, .calls = calls, .thread = i};
        workers[i].records = malloc((records + 1) * sizeof(*workers[i].records));
        if (workers[i].records == NULL)
            samples_fail("out of memory");
        /* Touched now, so that no page fault falls into a measured call. */
        memset(workers[i].records, 0, records * sizeof(*workers[i].records));
    }
    if (workers == NULL)
        samples_fail("out of memory");
    return workers;
}

static void start_threads(struct worker *workers, size_t count)
{
    pthread_barrier_init(&batch_begins, NULL, (unsigned)count + 1);
    pthread_barrier_init(&batch_ended, NULL, (unsigned)count + 1);
    for (size_t i = 0; i < count; i++)
        if (pthread_create(&workers[i].handle, NULL, run_worker, &workers[i]) != 0)
            samples_fail("cannot start thread %zu", i);
}

void workload_run(const struct workload *workload, const struct workload_calls *calls)
{
    struct worker *workers = make_workers(workload, calls);
    bool alone = workload->threads == 1; /* then the main thread makes the calls */

    if (!alone)
        start_threads(workers, workload->threads);
    for (size_t i = 0; i < workload->size_count; i++) {
        if (alone) {
            run_batch(&workers[0], i);
        } else {
            pthread_barrier_wait(&batch_begins);
            pthread_barrier_wait(&batch_ended);
        }
        for (size_t thread = 0; thread < workload->threads; thread++)
            calls->write(thread, (size_t)workload->sizes[i], workers[thread].records);
    }
    for (size_t thread = 0; thread < workload->threads; thread++) {
        if (!alone)
            pthread_join(workers[thread].handle, NULL);
        free(workers[thread].records);
    }
    free(workers);
}
