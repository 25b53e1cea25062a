/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Address spaces of tasks. */
#include <stdbool.h>
#include <stdint.h>

#include "memory.h"

struct task;

/* Addresses that a task may map: not the first 16 pages, nor the last one below the non-canonical
 * addresses. */
#define USER_BEGIN 0x10000ull
#define USER_END   0x7ffffffff000ull

/* A pml4 with the kernel's half, or NULL. */
uint64_t *space_create(page_source new_page);
/* Frees everything in the user half, and its tables. */
void space_destroy(uint64_t *pml4);
void space_load(const uint64_t *pml4);

/* Anonymous pages. The range must be free; on failure nothing is mapped. */
int space_map(struct task *task, uint64_t address, uint64_t bytes, unsigned protection);
int space_unmap(struct task *task, uint64_t address, uint64_t bytes);
/* -SSS_EPERM, with nothing changed, where a page would become executable that has other users (one
 * of them could write it) or was mapped from CSM, or a page of CSM writable that was mapped
 * without. */
int space_protect(struct task *task, uint64_t address, uint64_t bytes, unsigned protection);
/* Whole pages between USER_BEGIN and USER_END, none of them the information page. */
bool space_range_valid(uint64_t address, uint64_t bytes);
/* Where anonymous memory of this size goes; 0: nowhere. */
uint64_t space_next_address(struct task *task, uint64_t bytes);
int space_map_page(struct task *task, uint64_t address, void *page, unsigned protection);
/* The same for a page of CSM: what `protection` does not permit, space_protect will not, either. */
int space_map_shared(struct task *task, uint64_t address, void *page, unsigned protection);

/* A page of a device's memory, read and written. It is not among those that space_unmap and
 * space_protect take, no system call reads or writes it for the task, and it must be unmapped
 * before space_destroy. */
int space_map_device(struct task *task, uint64_t address, uint64_t physical_page);
void space_unmap_device(struct task *task, uint64_t address);
uint64_t space_device_page(struct task *task, uint64_t address); /* physical; 0: none is there */
void space_device_writable(struct task *task, uint64_t address, bool writable);

/* The task's own page, with one more user (page_share), or NULL. */
void *space_pin_page(struct task *task, uint64_t address, bool write);
