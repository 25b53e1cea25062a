/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Physical memory in pages. All RAM below 4 GiB is mapped at DIRECT_MAP; the kernel itself is
 * linked at KERNEL_BASE + 1 MiB.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIRECT_MAP  0xffff800000000000ull
#define KERNEL_BASE 0xffffffff80000000ull
#define PAGE        4096ull

void memory_init(void); /* the free pages, from the memory map */

/* Of an address in the direct map or the kernel image. */
static inline uint64_t physical(const void *address)
{
    uint64_t value = (uint64_t)address;

    return value >= KERNEL_BASE ? value - KERNEL_BASE : value - DIRECT_MAP;
}

static inline void *direct(uint64_t physical_address)
{
    return (void *)(DIRECT_MAP + physical_address);
}

uint64_t memory_end(void); /* of the physical addresses that are RAM */

/* One zeroed page in the direct map, or NULL. */
void *page_alloc(void);
/* For whatever a task asks for, the kernel's own data about it included: leaves a reserve, from
 * which the kernel starts tasks. */
void *page_alloc_user(void);
typedef void *(*page_source)(void); /* page_alloc or page_alloc_user */
/* One more page_free is needed; false: the page has as many users as can be counted. */
bool page_share(void *page);
bool page_is_shared(const void *page); /* it has more than one user */
void page_free(void *page);
void *pages_alloc(size_t count); /* contiguous; more than one only while booting */
size_t pages_free(void);
size_t pages_total(void);
