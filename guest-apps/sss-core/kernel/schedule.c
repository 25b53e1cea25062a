/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread runs. Threads run in turn, each for one slice when others want to run; there is no
 * timer for a thread that is alone. A thread leaves the CPU only at the end of a system call or
 * interrupt, through schedule_next, with all of its registers in its context: the kernel keeps
 * nothing of it on a stack.
 *
 * Words that threads wait for are written by remote operations, which say so (task_memory_changed),
 * and by threads at user level, which cannot: so a thread that leaves the CPU looks after those who
 * share its memory.
 */
#include "cpu.h"
#include "space.h"
#include "sss/mbcf.h"
#include "task.h"

#define SLICE_NS 10000000ull
enum {
    FPU_BYTES = 512,
    FPU_CONTROL = 0x37f,
    SSE_CONTROL = 0x1f80 /* as the System V ABI starts a program */
};

bool schedule_needed;

static struct thread *current; /* NULL: the CPU halts, or the kernel is starting */
static struct thread *queue_first, **queue_end = &queue_first;
static bool halted;    /* for want of threads */
static bool turn_over; /* the current thread goes to the end of the queue */
static uint64_t turn_began_ns;
static struct timer slice;
static unsigned thread_count;
static uint16_t last_thread_id;
static struct context *fpu_owner; /* whose registers the FPU holds */
static bool fpu_open;             /* CR0.TS is clear */

struct thread *thread_current(void)
{
    return current;
}

struct task *task_current(void)
{
    return current == NULL ? NULL : current->task;
}

uint64_t *call_progress(void)
{
    return &current->context->progress;
}

/* ---- the run queue and the slice ---- */

static void slice_expired(struct timer *timer)
{
    uint64_t end = turn_began_ns + SLICE_NS;

    if (current == NULL)
        return;
    if (now_ns() < end) {
        timer_set(timer, end); /* it was set for the thread before */
        return;
    }
    turn_over = true;
    schedule_needed = true;
}

static void need_slice(void)
{
    if (!slice.armed) {
        slice.expired = slice_expired;
        timer_set(&slice, turn_began_ns + SLICE_NS);
    }
}

static void make_runnable(struct thread *thread)
{
    thread->state = THREAD_RUNNABLE;
    thread->next = NULL;
    *queue_end = thread;
    queue_end = &thread->next;
    if (current != NULL && current != thread)
        need_slice();
}

static void unlink_runnable(struct thread *thread)
{
    struct thread **place = &queue_first;

    while (*place != thread)
        place = &(*place)->next;
    *place = thread->next;
    if (queue_end == &thread->next)
        queue_end = place;
}

static struct thread *take_runnable(void)
{
    struct thread *thread = queue_first;

    queue_first = thread->next;
    if (queue_first == NULL)
        queue_end = &queue_first;
    return thread;
}

void schedule_yield(void)
{
    turn_over = true;
    schedule_needed = true;
}

/* ---- sleeping in a system call ---- */

void thread_sleep(struct wait_queue *queue)
{
    struct thread **place = &queue->first;

    while (*place != NULL)
        place = &(*place)->next;
    current->next = NULL;
    current->asleep_in = queue;
    current->state = THREAD_ASLEEP;
    *place = current;
    schedule_needed = true;
}

void thread_wake_all(struct wait_queue *queue)
{
    struct thread *thread = queue->first;

    queue->first = NULL;
    while (thread != NULL) {
        struct thread *next = thread->next;

        make_runnable(thread);
        thread = next;
    }
}

static void unlink_asleep(struct thread *thread)
{
    struct thread **place = &thread->asleep_in->first;

    while (*place != thread)
        place = &(*place)->next;
    *place = thread->next;
}

/* ---- waiting for words ---- */

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
    make_runnable(thread);
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

/* A thread of it runs next, for a signal. */
static bool handler_is_due(const struct task *task)
{
    const struct thread *thread = task->signal_thread;

    return thread != NULL && thread->signalled && thread->state == THREAD_RUNNABLE;
}

/* Where a handler is due, its thread looks after those who share the memory when it leaves the CPU:
 * the handler comes first. */
void task_memory_changed(struct task *task)
{
    look_at_task(task);
    if (task->csm != 0 && !handler_is_due(task))
        look_at_sharers(task);
}

static void wait_expired(struct timer *timer)
{
    struct context *context = timer->context;
    struct thread *thread = context->thread;

    if (thread->context != context || thread->state != THREAD_WAITING) {
        context->expired = true; /* a handler runs; thread_signal_return will see it */
        return;
    }
    end_wait(context, -SSS_ETIMEDOUT);
    make_runnable(thread);
}

/* The caller's array: in place where it lies on one page, else a copy; NULL where it is not
 * readable. */
