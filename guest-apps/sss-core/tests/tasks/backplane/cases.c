/* SPDX-License-Identifier: Apache-2.0 */
#include "cases.h"

#include <stdio.h>
#include <string.h>

uint64_t peer, address;
const char *case_name;
volatile uint32_t notified, imported, gone;

struct vmmc_export_setup export_setup(const char *name, volatile void *memory, uint32_t pages)
{
    struct vmmc_export_setup setup = {.address = (void *)memory,
                                      .pages = pages,
                                      .key = KEY,
                                      .allow = UINT64_MAX,
                                      .notified = &notified,
                                      .imported = &imported};

    strncpy(setup.name, name, VMMC_NAME - 1);
    return setup;
}

int export(const char *name, volatile void *memory, uint32_t pages, uint32_t flags)
{
    struct vmmc_export_setup setup = export_setup(name, memory, pages);

    setup.flags = flags;
    return vmmc_export(&setup);
}

struct vmmc_import_setup import_setup(const char *name)
{
    struct vmmc_import_setup setup = {
        .node = (uint16_t)peer, .key = KEY, .timeout_ns = TIMEOUT_NS, .gone = &gone};

    strncpy(setup.name, name, VMMC_NAME - 1);
    return setup;
}

int import(const char *name, volatile uint64_t **du)
{
    struct vmmc_import_setup setup = import_setup(name);
    int handle = vmmc_import(&setup);

    if (du != NULL)
        *du = setup.du;
    return handle;
}

volatile uint64_t *memory(size_t pages)
{
    return sss_map(NULL, pages * VMMC_PAGE, SSS_READ | SSS_WRITE);
}

void tell(const char *what, long value)
{
    sss_record("{\"type\":\"lab\",\"case\":\"%s\",\"what\":\"%s\",\"value\":%ld}", case_name, what,
               value);
}

void until(const volatile uint64_t *word, uint64_t value)
{
    while (*word != value)
        ;
}

void until_counted(const volatile uint32_t *word, uint32_t least)
{
    for (uint32_t seen; (seen = *word) < least;)
        sss_wait_word(word, seen, SSS_FOREVER);
}

long bind_error(volatile void *at, uint32_t pages, int handle, uint32_t first, unsigned flags)
{
    int error;

    vmmc_bind((void *)at, pages, handle, first, flags, &error);
    return error;
}

volatile uint64_t *bind(uint32_t pages, int handle, unsigned flags)
{
    int error;
    volatile uint64_t *out = vmmc_bind(NULL, pages, handle, 0, flags, &error);

    if (error != 0)
        tell("bind", error);
    return out;
}

int child(const char *name, volatile void *at)
{
    char options[160];
    struct sss_task_status status;
    int task;

    snprintf(options, sizeof(options), "{\"case\":\"%s\",\"peer\":%lu,\"address\":%lu}", name, peer,
             (unsigned long)at);
    task = sss_task("backplane", options, 0);
    if (task < 0)
        return task;
    for (;;) {
        uint32_t seen = SSS_INFO->tasks;

        if (sss_task_status(task, &status) < 0 || status.state == SSS_GONE)
            return status.status;
        sss_wait_word(&SSS_INFO->tasks, seen, SSS_FOREVER);
    }
}

long free_pages(void)
{
    const uint64_t place = 0x100000000ull;
    long count = 0;

    while (sss_map((void *)(place + (uint64_t)count * VMMC_PAGE), VMMC_PAGE, SSS_READ) != NULL)
        count++;
    sss_unmap((void *)place, (size_t)count * VMMC_PAGE);
    return count;
}
