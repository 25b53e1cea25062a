/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task has rights over itself and the tasks that it has created. When it ends, its dummies (tasks
 * without a thread) end as well, and its other tasks become its creator's.
 */
#include "task.h"

#include <string.h>

#include "console.h"
#include "csm.h"
#include "elf.h"
#include "initrd.h"
#include "memory.h"
#include "panic.h"
#include "records.h"
#include "space.h"
#include "task_info.h"
#include "task_table.h"
#include "thread.h"
#include "trap.h"
#include "user.h"

enum {
    ENDED = 64, /* how many ends are remembered for SSS_TASK_STATUS */
    HOOKS = 4,
};

static struct {
    uint16_t id;
    int status;
    char name[SSS_NAME];
} ended[ENDED];
static unsigned next_ended;
static int (*open_id)(struct task *task);
static void (*end_hooks[HOOKS])(struct task *task);

void task_ids_from(int (*open)(struct task *task))
{
    open_id = open;
}

void task_on_end(void (*hook)(struct task *task))
{
    unsigned i = 0;

    while (i < HOOKS - 1 && end_hooks[i] != NULL)
        i++;
    if (end_hooks[i] != NULL)
        panic("more than %d functions want to know of the end of tasks", HOOKS);
    end_hooks[i] = hook;
}

/* ---- creation ---- */

static int free_place(void)
{
    for (int i = 0; i < SSS_TASKS; i++)
        if (tasks[i] == NULL)
            return i;
    return -SSS_EAGAIN;
}

/* Names are written to records without escapes. */
static bool name_valid(const char *name)
{
    size_t length = strlen(name);

    for (const char *at = name; *at != '\0'; at++)
        if (*at < '!' || *at > '~' || *at == '"' || *at == '\\')
            return false;
    return length > 0 && length < SSS_NAME;
}

static void poke(struct task *task, uint64_t address, const void *bytes, size_t length)
{
    while (length != 0) {
        size_t part = PAGE - address % PAGE;
        int why;
        void *page = task_page(task, address, true, &why);

        if (part > length)
            part = length;
        memcpy(page, bytes, part);
        address += part;
        bytes = (const char *)bytes + part;
        length -= part;
    }
}

/* Name and options at the top of the stack, argv below them. -> argv, 16-byte aligned. */
static uint64_t put_arguments(struct task *task, const char *options)
{
    size_t options_bytes = strlen(options) + 1, name_bytes = strlen(task->name) + 1;
    uint64_t at_options = SSS_STACK_TOP - options_bytes;
    uint64_t at_name = at_options - name_bytes;
    uint64_t argv[4] = {at_name, at_options, 0, 0};
    uint64_t at_argv = (at_name - sizeof(argv)) & ~15ull;

    poke(task, at_options, options, options_bytes);
    poke(task, at_name, task->name, name_bytes);
    poke(task, at_argv, argv, sizeof(argv));
    return at_argv;
}

/* A program's memory and its first thread. */
static int load(struct task *task, const char *options)
{
    size_t length;
    const void *file = initrd_find(task->name, &length);
    uint64_t entry, argv;
    struct thread *thread;
    const char *why;
    int error;

    if (file == NULL)
        return -SSS_ENOENT;
    error = elf_load(task, file, length, &entry, &why);
    if (error != 0) {
        kprintf("task %s cannot start: %s\n", task->name, why);
        return error;
    }
    if (space_map(task, SSS_STACK_TOP - SSS_STACK_BYTES, SSS_STACK_BYTES, SSS_READ | SSS_WRITE) !=
        0)
        return -SSS_ENOMEM;
    argv = put_arguments(task, options);
    thread = thread_create(task, entry, argv, 2 /* argc */);
    if (thread == NULL)
        return -SSS_EAGAIN;
    thread->own.frame.rsi = argv;
    thread_start(thread);
    return 0;
}

static void free_task(struct task *task)
{
    while (task->threads != NULL)
        thread_end(task->threads);
    csm_task_ended(task);
    if (task->pml4 != NULL)
        space_destroy(task->pml4);
    for (unsigned i = 0; i < SSS_TASKS; i++)
        if (tasks[i] == task)
            tasks[i] = NULL;
    page_free(task);
}

static struct task *new_task(const char *name, const struct task *creator, bool empty)
{
    /* What people start, starts even where tasks have taken all they can. */
    page_source new_page = creator == NULL ? page_alloc : page_alloc_user;
    struct task *task = new_page();

