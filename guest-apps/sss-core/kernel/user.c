/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of tasks are looked up in their page tables and reached through the direct map; the
 * kernel never dereferences one. */
#include "user.h"

#include <string.h>

#include "memory.h"
#include "paging.h"
#include "runqueue.h"
#include "space.h"
#include "sss/mbcf.h"
#include "task.h"

void task_drop_translations(struct task *task, uint64_t address, uint64_t bytes)
{
    for (unsigned i = 0; i < TRANSLATIONS; i++)
        if (task->translations[i].page[false] - address < bytes)
            task->translations[i].page[false] = task->translations[i].page[true] = TRANSLATION_NONE;
}

/* Fibonacci hashing: pages in use at the same time (stack, heap, FIFOs, information) tend to have
 * the same low bits. */
static inline uint64_t translation_place(uint64_t address)
{
    return (uint32_t)(address / PAGE) * 0x9e3779b1u >> (32 - TRANSLATION_BITS);
}

/* Out of line, so that task_page saves no registers for it. Two pages that hash to one place use
 * its neighbour, too. */
static __attribute__((noinline)) void *translate(struct task *task, uint64_t address, bool write,
                                                 int *why)
{
    uint64_t place = translation_place(address);
    struct translation *translation = &task->translations[place];
    struct translation *neighbour = &task->translations[place ^ 1];
    uint64_t page = address & ~(PAGE - 1);
    const uint64_t *entry;

    if (neighbour->page[write] == page)
        return (void *)(address + neighbour->offset);
    *why = MB_FAULT;
    if (address < USER_BEGIN || address >= USER_END)
        return NULL;
    entry = paging_entry(task->pml4, address, NULL);
    /* What a device has mapped is in no direct map. */
    if (entry == NULL || (*entry & ENTRY_RAM) == 0)
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
    const struct translation *translation = &task->translations[translation_place(address)];

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
