/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * The zygote is an interpreter of Python that has imported all programs of the image while the
 * machine waited for its job, and forks a process where one is to start
 * (guest-apps/python/sundial_guest/zygote.py). Images without Python have none.
 *
 * The channel to it keeps messages apart (SOCK_SEQPACKET). The zygote's first says that it is
 * ready. Then each of ours is what spares_order makes, with the descriptor of a standard output
 * where the process gets one of its own; each answer is the number of a process, which is our
 * child.
 */

/* Starts it and waits until it is ready; only while the machine waits for its job. */
void zygote_start(void);

/* Whether what stands at `path` is a program of Python. */
bool zygote_can_become(const char *path);

/*
 * As spares_become, of the program of Python at `path`: -1 also where there is no zygote, for
 * others than that.
 */
pid_t zygote_fork(const char *path, const char *options, int *output);

/* Ends it: people shall see no process that does nothing. */
void zygote_end(void);
