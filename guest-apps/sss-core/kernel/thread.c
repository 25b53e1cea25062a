/* SPDX-License-Identifier: Apache-2.0 */
#include "thread.h"

#include "fpu.h"
#include "memory.h"
#include "runqueue.h"
#include "task.h"
#include "task_table.h"

static unsigned thread_count;
static uint16_t last_thread_id;

static void init_context(struct context *context, struct thread *thread)
{
    context->thread = thread;
    context->frame.cs = USER_CODE;
    context->frame.ss = USER_DATA;
    context->frame.rflags = RFLAGS_START;
}

static bool thread_id_used(uint16_t id)
{
    for (unsigned i = 0; i < SSS_TASKS; i++)
        for (const struct thread *thread = tasks[i] == NULL ? NULL : tasks[i]->threads;
             thread != NULL; thread = thread->next_of_task)
            if (thread->id == id)
                return true;
    return false;
}

struct thread *thread_create(struct task *task, uint64_t entry, uint64_t stack_top,
                             uint64_t argument)
{
    struct thread *thread = thread_count < SSS_THREADS ? task->new_page() : NULL;

    _Static_assert(sizeof(*thread) <= PAGE, "a thread is one page");
    if (thread == NULL)
        return NULL;
    thread_count++;
    do
        last_thread_id++;
    while (last_thread_id == 0 || thread_id_used(last_thread_id));
    thread->id = last_thread_id;
    init_context(&thread->own, thread);
    init_context(&thread->handler, thread);
    thread->context = &thread->own;
    thread->own.frame.rip = entry;
    thread->own.frame.rsp = stack_top;
    thread->own.frame.rdi = argument;
    thread->task = task;
    thread->next_of_task = task->threads;
    task->threads = thread;
    return thread;
}

void thread_start(struct thread *thread)
{
    runqueue_add(thread);
}

void thread_end(struct thread *thread)
{
    struct thread **place = &thread->task->threads;

    while (*place != thread)
        place = &(*place)->next_of_task;
    *place = thread->next_of_task;
    if (thread->state == THREAD_RUNNABLE)
        runqueue_remove(thread);
    else if (thread->state == THREAD_ASLEEP)
        thread_leave_sleep(thread);
    timer_cancel(&thread->own.timer);
    timer_cancel(&thread->handler.timer);
    fpu_forget(&thread->own);
    fpu_forget(&thread->handler);
    if (thread->task->signal_thread == thread)
        thread->task->signal_thread = NULL;
    thread->task->run_ns += thread->run_ns;
    if (runqueue.current == thread) {
        runqueue.current = NULL;
        schedule_needed = true;
    }
    thread_count--;
    page_free(thread);
}

bool thread_at(unsigned index, struct thread_row *row)
{
    static const char *const states[] = {"running", "runnable", "waiting", "asleep"};

    for (unsigned i = 0; i < SSS_TASKS; i++)
        for (const struct thread *thread = tasks[i] == NULL ? NULL : tasks[i]->threads;
             thread != NULL; thread = thread->next_of_task)
            if (index-- == 0) {
                *row = (struct thread_row){
                    .id = thread->id,
                    .task = thread->task->id,
                    .state = states[thread->context->waiting ? THREAD_WAITING : thread->state],
                    .run_ns = thread->run_ns,
                    .instruction = thread->context->frame.rip};
                return true;
            }
    return false;
}
