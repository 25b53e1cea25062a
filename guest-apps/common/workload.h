/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Not quoted: tasks of SSS-CORE have a header of their own by this name. */
#include <options.h>

#include "samples.h"

/* What all clients are asked: which sizes, how often, by how many callers. */
struct workload {
    long long series;
    /* One batch each: payload bytes or, of functions, the numbers of functions. */
    long long *sizes;
    size_t size_count;
    bool functions;
    size_t calls;
    size_t warmup;
    size_t threads;
    bool connection_per_size;
};

/* Takes the option functions, before workload_read; where it is given there is no option sizes. */
void workload_read_functions(struct workload *workload, struct options *options);

/* Takes the options series, sizes, calls, warmup, threads and connection. */
void workload_read(struct workload *workload, struct options *options, long long least_size,
                   long long most_size);

/* Calls in one batch, warm-up included. */
size_t workload_batch_calls(const struct workload *workload);

/* How a client makes the calls of one batch, of a size or a function's number, and writes what came
 * of it. */
struct workload_calls {
    void (*run)(size_t thread, size_t size, struct call_record *records);
    void (*write)(size_t thread, size_t size, const struct call_record *records);
};

/*
 * Runs one batch for each size and caller. All callers work on the same size at the same time;
 * records are written when all have finished it, so that nothing is written while anything is
 * measured.
 */
void workload_run(const struct workload *workload, const struct workload_calls *calls);
