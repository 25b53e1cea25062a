/* SPDX-License-Identifier: Apache-2.0 */
#include "vmmc_bind.h"

#include "memory.h"
#include "panic.h"
#include "runqueue.h"
#include "space.h"
#include "sss/vmmc.h"
#include "task.h"
#include "vmmc_device.h"

static struct automatic {
    struct task *task; /* NULL: free */
    uint64_t address;  /* in the task */
    uint8_t import;
    bool used; /* its content must not be seen by another task */
} * automatic;
static unsigned top; /* pages from here on have never been used */
static unsigned free_count = VMMC_BOUND_PAGES;
static bool stopped;
static struct wait_queue storing; /* threads that wait until it is not */

void vmmc_bindings_init(void)
{
    automatic = pages_alloc((VMMC_BOUND_PAGES * sizeof(*automatic) + PAGE - 1) / PAGE);
    if (automatic == NULL)
        panic("no memory for the backplane's bindings");
}

static int map_page(unsigned page, struct task *task, uint64_t address)
{
    int error = space_map_device(task, address, vmmc_automatic_page(page));

    if (error != 0)
        return error;
    if (automatic[page].used)
        vmmc_clear_page(page);
    if (stopped)
        space_device_writable(task, address, false);
    automatic[page].task = task;
    automatic[page].address = address;
    automatic[page].used = true;
    free_count--;
    if (page >= top)
        top = page + 1;
    return 0;
}

static void free_page(unsigned page)
{
    vmmc_hide_binding(page);
    space_unmap_device(automatic[page].task, automatic[page].address);
    automatic[page].task = NULL;
    free_count++;
}

long vmmc_bind_pages(struct task *task, uint64_t address, uint64_t pages, unsigned import,
                     const struct vmmc_target *to, uint32_t first, unsigned flags)
{
    unsigned page = 0;

    if (pages > free_count)
        return -SSS_EAGAIN;
    if (address == 0)
        address = space_next_address(task, pages * PAGE);
    if (!space_range_valid(address, pages * PAGE))
        return -SSS_EINVAL;
    for (uint64_t done = 0; done < pages; done++, page++) {
        int error;

        while (automatic[page].task != NULL)
            page++;
        error = map_page(page, task, address + done * PAGE);
        if (error != 0) {
            if (done != 0)
                vmmc_unbind_pages(task, address, done);
            return error;
        }
        automatic[page].import = (uint8_t)import;
        vmmc_show_binding(page, to, flags, first + (uint32_t)done);
    }
    return (long)address;
}

/* The automatic page at an address of the task, or -1. */
static int page_at(struct task *task, uint64_t address)
{
    return vmmc_automatic_number(space_device_page(task, address));
}

long vmmc_unbind_pages(struct task *task, uint64_t address, uint64_t pages)
{
    if (pages > VMMC_BOUND_PAGES || !space_range_valid(address, pages * PAGE))
        return -SSS_EINVAL;
    for (uint64_t i = 0; i < pages; i++)
        if (page_at(task, address + i * PAGE) < 0)
            return -SSS_ENOENT;
    vmmc_flush();
    for (uint64_t i = 0; i < pages; i++)
        free_page((unsigned)page_at(task, address + i * PAGE));
    return 0;
}

void vmmc_bindings_disable(unsigned import)
{
    for (unsigned page = 0; page < top; page++)
        if (automatic[page].task != NULL && automatic[page].import == import)
            vmmc_hide_binding(page);
}

void vmmc_bindings_free(unsigned import)
{
    vmmc_flush();
    for (unsigned page = 0; page < top; page++)
        if (automatic[page].task != NULL && automatic[page].import == import)
            free_page(page);
}

void vmmc_bindings_stop(bool stop)
{
    stopped = stop;
    for (unsigned page = 0; page < top; page++)
        if (automatic[page].task != NULL)
            space_device_writable(automatic[page].task, automatic[page].address, !stop);
    if (!stop)
        thread_wake_all(&storing);
}

bool vmmc_bindings_stopped(void)
{
    return stopped;
}

bool vmmc_bindings_wait(call_function again)
{
    /* The adapter may know already that it fills, or that it no longer does. */
    if (!stopped && !vmmc_line_full())
        return false;
    thread_sleep(&storing, again);
    return true;
}

bool vmmc_bindings_fault(uint64_t address)
{
    uint64_t page = address & ~(PAGE - 1);

    /* The kernel's half is not made of the same entries. */
    if (!stopped || !space_range_valid(page, PAGE) || page_at(task_current(), page) < 0)
        return false;
    thread_sleep(&storing, NULL);
    return true;
}
