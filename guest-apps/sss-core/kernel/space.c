/* SPDX-License-Identifier: Apache-2.0 */
#include "space.h"

#include <string.h>

#include "cpu.h"
#include "memory.h"
#include "paging.h"
#include "task.h"
#include "user.h"

static const uint64_t *loaded; /* the pml4 in CR3 */

uint64_t *space_create(page_source new_page)
{
    uint64_t *pml4 = new_page();

    if (pml4 != NULL)
        memcpy(&pml4[256], &kernel_pml4[256], 256 * sizeof(*pml4));
    return pml4;
}

static void destroy_level(uint64_t *table, unsigned level, unsigned entries)
{
    for (unsigned i = 0; i < entries; i++) {
        if ((table[i] & ENTRY_PRESENT) == 0)
            continue;
        if (level > 1)
            destroy_level(direct(table[i] & ENTRY_ADDRESS), level - 1, 512);
        else
            page_free(direct(table[i] & ENTRY_ADDRESS));
    }
    page_free(table);
}

void space_destroy(uint64_t *pml4)
{
    if (loaded == pml4)
        space_load(kernel_pml4);
    destroy_level(pml4, 4, 256);
}

void space_load(const uint64_t *pml4)
{
    if (loaded == pml4)
        return;
    loaded = pml4;
    write_cr3(physical(pml4));
}

bool space_range_valid(uint64_t address, uint64_t bytes)
{
    uint64_t info = (uint64_t)SSS_INFO;

    return address % PAGE == 0 && bytes % PAGE == 0 && bytes != 0 && address >= USER_BEGIN &&
           address < USER_END && bytes <= USER_END - address &&
           (address + bytes <= info || address > info);
}

/* One unmapped page follows each mapping of these. */
uint64_t space_next_address(struct task *task, uint64_t bytes)
{
    uint64_t address = task->heap_next;

    if (bytes > USER_END - address)
        return 0;
    task->heap_next = address + bytes + PAGE;
    return address;
}

/* 0 if such a page is not allowed: never writable and executable. */
static uint64_t entry_flags(unsigned protection)
{
    uint64_t flags = ENTRY_PRESENT | ENTRY_USER | ENTRY_RAM;

    if (protection == 0 || protection > (SSS_READ | SSS_WRITE | SSS_EXECUTE) ||
        (protection & (SSS_WRITE | SSS_EXECUTE)) == (SSS_WRITE | SSS_EXECUTE))
        return 0;
    if (protection & SSS_WRITE)
        flags |= ENTRY_WRITE;
    if (!(protection & SSS_EXECUTE))
        flags |= ENTRY_NO_EXECUTE;
    return flags;
}

static int map_page(struct task *task, uint64_t address, void *page, uint64_t flags)
{
    uint64_t *entry = paging_entry(task->pml4, address, task->new_page);

    if (entry == NULL)
        return -SSS_ENOMEM;
    if (*entry & ENTRY_PRESENT)
        return -SSS_EEXIST;
    *entry = physical(page) | flags;
    task->pages++;
    return 0;
}

int space_map_page(struct task *task, uint64_t address, void *page, unsigned protection)
{
    uint64_t flags = entry_flags(protection);

    return flags == 0 ? -SSS_EINVAL : map_page(task, address, page, flags);
}

int space_map_shared(struct task *task, uint64_t address, void *page, unsigned protection)
{
    uint64_t flags = entry_flags(protection);

    if (flags == 0 || (protection & SSS_EXECUTE) != 0)
        return -SSS_EINVAL;
    flags |= ENTRY_SHARED;
    if (protection & SSS_WRITE)
        flags |= ENTRY_MAY_WRITE;
    return map_page(task, address, page, flags);
}

int space_map_device(struct task *task, uint64_t address, uint64_t page)
{
    return map_page(task, address, direct(page),
                    entry_flags(SSS_READ | SSS_WRITE) & ~(uint64_t)ENTRY_RAM);
}

static void unmap_page(struct task *task, uint64_t address)
{
    uint64_t *entry = paging_entry(task->pml4, address, NULL);
    uint64_t old;

    if (entry == NULL || (*entry & ENTRY_PRESENT) == 0)
        return;
    old = *entry;
    *entry = 0;
    task->pages--;
    if (loaded == task->pml4)
        invalidate_page(address);
    page_free(direct(old & ENTRY_ADDRESS));
}

