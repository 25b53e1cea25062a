/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread leaves the CPU only at the end of a system call or interrupt, through schedule_next,
 * with all of its registers in its context: nothing of it is on a kernel stack.
 */
#include "schedule.h"

#include "fpu.h"
#include "gates.h"
#include "runqueue.h"
#include "signal.h"
#include "space.h"
#include "task.h"
#include "wait.h"

struct trap_frame *syscall_finish(long result); /* for entry.S */

/* Halts until an interrupt has made a thread runnable. The slice's timer keeps running: setting it
 * for each turn would cost more. */
static struct thread *next_runnable(void)
{
    while (runqueue.first == NULL)
        runqueue_idle();
    return runqueue_take();
}

static void leave_cpu(void)
{
    struct thread *thread = runqueue.current;

    if (thread == NULL)
        return;
    thread->run_ns += now_ns() - runqueue.turn_began_ns;
    runqueue.current = NULL;
    if (thread->state == THREAD_RUNNING)
        runqueue_add(thread);
    waits_look(thread->task);
}

static void enter_cpu(struct thread *thread)
{
    runqueue.current = thread;
    thread->state = THREAD_RUNNING;
    runqueue.turn_began_ns = now_ns();
    space_load(thread->task->pml4);
    if (runqueue.first != NULL || task_shares_memory(thread->task))
        runqueue_need_slice();
}

/* The system call that has slept. It may sleep again: then the thread is no longer running. Out of
 * line, as few calls sleep. */
static __attribute__((noinline)) void call_again(struct thread *thread)
{
    struct trap_frame *frame = &thread->context->frame;
    long result = thread->context->again(&frame->rdi);

    if (runqueue.current != thread || (result == TASK_AGAIN && thread->state == THREAD_ASLEEP))
        return;
    thread->context->again = NULL;
    frame->rax = (uint64_t)result;
}

struct trap_frame *schedule_next(void)
{
    for (;;) {
        schedule_needed = false;
        if (runqueue.current == NULL || runqueue.current->state != THREAD_RUNNING ||
            runqueue.turn_over) {
            leave_cpu();
            runqueue.turn_over = false;
            enter_cpu(next_runnable());
        }
        if (runqueue.current->context->again != NULL) {
            call_again(runqueue.current);
            if (runqueue.current == NULL || runqueue.current->state != THREAD_RUNNING)
                continue;
        }
        if (runqueue.current->signalled && runqueue.current->context == &runqueue.current->own)
            signal_enter(runqueue.current);
        fpu_follow(runqueue.current->context);
        trap_frame_at(&runqueue.current->context->frame);
        return &runqueue.current->context->frame;
    }
}

struct trap_frame *syscall_finish(long result)
{
    struct thread *thread = runqueue.current;

    if (thread != NULL) {
        bool sleeps = result == TASK_AGAIN && thread->state == THREAD_ASLEEP;

        if (!sleeps && !thread->context->waiting)
            thread->context->frame.rax = (uint64_t)result;
    }
    return schedule_next();
}
