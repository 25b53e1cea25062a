/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of tasks as an adapter needs it: pages that stay where they are, and words that are
 * counted. */
#include <stdbool.h>
#include <stdint.h>

#include "sss/vmmc.h"

struct task;

struct vmmc_pages {
    uint64_t list[VMMC_EXPORT_PAGES]; /* physical addresses */
    uint32_t count;
};
/* -> 0, or a negative error with nothing pinned. */
int vmmc_pin(struct vmmc_pages *pages, struct task *task, uint64_t address, uint64_t count,
             bool write);
void vmmc_unpin(struct vmmc_pages *pages);

/* Address 0 is a word that no task wants. */
bool vmmc_word_valid(struct task *task, uint64_t address);
enum vmmc_word_change { VMMC_WORD_COUNT, VMMC_WORD_ONE };
void vmmc_word_change(struct task *task, uint64_t address, enum vmmc_word_change change);
