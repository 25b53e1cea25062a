/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers have a context of their own: nothing is copied on entry, and no handler can forge what
 * is restored. */
#include "signal.h"

#include "runqueue.h"
#include "space.h"
#include "task.h"
#include "user.h"
#include "wait.h"

int signal_setup(uint64_t trampoline, uint64_t stack_top)
{
    int why;

    if (trampoline < USER_BEGIN || trampoline >= USER_END || stack_top % 16 != 0 ||
        stack_top < USER_BEGIN + 16 || stack_top > USER_END)
        return -SSS_EINVAL;
    if (task_page(runqueue.current->task, stack_top - 16, true, &why) == NULL)
        return -SSS_EFAULT;
    runqueue.current->signal_trampoline = trampoline;
    runqueue.current->signal_stack = stack_top;
    runqueue.current->task->signal_thread = runqueue.current;
    return 0;
}

void task_signalled(struct task *task, uint64_t handler)
{
    struct thread *thread = task->signal_thread;

    if (thread == NULL)
        return;
    thread->signalled = true;
    thread->signal_handler = handler;
    if (thread == runqueue.current)
        schedule_needed = true;
    else if (thread->state == THREAD_WAITING && thread->context == &thread->own)
        runqueue_add(thread); /* own.waiting stays set: the wait continues after the handler */
}

/* As if the trampoline had been called: room for a return address, which is never used. */
void signal_enter(struct thread *thread)
{
    struct trap_frame *frame = &thread->handler.frame;

    thread->signalled = false;
    thread->context = &thread->handler;
    frame->rip = thread->signal_trampoline;
    frame->rdi = thread->signal_handler;
    frame->rsp = thread->signal_stack - 8;
    frame->rflags = RFLAGS_START;
}

long signal_return(void)
{
    struct thread *thread = runqueue.current;

    if (thread->context != &thread->handler)
        return -SSS_EINVAL;
    schedule_needed = true;
    if (thread->signalled) {
        signal_enter(thread);
        return (long)thread->handler.frame.rax;
    }
    thread->context = &thread->own;
    if (thread->own.waiting)
        wait_resume(thread);
    return (long)thread->own.frame.rax; /* syscall_finish puts it back there */
}
