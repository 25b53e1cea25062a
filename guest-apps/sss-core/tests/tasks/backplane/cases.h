/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the cases of tests/tasks/backplane.c have in common. */
#include "sss/system.h"
#include "sss/vmmc.h"

#define KEY        0x6b65795f6f665f69ull
#define TIMEOUT_NS 20000000ull
enum { PAGES = 4, WORDS = VMMC_PAGE / 8, BYTES = PAGES * VMMC_PAGE };

struct task_case {
    const char *name; /* NULL ends a table */
    void (*run)(void);
};
extern const struct task_case updates_cases[], refusals_cases[], isolation_cases[], ends_cases[];

extern uint64_t peer, address; /* of the options */
extern const char *case_name;
extern volatile uint32_t notified, imported, gone; /* words of exports and imports */

struct vmmc_export_setup export_setup(const char *name, volatile void *memory, uint32_t pages);
int export(const char *name, volatile void *memory, uint32_t pages, uint32_t flags);
struct vmmc_import_setup import_setup(const char *name);
int import(const char *name, volatile uint64_t **du);
volatile uint64_t *memory(size_t pages);
void tell(const char *what, long value);
void until(const volatile uint64_t *word, uint64_t value);
void until_counted(const volatile uint32_t *word, uint32_t least);
long bind_error(volatile void *at, uint32_t pages, int handle, uint32_t first, unsigned flags);
volatile uint64_t *bind(uint32_t pages, int handle, unsigned flags);
/* Another task of this program: its status. */
int child(const char *name, volatile void *at);
/* Pages that a task can get. */
long free_pages(void);
