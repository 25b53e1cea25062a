/* SPDX-License-Identifier: Apache-2.0 */
#include "workload.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "functions.h"

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

static long long *make_sizes(size_t count)
{
    long long *sizes = malloc(count * sizeof(*sizes));

    if (sizes == NULL)
        samples_fail("out of memory");
    return sizes;
}

void workload_read_functions(struct workload *workload, struct options *options)
{
    size_t count;
    int *places = options_word_list(options, "functions", function_names, &count);

    workload->functions = count > 0;
    if (count > 0) {
        workload->sizes = make_sizes(count);
        workload->size_count = count;
    }
    for (size_t i = 0; i < count; i++)
        workload->sizes[i] = places[i] + 1;
    free(places);
}

static void read_sizes(struct workload *workload, struct options *options, long long least,
                       long long most)
{
    workload->sizes = options_integers(options, "sizes", least, most, &workload->size_count);
    if (workload->size_count > 0)
        return;
    free(workload->sizes);
    workload->sizes = make_sizes(1);
    workload->sizes[0] = least;
    workload->size_count = 1;
}

void workload_read(struct workload *workload, struct options *options, long long least_size,
                   long long most_size)
{
    static const char *const connections[] = {"one", "per-size", NULL};

    workload->series = options_integer(options, "series", 0, 0, SERIES_LIMIT);
    if (!workload->functions)
        read_sizes(workload, options, least_size, most_size);
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