static const struct sss_wait *find_waits(uint64_t address, unsigned count)
{
    static struct sss_wait copy[SSS_WAITS];
    size_t bytes = count * sizeof *copy;
    int why;

    if (bytes <= PAGE - address % PAGE)
        return task_page(current->task, address, false, &why);
    return user_read(copy, address, bytes) ? copy : NULL;
}

static long read_words(struct context *context, uint64_t address, unsigned count)
{
    const struct sss_wait *wait = count == 0 ? NULL : find_waits(address, count);

    context->words = 0; /* none is good until all are */
    if (wait == NULL)
        return count == 0 ? 0 : -SSS_EFAULT;
    for (struct wait_word *word = context->word; word < context->word + count; word++, wait++) {
        int why;

        word->address = (uint64_t)wait->address;
        word->seen = wait->seen;
        if (word->address % sizeof(uint32_t) != 0)
            return -SSS_EINVAL;
        word->word = task_page(current->task, word->address, false, &why);
        if (word->word == NULL)
            return -SSS_EFAULT;
    }
    context->words = count;
    return 0;
}

long thread_wait(uint64_t waits, uint64_t count, uint64_t timeout_ns)
{
    struct context *context = current->context;
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
    }
    current->state = THREAD_WAITING;
    schedule_needed = true;
    return -SSS_ETIMEDOUT; /* replaced when the wait ends */
}

/* The words of one wait, after pages of the task have gone: false where one is not there any more.
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
        bool sleeps = thread->state == THREAD_WAITING;

        if (thread->handler.waiting && !words_mapped(task, &thread->handler))
            end_wait(&thread->handler, -SSS_EFAULT);
        if (thread->own.waiting && !words_mapped(task, &thread->own))
            end_wait(&thread->own, -SSS_EFAULT);
        if (sleeps && !thread->context->waiting)
            make_runnable(thread);
    }
}

/* ---- signals: handlers run in a context of their own, so nothing is copied and nothing can be
 * forged ---- */

int thread_signal_setup(uint64_t trampoline, uint64_t stack_top)
{
    int why;

    if (trampoline < USER_BEGIN || trampoline >= USER_END || stack_top % 16 != 0 ||
        stack_top < USER_BEGIN + 16 || stack_top > USER_END)
        return -SSS_EINVAL;
    if (task_page(current->task, stack_top - 16, true, &why) == NULL)
        return -SSS_EFAULT;
    current->signal_trampoline = trampoline;
    current->signal_stack = stack_top;
    current->task->signal_thread = current;
    return 0;
}

void task_signalled(struct task *task, uint64_t handler)
{
    struct thread *thread = task->signal_thread;

    if (thread == NULL)
        return;
    thread->signalled = true;
    thread->signal_handler = handler;
    if (thread == current)
        schedule_needed = true;
    else if (thread->state == THREAD_WAITING && thread->context == &thread->own)
        make_runnable(thread); /* own.waiting stays set: the wait goes on after the handler */
}

/* As if the trampoline had been called: 16 bytes below stack_top less the return address, which is
 * never used. */
static void start_handler(struct thread *thread)
{
    struct trap_frame *frame = &thread->handler.frame;

    thread->signalled = false;
    thread->context = &thread->handler;
    frame->rip = thread->signal_trampoline;
    frame->rdi = thread->signal_handler;
    frame->rsp = thread->signal_stack - 8;
    frame->rflags = RFLAGS_START;
}

/* The interrupted wait goes on. Its words may have changed meanwhile. */
static void resume_wait(struct thread *thread)
{
    int index = changed_word(&thread->own);

    if (index >= 0)
        end_wait(&thread->own, index);
    else if (thread->own.expired)
        end_wait(&thread->own, -SSS_ETIMEDOUT);
    else
        thread->state = THREAD_WAITING;
}

long thread_signal_return(void)
{
    struct thread *thread = current;

    if (thread->context != &thread->handler)
        return -SSS_EINVAL;
    schedule_needed = true;
    if (thread->signalled) {
        start_handler(thread);
        return (long)thread->handler.frame.rax;
    }
    thread->context = &thread->own;
    if (thread->own.waiting)
        resume_wait(thread);
    return (long)thread->own.frame.rax; /* syscall_finish puts it back there */
}

/* ---- the FPU belongs to the context that used it last, until another one does ---- */

static void fpu_follow(const struct context *context)
{
    bool open = context == fpu_owner;

    if (open == fpu_open)
        return;
    fpu_open = open;
    if (open)
        __asm__ volatile("clts");
    else
        write_cr0(read_cr0() | 8); /* TS */
}

