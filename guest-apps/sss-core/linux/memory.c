/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which memory a peer may reach. The kernel is asked for each page, just before it is touched: it
 * alone knows what the process has mapped, and nothing else unmaps it while the lock is held but
 * threads of the task itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "node_state.h"

/* <linux/mman.h>, since musl's <sys/mman.h> has neither. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

enum { OWN_AREAS = NODES_MOST * 2 + 1, SHARES = 64 };

static struct {
    uintptr_t first, bytes;
} own_areas[OWN_AREAS];

/* CSM: areas that sss_csm_share has named; ids count from 1. */
static struct {
    uint8_t *memory;
    size_t bytes;
} shares[SHARES];

/* ---- memory of nodes ---- */

void *node_memory_alloc(size_t bytes)
{
    size_t whole = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    void *memory;

    for (unsigned i = 0; i < OWN_AREAS; i++) {
        if (own_areas[i].bytes != 0)
            continue;
        memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return NULL;
        own_areas[i].first = (uintptr_t)memory;
        own_areas[i].bytes = whole;
        return memory;
    }
    errno = ENOMEM;
    return NULL;
}

void node_memory_free(void *memory, size_t bytes)
{
    for (unsigned i = 0; i < OWN_AREAS; i++)
        if (own_areas[i].bytes != 0 && own_areas[i].first == (uintptr_t)memory)
            own_areas[i].bytes = 0;
    munmap(memory, (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
}

static bool is_own(uintptr_t address)
{
    for (unsigned i = 0; i < OWN_AREAS; i++)
        if (address - own_areas[i].first < own_areas[i].bytes)
            return true;
    return false;
}

/* ---- pages ---- */

static void *region_page(const struct node_task *task, uint64_t address, bool write, int *why)
{
    for (unsigned i = 0; i < task->region_count; i++) {
        const struct region *region = &task->regions[i];

        if (address - region->address >= region->bytes)
            continue;
        if (write && !(region->protection & SSS_WRITE)) {
            *why = MB_READONLY;
            return NULL;
        }
        return region->memory + (address - region->address);
    }
    return NULL;
}

/* Faults the page in as a store would, without storing (Linux 5.14). */
static bool populate(uintptr_t page, bool write)
{
    return madvise((void *)page, PAGE_BYTES, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0;
}

void *surroundings_page(void *context, void *space, uint64_t address, bool write, int *why)
{
    const struct node_task *task = space;
    uintptr_t page = (uintptr_t)address & ~(uintptr_t)(PAGE_BYTES - 1);
    int saved = errno;
    bool there;

    (void)context;
    *why = MB_FAULT;
    if (task->empty)
        return region_page(task, address, write, why);
    if (page == 0 || is_own(page))
        return NULL;
    there = populate(page, write);
    if (!there && write && populate(page, false))
        *why = MB_READONLY;
    errno = saved;
    return there ? (void *)(uintptr_t)address : NULL;
}

/* ---- what tasks ask for ---- */

static int protection_of(uint64_t protection)
{
    return (protection & SSS_READ ? PROT_READ : 0) | (protection & SSS_WRITE ? PROT_WRITE : 0);
}

/* Not shared yet, but of the kind that can be mapped twice. */
static long map(uint64_t address, uint64_t bytes, uint64_t protection)
{
    int flags = MAP_SHARED | MAP_ANONYMOUS | (address != 0 ? MAP_FIXED_NOREPLACE : 0);
    void *memory;

    if (bytes == 0 || address % PAGE_BYTES != 0 || (protection & SSS_EXECUTE))
        return -SSS_EINVAL;
    memory = mmap((void *)(uintptr_t)address, bytes, protection_of(protection), flags, -1, 0);
    if (memory == MAP_FAILED)
        return errno == EEXIST ? -SSS_EEXIST : -SSS_ENOMEM;
    return (long)(uintptr_t)memory;
}

static long share(uint64_t address, uint64_t bytes)
{
    if (address % PAGE_BYTES != 0 || bytes == 0 || bytes % PAGE_BYTES != 0)
        return -SSS_EINVAL;
    for (unsigned i = 0; i < SHARES; i++)
        if (shares[i].bytes == 0) {
            shares[i].memory = (uint8_t *)(uintptr_t)address;
            shares[i].bytes = bytes;
            return (long)i + 1;
        }
    return -SSS_ENOMEM;
}

static long unmap(uint64_t address, uint64_t bytes)
{
    if (munmap((void *)(uintptr_t)address, bytes) != 0)
        return -SSS_EINVAL;
    for (unsigned i = 0; i < SHARES; i++)
        if (shares[i].bytes != 0 && (uintptr_t)shares[i].memory - address < bytes)
            shares[i].bytes = 0;
    return 0;
}

long node_memory_map_share(struct node_task *task, uint64_t id, uint64_t address,
                           uint64_t protection)
{
    uint8_t *memory;

    if (id == 0 || id > SHARES || shares[id - 1].bytes == 0 || address % PAGE_BYTES != 0 ||
        address == 0)
        return -SSS_EINVAL;
    memory = shares[id - 1].memory;
    if (!task->empty) {
        /* An old size of 0 makes a second mapping of the same memory. */
        void *at = mremap(memory, 0, shares[id - 1].bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                          (void *)(uintptr_t)address);

        if (at == MAP_FAILED)
            return -SSS_EINVAL;
        return mprotect(at, shares[id - 1].bytes, protection_of(protection)) == 0 ? 0 : -SSS_EINVAL;
    }
    if (task->region_count == REGIONS)
        return -SSS_ENOMEM;
    task->regions[task->region_count++] = (struct region){address, shares[id - 1].bytes, memory,
                                                          (unsigned)protection};
    return 0;
}

long node_memory_call(long number, const uint64_t arguments[6])
{
    switch (number) {
    case SSS_MEMORY_MAP:
        return map(arguments[0], arguments[1], arguments[2]);
    case SSS_MEMORY_UNMAP:
        return unmap(arguments[0], arguments[1]);
    case SSS_MEMORY_PROTECT:
        return mprotect((void *)(uintptr_t)arguments[0], arguments[1],
                        protection_of(arguments[2])) == 0
                   ? 0
                   : -SSS_EINVAL;
    default:
        return share(arguments[0], arguments[1]);
    }
}
