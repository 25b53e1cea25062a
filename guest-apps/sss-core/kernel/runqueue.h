/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The thread that has the CPU, those that can run, and those that sleep in a system call. */
#include "thread.h"

extern struct runqueue {
    struct thread *current; /* NULL: the CPU halts, or the kernel is booting */
    struct thread *first, **end;
    uint64_t turn_began_ns;
    bool turn_over; /* the current thread goes to the end of the queue */
} runqueue;
/* A system call must not return directly to its thread; entry.S reads it. */
extern bool schedule_needed;

static inline struct thread *thread_current(void)
{
    return runqueue.current;
}

static inline struct task *task_current(void)
{
    return runqueue.current == NULL ? NULL : runqueue.current->task;
}

/* Of the current thread's system call: 0 when it begins, kept while it sleeps. */
static inline uint64_t *call_progress(void)
{
    return &runqueue.current->context->progress;
}

void runqueue_add(struct thread *thread);
void runqueue_remove(struct thread *thread);
struct thread *runqueue_take(void); /* the first; there must be one */
/* The current thread's time slice is limited from now on. */
void runqueue_need_slice(void);
void runqueue_yield(void);
/* Halts until an interrupt has been handled; `idle` is called before. */
void runqueue_idle(void);
void runqueue_on_idle(void (*idle)(void));

struct wait_queue {
    struct thread *first;
};
/* The system call that calls this returns TASK_AGAIN. After thread_wake_all(queue), `again` is
 * called with the same arguments, and its result is the call's; it may sleep again. */
enum { TASK_AGAIN = -4096 };
void thread_sleep(struct wait_queue *queue, call_function again);
void thread_wake_all(struct wait_queue *queue);
/* Of a thread that sleeps: out of its queue, without waking it. */
void thread_leave_sleep(struct thread *thread);
