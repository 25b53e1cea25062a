/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory. Pages come from the regions that the PVH memory map calls RAM, less what the
 * kernel and the initrd occupy; pages given back form a list. Nothing is touched at start, so
 * booting costs the same whatever the memory.
 */
#include <string.h>

#include "barrier.h"
#include "boot.h"
#include "cpu.h"
#include "space.h"

/* xen/include/public/arch-x86/hvm/start_info.h, version 1 */
struct start_info {
    uint32_t magic, version, flags, modules;
    uint64_t module_list, command_line, rsdp, memory_map;
    uint32_t memory_map_entries, reserved;
};
struct start_module {
    uint64_t address, bytes, command_line, reserved;
};
struct start_memory {
    uint64_t address, bytes;
    uint32_t type, reserved;
};
enum { START_MAGIC = 0x336ec578, MEMORY_RAM = 1 };

#define LOW_MEMORY   0x100000ull    /* firmware's data, and the start info */
#define MEMORY_LIMIT 0x100000000ull /* the direct map ends here */
enum { REGIONS = 16, COMMAND_LINE = 256, USER_RESERVE = 64 };

static struct region {
    uint64_t next, end;
} regions[REGIONS];
static unsigned region_count;
static struct free_page {
    struct free_page *next;
} * free_pages;
static size_t free_count, total_count;
static uint16_t *shares; /* of each page: how many users it has beyond the first */
static uint64_t direct_end;
static const void *initrd;
static size_t initrd_bytes;
static char command_line[COMMAND_LINE];

extern char kernel_begin[], kernel_rodata[], kernel_data[], kernel_end[], kernel_stack_guard[];

uint64_t physical(const void *address)
{
    uint64_t value = (uint64_t)address;

    return value >= KERNEL_BASE ? value - KERNEL_BASE : value - DIRECT_MAP;
}

void *direct(uint64_t physical_address)
{
    return (void *)(DIRECT_MAP + physical_address);
}

const char *boot_command_line(void)
{
    return command_line;
}

