/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory-based signals: a task's handlers run in the second context of one of its threads. */
#include <stdint.h>

struct task;
struct thread;

/* Handlers of the current task run on this stack, in the current thread, entered through
 * `trampoline` (rdi: the handler). */
int signal_setup(uint64_t trampoline, uint64_t stack_top);
void task_signalled(struct task *task, uint64_t handler);
/* The thread continues in its handler. */
void signal_enter(struct thread *thread);
long signal_return(void); /* SSS_MB_SIGNAL_RETURN */
