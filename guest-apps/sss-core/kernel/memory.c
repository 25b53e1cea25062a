/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages come from the regions that the PVH memory map calls RAM, except what the kernel and the
 * initrd occupy; freed pages form a list. Nothing is touched at boot, so booting takes as long with
 * 16 MiB as with 1 GiB.
 */
#include "memory.h"

#include <stdbool.h>
#include <string.h>

#include "boot_info.h"
#include "panic.h"

#define MEMORY_LIMIT 0x100000000ull /* the direct map ends here */
enum { REGIONS = 16, USER_RESERVE = 128 };

static struct region {
    uint64_t next, end;
} regions[REGIONS];
static unsigned region_count;
static struct free_page {
    struct free_page *next;
} * free_pages;
static size_t free_count, total_count;
static uint16_t *shares; /* of each page: its users beyond the first */
static uint64_t direct_end;

extern char kernel_end[];

uint64_t memory_end(void)
{
    return direct_end;
}

static void add_region(uint64_t begin, uint64_t end)
{
    begin = (begin + PAGE - 1) & ~(PAGE - 1);
    end &= ~(PAGE - 1);
    if (begin >= end)
        return;
    if (region_count == REGIONS)
        panic("the memory map has more than %d regions", REGIONS);
    regions[region_count++] = (struct region){begin, end};
    free_count += (end - begin) / PAGE;
}

/* A range of RAM less [hole_begin, hole_end). */
static void add_around(uint64_t begin, uint64_t end, uint64_t hole_begin, uint64_t hole_end)
{
    if (hole_end <= begin || hole_begin >= end) {
        add_region(begin, end);
        return;
    }
    if (begin < hole_begin)
        add_region(begin, hole_begin);
    if (hole_end < end)
        add_region(hole_end, end);
}

static void read_memory_map(void)
{
    size_t initrd_bytes;
    const void *initrd = boot_initrd(&initrd_bytes);
    uint64_t initrd_begin = initrd == NULL ? 0 : physical(initrd);
    uint64_t begin, end;
    bool ram;

    for (uint32_t i = 0; boot_memory(i, &ram, &begin, &end); i++) {
        if (!ram || begin >= MEMORY_LIMIT)
            continue;
        if (end > MEMORY_LIMIT)
            end = MEMORY_LIMIT;
        if (end > direct_end)
            direct_end = end;
        /* Below 1 MiB are the firmware's data and the start info; the kernel follows at once. */
        if (begin < physical(kernel_end))
            begin = physical(kernel_end);
        if (begin < end)
            add_around(begin, end, initrd_begin, initrd_begin + initrd_bytes);
    }
    total_count = free_count;
}

/*
 * RAM that has not been used yet is zero but for what the firmware left in it. Pages that are zero
 * are not written to: until a task does, the host need not have a page of its own for them.
 */
static void *clear_fresh(char *pages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *next = pages + i * PAGE;
        size_t words = PAGE / 8;
        bool zero;

        __asm__ volatile("repe scasq"
                         : "+D"(next), "+c"(words), "=@ccz"(zero)
                         : "a"(0ull)
                         : "memory");
        if (!zero)
            memset(pages + i * PAGE, 0, PAGE);
    }
    return pages;
}

void *page_alloc(void)
{
    struct free_page *page = free_pages;

    if (page != NULL) {
        free_pages = page->next;
        free_count--;
        return memset(page, 0, PAGE);
    }
    for (unsigned i = 0; i < region_count; i++) {
        if (regions[i].next < regions[i].end) {
            regions[i].next += PAGE;
            free_count--;
            return clear_fresh(direct(regions[i].next - PAGE), 1);
        }
    }
    return NULL;
}

void *page_alloc_user(void)
{
    return free_count <= USER_RESERVE ? NULL : page_alloc();
}

bool page_share(void *page)
{
    uint16_t *others = &shares[physical(page) / PAGE];

    if (*others == UINT16_MAX)
        return false;
    ++*others;
    return true;
}

bool page_is_shared(const void *page)
{
    return shares[physical(page) / PAGE] != 0;
}

void page_free(void *page)
{
    struct free_page *freed = page;
    uint16_t *others = &shares[physical(page) / PAGE];

    if (*others != 0) {
        (*others)--;
        return;
    }
    freed->next = free_pages;
    free_pages = freed;
    free_count++;
}

void *pages_alloc(size_t count)
{
    for (unsigned i = 0; i < region_count; i++) {
        if ((regions[i].end - regions[i].next) / PAGE >= count) {
            void *pages = direct(regions[i].next);

            regions[i].next += count * PAGE;
            free_count -= count;
            return clear_fresh(pages, count);
        }
    }
    return NULL;
}

size_t pages_free(void)
{
    return free_count;
}

size_t pages_total(void)
{
    return total_count;
}

void memory_init(void)
{
    read_memory_map();
    shares = pages_alloc((direct_end / PAGE * sizeof(*shares) + PAGE - 1) / PAGE);
    if (shares == NULL)
        panic("no memory");
}
