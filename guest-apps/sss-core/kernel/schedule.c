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

static bool halted; /* because no thread can run */
static void (*on_idle)(void);

struct trap_frame *syscall_finish(long result); /* for entry.S */

void schedule_on_idle(void (*idle)(void))
{
    on_idle = idle;
}

/* Halts until an interrupt has made a thread runnable. The slice's timer keeps running: setting it
 * for each turn would cost more. */
static struct thread *next_runnable(void)
{
    while (runqueue.first == NULL) {
        if (on_idle != NULL)
            on_idle();
        halted = true;
        /* STI enables interrupts only after HLT, so no wakeup is lost. */
        __asm__ volatile("sti; hlt; cli" : : : "memory");
        halted = false;
    }
    return runqueue_take();
}

bool schedule_halt_over(void)
{
    if (!halted || runqueue.first == NULL)
        return false;
    halted = false;
    return true;
}

/* Other threads may wait for what its threads write. */
static bool shares_memory(const struct task *task)
{
    return task->csm || (task->threads != NULL && task->threads->next_of_task != NULL);
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
    if (shares_memory(thread->task))
        waits_look(thread->task);
}

static void enter_cpu(struct thread *thread)
{
    runqueue.current = thread;
    thread->state = THREAD_RUNNING;
    runqueue.turn_began_ns = now_ns();
    space_load(thread->task->pml4);
    if (runqueue.first != NULL || shares_memory(thread->task))
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
