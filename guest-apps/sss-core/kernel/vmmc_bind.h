/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Automatic pages: which task has them, and what they are bound to. */
#include <stdbool.h>
#include <stdint.h>

#include "thread.h"

struct task;
struct vmmc_target;

void vmmc_bindings_init(void);
/* Pages of the adapter at `address` (0: anywhere), bound to pages of the import's export from
 * `first` on -> the address, or a negative error with nothing mapped. */
long vmmc_bind_pages(struct task *task, uint64_t address, uint64_t pages, unsigned import,
                     const struct vmmc_target *to, uint32_t first, unsigned flags);
long vmmc_unbind_pages(struct task *task, uint64_t address, uint64_t pages);

/* Of an import: the export is gone; or the import is, and then its pages are unmapped. */
void vmmc_bindings_disable(unsigned import);
void vmmc_bindings_free(unsigned import);

/* The outgoing FIFO is filling: stores to bound memory wait until it is nearly empty. */
void vmmc_bindings_stop(bool stop);
bool vmmc_bindings_stopped(void);
/* A call that sends a message waits as stores do -> whether the current thread
 * sleeps now; then `again` is called. */
bool vmmc_bindings_wait(call_function again);
/* Such a store of the current thread, which sleeps now (trap_on_page_fault). */
bool vmmc_bindings_fault(uint64_t address);
