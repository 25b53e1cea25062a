/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads run in turn, each for one slice while others can run; a thread that is alone has no
 * timer.
 */
#include "runqueue.h"

#include "cpu.h"

#define SLICE_NS 10000000ull

struct runqueue runqueue = {.end = &runqueue.first};
bool schedule_needed;

static struct timer slice;

static void slice_expired(struct timer *timer)
{
    uint64_t end = runqueue.turn_began_ns + SLICE_NS;

    if (runqueue.current == NULL)
        return;
    if (now_ns() < end) {
        timer_set(timer, end); /* it was set for an earlier thread */
        return;
    }
    runqueue.turn_over = true;
    schedule_needed = true;
}

void runqueue_need_slice(void)
{
    if (!slice.armed) {
        slice.expired = slice_expired;
        timer_set(&slice, runqueue.turn_began_ns + SLICE_NS);
    }
}

void runqueue_add(struct thread *thread)
{
    thread->state = THREAD_RUNNABLE;
    thread->next = NULL;
    *runqueue.end = thread;
    runqueue.end = &thread->next;
    if (runqueue.current != NULL && runqueue.current != thread)
        runqueue_need_slice();
}

void runqueue_remove(struct thread *thread)
{
    struct thread **place = &runqueue.first;

    while (*place != thread)
        place = &(*place)->next;
    *place = thread->next;
    if (runqueue.end == &thread->next)
        runqueue.end = place;
}

struct thread *runqueue_take(void)
{
    struct thread *thread = runqueue.first;

    runqueue.first = thread->next;
    if (runqueue.first == NULL)
        runqueue.end = &runqueue.first;
    return thread;
}

void runqueue_yield(void)
{
    runqueue.turn_over = true;
    schedule_needed = true;
}

/* ---- nothing to do ---- */

static void (*on_idle)(void);

void runqueue_on_idle(void (*idle)(void))
{
    on_idle = idle;
}

void runqueue_idle(void)
{
    if (on_idle != NULL)
        on_idle();
    halt();
}

/* ---- sleeping in a system call ---- */

void thread_sleep(struct wait_queue *queue, call_function again)
{
    struct thread **place = &queue->first;

    while (*place != NULL)
        place = &(*place)->next;
    runqueue.current->next = NULL;
    runqueue.current->asleep_in = queue;
    runqueue.current->context->again = again;
    runqueue.current->state = THREAD_ASLEEP;
    *place = runqueue.current;
    schedule_needed = true;
}

void thread_wake_all(struct wait_queue *queue)
{
    struct thread *thread = queue->first;

    queue->first = NULL;
    while (thread != NULL) {
        struct thread *next = thread->next;

        runqueue_add(thread);
        thread = next;
    }
}

void thread_leave_sleep(struct thread *thread)
{
    struct thread **place = &thread->asleep_in->first;

    while (*place != thread)
        place = &(*place)->next;
    *place = thread->next;
}
