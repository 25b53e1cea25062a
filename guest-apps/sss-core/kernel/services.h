/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The machine's part in a run: its job, its identity, init, and the end. */
#include <stdint.h>

struct task;

/* Receives the job, takes its identity and starts init; without a job, only the monitor. `version`
 * is the kernel's. */
void system_start(const char *version);
void system_task_ended(struct task *task);
void system_done(int status); /* SSS_DONE: the control frame, after all records */
/* SSS_RESTART: everything but the adapters starts again; init continues with step `next`. */
void system_restart(uint64_t next);