static uint64_t *device_entry(struct task *task, uint64_t address)
{
    uint64_t *entry = paging_entry(task->pml4, address, NULL);

    return entry == NULL || (*entry & (ENTRY_PRESENT | ENTRY_RAM)) != ENTRY_PRESENT ? NULL : entry;
}

void space_unmap_device(struct task *task, uint64_t address)
{
    uint64_t *entry = device_entry(task, address);

    if (entry == NULL)
        return;
    *entry = 0;
    task->pages--;
    if (loaded == task->pml4)
        invalidate_page(address);
}

uint64_t space_device_page(struct task *task, uint64_t address)
{
    const uint64_t *entry = device_entry(task, address);

    return entry == NULL ? 0 : *entry & ENTRY_ADDRESS;
}

void space_device_writable(struct task *task, uint64_t address, bool writable)
{
    uint64_t *entry = device_entry(task, address);

    if (entry == NULL)
        return;
    *entry = writable ? *entry | ENTRY_WRITE : *entry & ~(uint64_t)ENTRY_WRITE;
    if (loaded == task->pml4)
        invalidate_page(address);
}

void *space_pin_page(struct task *task, uint64_t address, bool write)
{
    const uint64_t *entry = paging_entry(task->pml4, address, NULL);
    void *page;

    if (entry == NULL || (*entry & (ENTRY_RAM | ENTRY_SHARED)) != ENTRY_RAM ||
        (write && (*entry & ENTRY_WRITE) == 0))
        return NULL;
    page = direct(*entry & ENTRY_ADDRESS);
    return page_share(page) ? page : NULL;
}

int space_map(struct task *task, uint64_t address, uint64_t bytes, unsigned protection)
{
    if (bytes / PAGE > pages_free())
        return -SSS_ENOMEM;
    for (uint64_t done = 0; done < bytes; done += PAGE) {
        void *page = task->new_page();
        int error = page == NULL ? -SSS_ENOMEM
                                 : space_map_page(task, address + done, page, protection);

        if (error == 0)
            continue;
        if (page != NULL)
            page_free(page);
        while (done != 0) {
            done -= PAGE;
            unmap_page(task, address + done);
        }
        return error;
    }
    return 0;
}

/* Every page of the range is mapped, and RAM. */
static bool all_mapped(struct task *task, uint64_t address, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes; done += PAGE) {
        const uint64_t *entry = paging_entry(task->pml4, address + done, NULL);

        if (entry == NULL || (*entry & ENTRY_RAM) == 0)
            return false;
    }
    return true;
}

int space_unmap(struct task *task, uint64_t address, uint64_t bytes)
{
    if (!all_mapped(task, address, bytes))
        return -SSS_ENOENT;
    task_drop_translations(task, address, bytes);
    for (uint64_t done = 0; done < bytes; done += PAGE)
        unmap_page(task, address + done);
    return 0;
}

/* A page never becomes executable while another could write it. */
static bool may_become(uint64_t entry, unsigned protection)
{
    if ((protection & SSS_EXECUTE) != 0)
        return (entry & ENTRY_SHARED) == 0 && !page_is_shared(direct(entry & ENTRY_ADDRESS));
    return (protection & SSS_WRITE) == 0 || (entry & ENTRY_SHARED) == 0 ||
           (entry & ENTRY_MAY_WRITE) != 0;
}

int space_protect(struct task *task, uint64_t address, uint64_t bytes, unsigned protection)
{
    uint64_t flags = entry_flags(protection);

    if (flags == 0)
        return -SSS_EINVAL;
    if (!all_mapped(task, address, bytes))
        return -SSS_ENOENT;
    for (uint64_t done = 0; done < bytes; done += PAGE)
        if (!may_become(*paging_entry(task->pml4, address + done, NULL), protection))
            return -SSS_EPERM;
    task_drop_translations(task, address, bytes);
    for (uint64_t done = 0; done < bytes; done += PAGE) {
        uint64_t *entry = paging_entry(task->pml4, address + done, NULL);

        *entry = (*entry & (ENTRY_ADDRESS | ENTRY_SHARED | ENTRY_MAY_WRITE)) | flags;
        if (loaded == task->pml4)
            invalidate_page(address + done);
    }
    return 0;
}
