/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* SSS_WAIT: a thread waits until a word of memory differs from what it has read there, or a time
 * has passed. */
#include <stdint.h>

struct task;
struct thread;

/* Waits is an array of the current task. -> the index of a changed word, or a negative error; not
 * the call's result yet where the thread has begun to wait. */
long wait_begin(uint64_t waits, uint64_t count, uint64_t timeout_ns);
/* The wait that a signal's handler has interrupted continues. */
void wait_resume(struct thread *thread);

/* Memory of the task, or of one that shares CSM with it, has changed: waiting threads look again.
 */
void task_memory_changed(struct task *task);
/* The same for everything that its thread, which leaves the CPU, can have written at user level. */
void waits_look(struct task *task);
/* Pages of the task were unmapped: a wait for a word there fails. */
void waits_check_mapped(struct task *task);
