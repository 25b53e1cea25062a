/* SPDX-License-Identifier: Apache-2.0 */
#include "task_table.h"

#include <stddef.h>

#include "console.h"
#include "runqueue.h"
#include "task.h"

struct task *tasks[SSS_TASKS];

uint16_t task_id(const struct task *task)
{
    return task->id;
}

const char *task_name(const struct task *task)
{
    return task->name;
}

struct task *task_by_id(uint16_t id)
{
    for (unsigned i = 0; i < SSS_TASKS; i++)
        if (tasks[i] != NULL && tasks[i]->id == id)
            return tasks[i];
    return NULL;
}

struct task *task_owned(uint16_t id)
{
    struct task *caller = task_current();
    struct task *task = id == 0 ? caller : task_by_id(id);

    return task != NULL && (task == caller || task->creator == caller->id) ? task : NULL;
}

void task_print_current(void)
{
    const struct task *task = task_current();

    if (task == NULL)
        kprintf("no task\n");
    else
        kprintf("task %s (%u)\n", task->name, task->id);
}
