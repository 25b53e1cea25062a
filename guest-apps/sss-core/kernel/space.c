/* SPDX-License-Identifier: Apache-2.0 */
#include "space.h"

#include <string.h>

#include "boot.h"
#include "cpu.h"
#include "sss/mbcf.h"
#include "task.h"

static const uint64_t *loaded; /* the pml4 in CR3 */

uint64_t *space_entry(uint64_t *pml4, uint64_t address, bool make)
{
    uint64_t *table = pml4;

    for (unsigned shift = 39; shift > 12; shift -= 9) {
        uint64_t *entry = &table[(address >> shift) % 512];

        if ((*entry & ENTRY_PRESENT) == 0) {
            uint64_t *below = make ? page_alloc() : NULL;

            if (below == NULL)
                return NULL;
            *entry = physical(below) | ENTRY_PRESENT | ENTRY_WRITE |
                     (address < DIRECT_MAP ? (uint64_t)ENTRY_USER : 0);
        }
        table = direct(*entry & ENTRY_ADDRESS);
    }
    return &table[(address >> 12) % 512];
}

uint64_t *space_create(void)
{
    uint64_t *pml4 = page_alloc();

    if (pml4 != NULL)
        memcpy(&pml4[256], &kernel_pml4[256], 256 * sizeof *pml4);
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

/* 0 where such a page is not allowed: never writable and executable. */
static uint64_t entry_flags(unsigned protection)
{
    uint64_t flags = ENTRY_PRESENT | ENTRY_USER;

    if (protection == 0 || protection > (SSS_READ | SSS_WRITE | SSS_EXECUTE) ||
        (protection & (SSS_WRITE | SSS_EXECUTE)) == (SSS_WRITE | SSS_EXECUTE))
        return 0;
    if (protection & SSS_WRITE)
        flags |= ENTRY_WRITE;
    if (!(protection & SSS_EXECUTE))
        flags |= ENTRY_NO_EXECUTE;
    return flags;
}

int space_map_page(struct task *task, uint64_t address, void *page, unsigned protection)
{
    uint64_t flags = entry_flags(protection);
    uint64_t *entry;

    if (flags == 0)
        return -SSS_EINVAL;
    entry = space_entry(task->pml4, address, true);
    if (entry == NULL)
        return -SSS_ENOMEM;
    if (*entry & ENTRY_PRESENT)
        return -SSS_EEXIST;
    *entry = physical(page) | flags;
    task->pages++;
    return 0;
}

static void unmap_page(struct task *task, uint64_t address)
{
    uint64_t *entry = space_entry(task->pml4, address, false);
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

int space_map(struct task *task, uint64_t address, uint64_t bytes, unsigned protection)
{
    if (bytes / PAGE > pages_free())
        return -SSS_ENOMEM;
    for (uint64_t done = 0; done < bytes; done += PAGE) {
        void *page = page_alloc_user();
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

/* Every page of the range is there. */
static bool all_mapped(struct task *task, uint64_t address, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes; done += PAGE) {
        const uint64_t *entry = space_entry(task->pml4, address + done, false);

        if (entry == NULL || (*entry & ENTRY_PRESENT) == 0)
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
    waits_check_mapped(task);
    return 0;
}

int space_protect(struct task *task, uint64_t address, uint64_t bytes, unsigned protection)
{
    uint64_t flags = entry_flags(protection);

    if (flags == 0)
        return -SSS_EINVAL;
    if (!all_mapped(task, address, bytes))
        return -SSS_ENOENT;
    task_drop_translations(task, address, bytes);
    for (uint64_t done = 0; done < bytes; done += PAGE) {
        uint64_t *entry = space_entry(task->pml4, address + done, false);

        *entry = (*entry & ENTRY_ADDRESS) | flags;
        if (loaded == task->pml4)
            invalidate_page(address + done);
    }
    return 0;
}

/* ---- user memory, always by way of the direct map: the kernel never follows an address of a task
 * ---- */

void task_drop_translations(struct task *task, uint64_t address, uint64_t bytes)
{
    for (unsigned i = 0; i < TRANSLATIONS; i++)
        if (task->translations[i].page[false] - address < bytes)
            task->translations[i].page[false] = task->translations[i].page[true] = TRANSLATION_NONE;
}

/* Pages that are in use at the same time (stack, heap, FIFOs, information) tend to have the same
 * low bits: Fibonacci hashing. */
static inline struct translation *translation_of(struct task *task, uint64_t address)
{
    return &task->translations[(uint32_t)(address / PAGE) * 0x9e3779b1u >> (32 - TRANSLATION_BITS)];
}

/* Out of line, so that task_page saves no registers for it. Two pages with one place have its
 * neighbour, too. */
static __attribute__((noinline)) void *translate(struct task *task, uint64_t address, bool write,
                                                 int *why)
{
    struct translation *translation = translation_of(task, address);
    struct translation *neighbour = &task->translations[(translation - task->translations) ^ 1];
    uint64_t page = address & ~(PAGE - 1);
    const uint64_t *entry;

    if (neighbour->page[write] == page)
        return (void *)(address + neighbour->offset);
    *why = MB_FAULT;
    if (address < USER_BEGIN || address >= USER_END)
        return NULL;
    entry = space_entry(task->pml4, address, false);
    if (entry == NULL || (*entry & ENTRY_PRESENT) == 0)
        return NULL;
    *why = MB_READONLY;
    if (write && (*entry & ENTRY_WRITE) == 0)
        return NULL;
    *neighbour = *translation;
    translation->page[false] = page;
    translation->page[true] = *entry & ENTRY_WRITE ? page : TRANSLATION_NONE;
    translation->offset = (uint64_t)direct(*entry & ENTRY_ADDRESS) - page;
    return (void *)(address + translation->offset);
}

void *task_page(struct task *task, uint64_t address, bool write, int *why)
{
    const struct translation *translation = translation_of(task, address);

    if (translation->page[write] == (address & ~(PAGE - 1)))
        return (void *)(address + translation->offset);
    return translate(task, address, write, why);
}

bool user_read(void *to, uint64_t from, size_t length)
{
    struct task *task = task_current();
    int why;

    while (length != 0) {
        size_t part = PAGE - from % PAGE;
        const void *bytes = task_page(task, from, false, &why);

        if (bytes == NULL)
            return false;
        if (part > length)
            part = length;
        memcpy(to, bytes, part);
        to = (char *)to + part;
        from += part;
        length -= part;
    }
    return true;
}

bool user_write(uint64_t to, const void *from, size_t length)
{
    struct task *task = task_current();
    int why;

    while (length != 0) {
        size_t part = PAGE - to % PAGE;
        void *bytes = task_page(task, to, true, &why);

        if (bytes == NULL)
            return false;
        if (part > length)
            part = length;
        memcpy(bytes, from, part);
        from = (const char *)from + part;
        to += part;
        length -= part;
    }
    return true;
}

long user_string(char *to, size_t size, uint64_t from)
{
    struct task *task = task_current();
    const char *bytes = NULL;
    int why;

    for (size_t length = 0; length < size; length++, from++) {
        if (bytes == NULL || from % PAGE == 0)
            bytes = task_page(task, from, false, &why);
        if (bytes == NULL)
            return -1;
        to[length] = *bytes++;
        if (to[length] == '\0')
            return (long)length;
    }
    return -1;
}