bool fpu_fault(void)
{
    struct context *context = current->context;
    /* Registers of zeros, so that nothing of another task is left in them. */
    static struct {
        uint16_t control, other[11];
        uint32_t sse_control;
        uint8_t rest[FPU_BYTES - 28];
    } __attribute__((aligned(16))) fresh = {.control = FPU_CONTROL, .sse_control = SSE_CONTROL};

    if (fpu_open)
        return false;
    __asm__ volatile("clts");
    fpu_open = true;
    if (fpu_owner != NULL)
        __asm__ volatile("fxsave (%0)" : : "r"(fpu_owner->fpu) : "memory");
    fpu_owner = NULL;
    if (context->fpu != NULL) {
        __asm__ volatile("fxrstor (%0)" : : "r"(context->fpu) : "memory");
    } else {
        context->fpu = kmalloc(FPU_BYTES);
        if (context->fpu == NULL)
            return false;
        __asm__ volatile("fxrstor (%0)" : : "r"(&fresh) : "memory");
    }
    fpu_owner = context;
    return true;
}

static void fpu_forget(struct context *context)
{
    if (fpu_owner == context)
        fpu_owner = NULL;
    kfree(context->fpu);
}

/* ---- threads ---- */

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
    struct thread *thread = thread_count < SSS_THREADS ? page_alloc() : NULL;

    _Static_assert(sizeof *thread <= PAGE, "a thread is one page");
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
    make_runnable(thread);
}

void thread_end(struct thread *thread)
{
    struct thread **place = &thread->task->threads;

    while (*place != thread)
        place = &(*place)->next_of_task;
    *place = thread->next_of_task;
    if (thread->state == THREAD_RUNNABLE)
        unlink_runnable(thread);
    else if (thread->state == THREAD_ASLEEP)
        unlink_asleep(thread);
    timer_cancel(&thread->own.timer);
    timer_cancel(&thread->handler.timer);
    fpu_forget(&thread->own);
    fpu_forget(&thread->handler);
    if (thread->task->signal_thread == thread)
        thread->task->signal_thread = NULL;
    thread->task->run_ns += thread->run_ns;
    if (current == thread) {
        current = NULL;
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
                *row = (struct thread_row){.id = thread->id,
                                           .task = thread->task->id,
                                           .state = states[thread->state],
                                           .run_ns = thread->run_ns,
                                           .instruction = thread->context->frame.rip};
                return true;
            }
    return false;
}

/* ---- changing threads ---- */

/* Halts until an interrupt has made a thread runnable. The slice's timer goes on: setting it for
 * each turn would cost more. */
static struct thread *next_runnable(void)
{
    while (queue_first == NULL) {
        node_idle();
        halted = true;
        /* sti takes effect behind hlt: no wakeup is lost */
        __asm__ volatile("sti; hlt; cli" : : : "memory");
        halted = false;
    }
    return take_runnable();
}

bool schedule_halt_over(void)
{
    if (!halted || queue_first == NULL)
        return false;
    halted = false;
    return true;
}

/* Other threads may wait for what its threads write. */
static bool shares_memory(const struct task *task)
{
    return task->csm != 0 || (task->threads != NULL && task->threads->next_of_task != NULL);
}

static void leave_cpu(void)
{
    struct thread *thread = current;

    if (thread == NULL)
        return;
    thread->run_ns += now_ns() - turn_began_ns;
    current = NULL;
    if (thread->state == THREAD_RUNNING)
        make_runnable(thread);
    if (shares_memory(thread->task)) {
        look_at_task(thread->task);
        if (thread->task->csm != 0)
            look_at_sharers(thread->task);
    }
}

static void enter_cpu(struct thread *thread)
{
    current = thread;
    thread->state = THREAD_RUNNING;
    turn_began_ns = now_ns();
    space_load(thread->task->pml4);
    if (queue_first != NULL || shares_memory(thread->task))
        need_slice();
}

/* The system call that had slept. It may sleep again: then the thread is not running any more. */
static void call_again(struct thread *thread)
{
    struct trap_frame *frame = &thread->context->frame;
    long result = syscall_table[frame->rax](&frame->rdi);

    if (current != thread || (result == TASK_AGAIN && thread->state == THREAD_ASLEEP))
        return;
    thread->context->again = false;
    frame->rax = (uint64_t)result;
}

struct trap_frame *schedule_next(void)
{
    for (;;) {
        schedule_needed = false;
        if (current == NULL || current->state != THREAD_RUNNING || turn_over) {
            leave_cpu();
            turn_over = false;
            enter_cpu(next_runnable());
        }
        if (current->context->again) {
            call_again(current);
            if (current == NULL || current->state != THREAD_RUNNING)
                continue;
        }
        if (current->signalled && current->context == &current->own)
            start_handler(current);
        fpu_follow(current->context);
        trap_frame_at(&current->context->frame);
        return &current->context->frame;
    }
}

struct trap_frame *syscall_finish(long result)
{
    struct thread *thread = current;

    if (thread != NULL) {
        if (result == TASK_AGAIN && thread->state == THREAD_ASLEEP)
            thread->context->again = true;
        else if (!thread->context->waiting)
            thread->context->frame.rax = (uint64_t)result;
    }
    return schedule_next();
}
