/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Address spaces: page tables of tasks and of the kernel. */
#include "kernel.h"

enum {
    ENTRY_PRESENT = 1 << 0,
    ENTRY_WRITE = 1 << 1,
    ENTRY_USER = 1 << 2,
    ENTRY_UNCACHED = 3 << 3,
    ENTRY_LARGE = 1 << 7,
    ENTRY_GLOBAL = 1 << 8,
};
#define ENTRY_NO_EXECUTE (1ull << 63)
#define ENTRY_ADDRESS    0x000ffffffffff000ull
#define LARGE_PAGE       0x200000ull

/* Addresses that a task may map: not page 0 and its neighbours, and not the last page below the
 * non-canonical ones. */
#define USER_BEGIN 0x10000ull
#define USER_END   0x7ffffffff000ull

extern uint64_t kernel_pml4[512];

/* The entry of the page at `address`; makes the tables on the way, or NULL where one is missing (no
 * memory, with `make`). */
uint64_t *space_entry(uint64_t *pml4, uint64_t address, bool make);

/* A pml4 with the kernel's half, NULL where no memory is left. */
uint64_t *space_create(void);
/* Frees everything below the kernel's half, and the tables. */
void space_destroy(uint64_t *pml4);
void space_load(const uint64_t *pml4);

/* Anonymous pages. The range must be free; nothing is mapped where it fails. */
int space_map(struct task *task, uint64_t address, uint64_t bytes, unsigned protection);
int space_unmap(struct task *task, uint64_t address, uint64_t bytes);
int space_protect(struct task *task, uint64_t address, uint64_t bytes, unsigned protection);
/* Whole pages between USER_BEGIN and USER_END, none of them the information page. */
bool space_range_valid(uint64_t address, uint64_t bytes);
/* Maps a page that somebody else has, too. */
int space_map_page(struct task *task, uint64_t address, void *page, unsigned protection);