const void *boot_initrd(size_t *length)
{
    *length = initrd_bytes;
    return initrd;
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

static void read_memory_map(const struct start_info *info)
{
    const struct start_memory *map = direct(info->memory_map);
    uint64_t initrd_begin = initrd == NULL ? 0 : physical(initrd);

    for (uint32_t i = 0; i < info->memory_map_entries; i++) {
        uint64_t begin = map[i].address, end = begin + map[i].bytes;

        if (map[i].type != MEMORY_RAM || begin >= MEMORY_LIMIT)
            continue;
        if (end > MEMORY_LIMIT)
            end = MEMORY_LIMIT;
        if (end > direct_end)
            direct_end = end;
        if (begin < physical(kernel_end))
            /* the kernel lies at the begin of the RAM above LOW_MEMORY */
            begin = physical(kernel_end);
        if (begin < end)
            add_around(begin, end, initrd_begin, initrd_begin + initrd_bytes);
    }
    total_count = free_count;
}

static void *take_page(void)
{
    struct free_page *page = free_pages;

    if (page != NULL) {
        free_pages = page->next;
        free_count--;
        return page;
    }
    for (unsigned i = 0; i < region_count; i++) {
        if (regions[i].next < regions[i].end) {
            regions[i].next += PAGE;
            free_count--;
            return direct(regions[i].next - PAGE);
        }
    }
    return NULL;
}

void *page_alloc(void)
{
    void *page = take_page();

    return page == NULL ? NULL : memset(page, 0, PAGE);
}

/* For what tasks ask for: leaves some pages to the kernel itself. */
void *page_alloc_user(void)
{
    return free_count <= USER_RESERVE ? NULL : page_alloc();
}

void page_share(void *page)
{
    if (++shares[physical(page) / PAGE] == 0)
        panic("a page has too many users");
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
            return memset(pages, 0, count * PAGE);
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

/* ---- the kernel's own mappings ---- */

static uint64_t *new_table(void)
{
    uint64_t *table = page_alloc();

    if (table == NULL)
        panic("no memory for the kernel's page tables");
    return table;
}

static void map_direct(void)
{
    uint64_t *pdpt = new_table();

    for (uint64_t address = 0; address < direct_end; address += LARGE_PAGE) {
        uint64_t *upper = &pdpt[address >> 30];
        uint64_t *pd;

        if (*upper == 0)
            *upper = physical(new_table()) | ENTRY_PRESENT | ENTRY_WRITE;
        pd = direct(*upper & ENTRY_ADDRESS);
        pd[(address >> 21) % 512] = address | ENTRY_PRESENT | ENTRY_WRITE | ENTRY_LARGE |
                                    ENTRY_GLOBAL | ENTRY_NO_EXECUTE;
    }
    kernel_pml4[256] = physical(pdpt) | ENTRY_PRESENT | ENTRY_WRITE;
}

static uint64_t image_flags(const char *page)
{
    if (page < kernel_rodata)
        return ENTRY_PRESENT | ENTRY_GLOBAL;
    if (page < kernel_data)
        return ENTRY_PRESENT | ENTRY_GLOBAL | ENTRY_NO_EXECUTE;
    if (page == kernel_stack_guard)
        return 0;
    return ENTRY_PRESENT | ENTRY_WRITE | ENTRY_GLOBAL | ENTRY_NO_EXECUTE;
}

/* Text r-x, constants r--, data rw-, nothing else. In a table of its own until it is complete, for
 * this code runs in it. */
static void map_image(void)
{
    uint64_t *pml4 = new_table();

    for (const char *page = kernel_begin; page < kernel_end; page += PAGE) {
        uint64_t *entry = space_entry(pml4, (uint64_t)page, true);

        if (entry == NULL)
            panic("no memory for the kernel's page tables");
        *entry = physical(page) | image_flags(page);
    }
    kernel_pml4[511] = pml4[511] & ~(uint64_t)ENTRY_USER;
    page_free(pml4);
}

void *map_device(uint64_t physical_address, size_t bytes)
{
    static uint64_t next = DEVICE_MAP;
    uint64_t offset = physical_address % PAGE;
    uint64_t address = next + offset;
    size_t count = (offset + bytes + PAGE - 1) / PAGE;

    for (size_t i = 0; i < count; i++, next += PAGE) {
        uint64_t *entry = space_entry(kernel_pml4, next, true);

        if (entry == NULL)
            panic("no memory to map a device");
        *entry = (physical_address - offset + i * PAGE) | ENTRY_PRESENT | ENTRY_WRITE |
                 ENTRY_UNCACHED | ENTRY_GLOBAL | ENTRY_NO_EXECUTE;
    }
    /* The compiler sees no connection between the tables and what is reached through them. */
    compiler_barrier();
    return (void *)address;
}

void memory_init(uint64_t start_info_physical)
{
    const struct start_info *info = direct(start_info_physical);

    if (info->magic != START_MAGIC || info->version < 1)
        panic("not started by PVH: start info has magic %x, version %u", info->magic,
              info->version);
    if (info->command_line != 0)
        strncpy(command_line, direct(info->command_line), COMMAND_LINE - 1);
    if (info->modules != 0) {
        const struct start_module *module = direct(info->module_list);

        initrd = direct(module->address);
        initrd_bytes = module->bytes;
    }
    read_memory_map(info);
    shares = pages_alloc((direct_end / PAGE * sizeof *shares + PAGE - 1) / PAGE);
    if (shares == NULL)
        panic("no memory");
    map_direct();
    map_image();
    /* before the first task copies it */
    kernel_pml4[257] = physical(new_table()) | ENTRY_PRESENT | ENTRY_WRITE;
    kernel_pml4[0] = 0;
    write_cr3(physical(kernel_pml4));
}
