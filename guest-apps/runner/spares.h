/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Spares are processes of the program of all applications that were started while the machine
 * waited for its job, and wait for the application that they become. A process that is started
 * after the job has come costs 7,000 translated blocks of the kernel's before it reaches its main
 * function, since QEMU keeps no translations in a snapshot.
 */

/* Starts as many as are kept; only while the machine waits for its job. */
void spares_start(void);

/*
 * Makes a spare the application `app` with `options` as argv[1] and our environment. `*output` is
 * the reading end of its standard output, and the caller's; where it is NULL its standard output is
 * ours. Returns its process, or -1 where there is no spare, or something else is to be started by
 * that name.
 */
pid_t spares_become(const char *path, const char *app, const char *options, int *output);

/* Whether what stands at `path` is the program of all applications. */
bool spares_can_become(const char *path);

/*
 * The order to a process that becomes `app`: its name, `options` and our environment, each with its
 * NUL. NULL where that is too long; the next call writes over it.
 */
const char *spares_order(const char *app, const char *options, size_t *length);

/* Ends those that are left: people shall see no processes that do nothing. */
void spares_end(void);
