/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image.h"

/*
 * The processes of a job. Services run beside the steps and must not end; steps run one at a time
 * and must. One loop waits for whatever happens next, so that a service that dies is reported at
 * once, also in the middle of a step.
 */

/* In a child: back to ordinary signals. */
void process_become_ordinary(void);

/*
 * Must be called once, before any process is started; `on_death` is called for each service that
 * dies.
 */
int process_init(void (*on_death)(void));

/* Starts a service and waits until it prints "ready"; its failure is reported, then -1. */
int process_start_service(const struct job_task *task);

/*
 * While the machine waits for its job: starts a service that jobs may ask for without options, and
 * waits until it is ready. It becomes the job's when that starts it.
 */
void process_prepare_service(const char *app);

/* Ends those prepared services that the job does not start. */
void process_end_unwanted(const struct job *job);

/*
 * Runs step `index` to its end, reports it, and returns its exit status (128 + signal if killed).
 */
int process_run_step(const struct job_task *task, size_t index);

/* How many services have died so far. */
unsigned process_dead_services(void);

/* Keeps reaping and reporting. Never returns. */
_Noreturn void process_supervise_for_ever(void);

/* Runs a shell command to its end; its exit status. */
int process_run_shell(const char *command);

/* Forks a helper that is not part of the job; its end is not reported. */
int process_fork_helper(void (*body)(void));