    _Static_assert(sizeof(*task) <= PAGE, "a task is one page");
    if (task == NULL)
        return NULL;
    task->creator = creator == NULL ? 0 : creator->id;
    task->new_page = new_page;
    task->empty = empty;
    task->state = SSS_RUNNING;
    task->heap_next = SSS_HEAP;
    strncpy(task->name, name, SSS_NAME - 1);
    for (unsigned i = 0; i < TRANSLATIONS; i++)
        task->translations[i].page[false] = task->translations[i].page[true] = TRANSLATION_NONE;
    task->pml4 = space_create(new_page);
    if (task->pml4 == NULL) {
        page_free(task);
        return NULL;
    }
    return task;
}

static void call_end_hooks(struct task *task)
{
    for (unsigned i = 0; i < HOOKS && end_hooks[i] != NULL; i++)
        end_hooks[i](task);
}

int task_create(const char *name, const char *options, unsigned flags, struct task *creator)
{
    int place = free_place();
    struct task *task;
    int result;

    if (!name_valid(name) || (flags & ~(unsigned)SSS_EMPTY) != 0)
        return -SSS_EINVAL;
    if (options == NULL)
        options = "{}";
    if (strlen(options) >= SSS_OPTIONS)
        return -SSS_EMSGSIZE;
    if (place < 0)
        return place;
    task = new_task(name, creator, (flags & SSS_EMPTY) != 0);
    if (task == NULL)
        return -SSS_ENOMEM;
    tasks[place] = task;
    result = open_id(task);
    if (result < 0) {
        free_task(task);
        return result;
    }
    task->id = (uint16_t)result;
    result = task_info_map(task);
    if (result == 0 && !task->empty)
        result = load(task, options);
    if (result != 0) {
        call_end_hooks(task);
        free_task(task);
        return result;
    }
    task->new_page = page_alloc_user;
    tasks_changed();
    return task->id;
}

/* ---- the end ---- */

static void remember_end(const struct task *task, int status)
{
    ended[next_ended].id = task->id;
    ended[next_ended].status = status;
    memcpy(ended[next_ended].name, task->name, SSS_NAME);
    next_ended = (next_ended + 1) % ENDED;
}

static void leave_children(const struct task *parent)
{
    for (unsigned i = 0; i < SSS_TASKS; i++) {
        struct task *child = tasks[i];

        if (child == NULL || child == parent || child->creator != parent->id)
            continue;
        if (child->empty)
            task_end(child, SSS_KILLED);
        else
            child->creator = parent->creator;
    }
}

void task_end(struct task *task, int status)
{
    leave_children(task);
    remember_end(task, status);
    while (task->threads != NULL)
        thread_end(task->threads);
    call_end_hooks(task);
    free_task(task);
    tasks_changed();
}

void task_fault(struct task *task, const struct trap_frame *frame, const char *what)
{
    kprintf("task %s (%u) ended: %s, rip 0x%lx rsp 0x%lx\n", task->name, task->id, what, frame->rip,
            frame->rsp);
    records_task_fault(task->name, task->id, what, frame->rip);
    task_end(task, -(int)frame->vector);
}

void tasks_forget(void)
{
    for (unsigned i = 0; i < SSS_TASKS; i++)
        if (tasks[i] != NULL)
            free_task(tasks[i]);
    memset(ended, 0, sizeof(ended));
}

/* ---- state ---- */

long task_status(uint16_t id, struct sss_task_status *status)
{
    const struct task *task = task_by_id(id);

    memset(status, 0, sizeof(*status));
    if (task != NULL) {
        status->state = task->state;
        memcpy(status->name, task->name, SSS_NAME);
        return 0;
    }
    for (unsigned i = 1; i <= ENDED; i++) { /* the latest of that id */
        unsigned at = (next_ended + ENDED - i) % ENDED;

        if (ended[at].id == id && id != 0) {
            status->state = SSS_GONE;
            status->status = ended[at].status;
            memcpy(status->name, ended[at].name, SSS_NAME);
            return 0;
        }
    }
    return -SSS_ENOENT;
}

bool task_at(unsigned index, struct task_row *row)
{
    for (unsigned i = 0; i < SSS_TASKS; i++) {
        const struct task *task = tasks[i];

        if (task == NULL || index-- != 0)
            continue;
        *row = (struct task_row){.id = task->id,
                                 .creator = task->creator,
                                 .state = task->state,
                                 .pages = task->pages,
                                 .run_ns = task->run_ns,
                                 .name = task->name};
        for (const struct thread *thread = task->threads; thread != NULL;
             thread = thread->next_of_task) {
            row->threads++;
            row->run_ns += thread->run_ns;
        }
        return true;
    }
    return false;
}
