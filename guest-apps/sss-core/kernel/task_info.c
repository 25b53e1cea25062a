/* SPDX-License-Identifier: Apache-2.0 */
#include "task_info.h"

#include <string.h>

#include "memory.h"
#include "space.h"
#include "task.h"
#include "task_table.h"
#include "wait.h"

static struct sss_info identity = {.version = 1, .clock = SSS_CLOCK_TSC};
static uint32_t changes;

void tasks_changed(void)
{
    changes++;
    for (unsigned i = 0; i < SSS_TASKS; i++)
        if (tasks[i] != NULL && tasks[i]->info != NULL) {
            tasks[i]->info->tasks = changes;
            task_memory_changed(tasks[i]);
        }
}

void task_operation_failed(struct task *task)
{
    task->info->errors++;
    task_memory_changed(task);
}

static void copy_identity(struct sss_info *info)
{
    info->version = identity.version;
    info->clock = identity.clock;
    info->node = identity.node;
    info->address = identity.address;
    memcpy(info->machine, identity.machine, sizeof(info->machine));
}

void task_identity(uint16_t node, uint32_t address, const char *machine)
{
    identity.node = node;
    identity.address = address;
    strncpy(identity.machine, machine, sizeof(identity.machine) - 1);
    for (unsigned i = 0; i < SSS_TASKS; i++)
        if (tasks[i] != NULL)
            copy_identity(tasks[i]->info);
}

void task_clock(uint32_t clock)
{
    identity.clock = clock;
    for (unsigned i = 0; i < SSS_TASKS; i++)
        if (tasks[i] != NULL)
            copy_identity(tasks[i]->info);
}

int task_info_map(struct task *task)
{
    struct sss_info *info = task->new_page();
    int error = info == NULL ? -SSS_ENOMEM
                             : space_map_page(task, (uint64_t)SSS_INFO, info, SSS_READ);

    if (error != 0) {
        if (info != NULL)
            page_free(info);
        return error;
    }
    copy_identity(info);
    info->task = task->id;
    info->tasks = changes;
    task->info = info;
    return 0;
}
