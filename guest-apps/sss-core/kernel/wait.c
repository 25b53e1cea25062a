/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words that threads wait for are written by remote operations, which report it
 * (task_memory_changed), and by threads at user level, which cannot: so whenever a thread leaves
 * the CPU, threads that share its memory are checked.
 */
#include "wait.h"

#include "csm.h"
#include "memory.h"
#include "runqueue.h"
#include "task.h"
#include "user.h"

static void end_wait(struct context *context, long result)
{
    context->waiting = false;
    context->frame.rax = (uint64_t)result;
    if (context->timer.armed)
        timer_cancel(&context->timer);
}

/* The index of a word that has changed, or -1. */
static int changed_word(const struct context *context)
{
    for (unsigned i = 0; i < context->words; i++)
        if (*context->word[i].word != context->word[i].seen)
            return (int)i;
    return -1;
}

static void look(struct thread *thread)
{
    int index = changed_word(thread->context);

    if (index < 0)
        return;
    end_wait(thread->context, index);
    runqueue_add(thread);
}

static void look_at_task(const struct task *task)
{
    for (struct thread *thread = task->threads; thread != NULL; thread = thread->next_of_task)
        if (thread->state == THREAD_WAITING)
            look(thread);
}

static void look_at_sharers(const struct task *task)
{
    for (const struct task *other = csm_tasks(); other != NULL; other = other->next_sharing)
        if (other != task)
            look_at_task(other);
}

/* A thread of the task runs next, for a signal. */
static bool handler_is_due(const struct task *task)
{
    const struct thread *thread = task->signal_thread;

    return thread != NULL && thread->signalled && thread->state == THREAD_RUNNABLE;
}

/* A handler that is due comes first: threads that share the memory are checked when its thread
 * leaves the CPU. */
void task_memory_changed(struct task *task)
{
    look_at_task(task);
    if (task->csm && !handler_is_due(task))
        look_at_sharers(task);
}

void waits_look(struct task *task)
{
    if (!task_shares_memory(task))
        return;
    look_at_task(task);
    if (task->csm)
        look_at_sharers(task);
}

static void wait_expired(struct timer *timer)
{
    struct context *context = timer->context;
    struct thread *thread = context->thread;

    if (thread->context != context || thread->state != THREAD_WAITING) {
        context->expired = true; /* a handler runs; wait_resume looks at it */
        return;
    }
    end_wait(context, -SSS_ETIMEDOUT);
    runqueue_add(thread);
}

/* The caller's array: in place if it is on one page, otherwise a copy; NULL if it is not readable.
 */
static const struct sss_wait *find_waits(struct task *task, uint64_t address, unsigned count)
{
    static struct sss_wait copy[SSS_WAITS];
    size_t bytes = count * sizeof(*copy);
    int why;

    if (bytes <= PAGE - address % PAGE)
        return task_page(task, address, false, &why);
    return user_read(copy, address, bytes) ? copy : NULL;
}

static long read_words(struct context *context, uint64_t address, unsigned count)
{
    struct task *task = context->thread->task;
    const struct sss_wait *wait = count == 0 ? NULL : find_waits(task, address, count);

    context->words = 0; /* none is valid until all are */
    if (wait == NULL)
        return count == 0 ? 0 : -SSS_EFAULT;
    for (struct wait_word *word = context->word; word < context->word + count; word++, wait++) {
        int why;

        word->address = (uint64_t)wait->address;
        word->seen = wait->seen;
        if (word->address % sizeof(uint32_t) != 0)
            return -SSS_EINVAL;
        word->word = task_page(task, word->address, false, &why);
        if (word->word == NULL)
            return -SSS_EFAULT;
    }
    context->words = count;
    return 0;
}

/*
 * The thread keeps the CPU, which halts in its system call, as long as no other thread can run:
 * what comes next is mostly what it waits for, and then nothing is in its way back. Its timer is
 * left to expire for nothing. Otherwise it waits without the CPU, and the result is replaced when
 * that ends.
 */
static long wait_in_place(struct thread *thread, struct context *context)
{
    int index = -1;

    waits_look(thread->task);
    thread->run_ns += now_ns() - runqueue.turn_began_ns;
    while (runqueue.first == NULL && !schedule_needed) {
        runqueue_idle();
        if (runqueue.current != thread)
            return -SSS_ETIMEDOUT; /* it has been ended */
        index = changed_word(context);
        if (index >= 0 || context->expired)
            break;
    }
    runqueue.turn_began_ns = now_ns();
    if (index >= 0 || context->expired) {
        context->waiting = false;
        if (task_shares_memory(thread->task))
            runqueue_need_slice();
        return index >= 0 ? index : -SSS_ETIMEDOUT;
    }
    schedule_needed = true;
    /* A handler that is due runs first; waiting goes on when it returns. */
    if (!thread->signalled || context != &thread->own)
        thread->state = THREAD_WAITING;
    return -SSS_ETIMEDOUT;
}

long wait_begin(uint64_t waits, uint64_t count, uint64_t timeout_ns)
{
    struct context *context = runqueue.current->context;
    long error = count > SSS_WAITS ? -SSS_EINVAL : read_words(context, waits, (unsigned)count);
    int index;

    if (error != 0)
        return error;
    index = changed_word(context);
    if (index >= 0)
        return index;
    if (timeout_ns == 0)
        return -SSS_ETIMEDOUT;
    context->expired = false;
    context->waiting = true;
    if (timeout_ns != UINT64_MAX) {
        uint64_t now = now_ns();

        context->timer.expired = wait_expired;
        context->timer.context = context;
        timer_set(&context->timer, timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX);
    } else if (context->timer.armed) {
        timer_cancel(&context->timer); /* wait_in_place has left it */
    }
    return wait_in_place(runqueue.current, context);
}

/* The words of one wait, after pages of the task were unmapped: false if one is no longer mapped.
 */
static bool words_mapped(struct task *task, struct context *context)
{
    int why;

    for (unsigned i = 0; i < context->words; i++) {
        context->word[i].word = task_page(task, context->word[i].address, false, &why);
        if (context->word[i].word == NULL)
            return false;
    }
    return true;
}

void waits_check_mapped(struct task *task)
{
    for (struct thread *thread = task->threads; thread != NULL; thread = thread->next_of_task) {
        bool waits = thread->state == THREAD_WAITING;

        if (thread->handler.waiting && !words_mapped(task, &thread->handler))
            end_wait(&thread->handler, -SSS_EFAULT);
        if (thread->own.waiting && !words_mapped(task, &thread->own))
            end_wait(&thread->own, -SSS_EFAULT);
        if (waits && !thread->context->waiting)
            runqueue_add(thread);
    }
}

/* Its words may have changed meanwhile. */
void wait_resume(struct thread *thread)
{
    int index = changed_word(&thread->own);

    if (index >= 0)
        end_wait(&thread->own, index);
    else if (thread->own.expired)
        end_wait(&thread->own, -SSS_ETIMEDOUT);
    else
        thread->state = THREAD_WAITING;
}
