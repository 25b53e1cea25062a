/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Page tables of four levels (SDM 3A, 4.5). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"

enum {
    ENTRY_PRESENT = 1 << 0,
    ENTRY_WRITE = 1 << 1,
    ENTRY_USER = 1 << 2,
    ENTRY_UNCACHED = 3 << 3,
    ENTRY_LARGE = 1 << 7,
    ENTRY_GLOBAL = 1 << 8,
    /* Not the CPU's: this mapping was made of CSM, and it may be made writable; the page is RAM,
     * and not a device's. */
    ENTRY_SHARED = 1 << 9,
    ENTRY_MAY_WRITE = 1 << 10,
    ENTRY_RAM = 1 << 11,
};
#define ENTRY_NO_EXECUTE (1ull << 63)
#define ENTRY_ADDRESS    0x000ffffffffff000ull

extern uint64_t kernel_pml4[512]; /* boot.S */

/* The direct map, the kernel image with its protection, and no user half. */
void paging_init(void);
/* The entry of the page at `address`. Missing tables come from `new_table`; NULL makes none. NULL:
 * no table, or no memory for one. */
uint64_t *paging_entry(uint64_t *pml4, uint64_t address, page_source new_table);
void *map_device(uint64_t physical_address, size_t bytes); /* uncached */
