/* SPDX-License-Identifier: Apache-2.0 */
/* Page tables: the walk to an entry, and the kernel's own mappings. */
#include "paging.h"

#include "barrier.h"
#include "cpu.h"
#include "memory.h"
#include "panic.h"

#define DEVICE_MAP 0xffff808000000000ull
#define LARGE_PAGE 0x200000ull

extern char kernel_begin[], kernel_rodata[], kernel_data[], kernel_end[], kernel_stack_guard[];

uint64_t *paging_entry(uint64_t *pml4, uint64_t address, page_source new_table)
{
    uint64_t *table = pml4;

    for (unsigned shift = 39; shift > 12; shift -= 9) {
        uint64_t *entry = &table[(address >> shift) % 512];

        if ((*entry & ENTRY_PRESENT) == 0) {
            uint64_t *below = new_table == NULL ? NULL : new_table();

            if (below == NULL)
                return NULL;
            *entry = physical(below) | ENTRY_PRESENT | ENTRY_WRITE |
                     (address < DIRECT_MAP ? (uint64_t)ENTRY_USER : 0);
        }
        table = direct(*entry & ENTRY_ADDRESS);
    }
    return &table[(address >> 12) % 512];
}

/* ---- the kernel's own mappings ---- */

static void *own_table(void)
{
    void *table = page_alloc();

    if (table == NULL)
        panic("no memory for the kernel's page tables");
    return table;
}

static void map_direct(void)
{
    uint64_t *pdpt = own_table();

    for (uint64_t address = 0; address < memory_end(); address += LARGE_PAGE) {
        uint64_t *upper = &pdpt[address >> 30];
        uint64_t *pd;

        if (*upper == 0)
            *upper = physical(own_table()) | ENTRY_PRESENT | ENTRY_WRITE;
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

/* Text r-x, constants r--, data rw-, nothing else. In a separate table until it is complete: this
 * code runs in the image. */
static void map_image(void)
{
    uint64_t *pml4 = own_table();

    /* cppcheck-suppress comparePointers; the linker puts both around one image */
    for (const char *page = kernel_begin; page < kernel_end; page += PAGE) {
        *paging_entry(pml4, (uint64_t)page, own_table) = physical(page) | image_flags(page);
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
        uint64_t *entry = paging_entry(kernel_pml4, next, page_alloc);

        if (entry == NULL)
            panic("no memory to map a device");
        *entry = (physical_address - offset + i * PAGE) | ENTRY_PRESENT | ENTRY_WRITE |
                 ENTRY_UNCACHED | ENTRY_GLOBAL | ENTRY_NO_EXECUTE;
    }
    /* The compiler sees no connection between the tables and accesses through them. */
    compiler_barrier();
    return (void *)address;
}

void paging_init(void)
{
    map_direct();
    map_image();
    /* Made before the first task copies the kernel's half. */
    kernel_pml4[257] = physical(own_table()) | ENTRY_PRESENT | ENTRY_WRITE;
    kernel_pml4[0] = 0;
    write_cr3(physical(kernel_pml4));
}
