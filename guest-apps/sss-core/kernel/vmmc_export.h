/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What tasks of this node export, and who has imported it. */
#include <stdbool.h>
#include <stdint.h>

struct task;
struct vmmc_message;

void vmmc_exports_init(void);
/* For the current task -> id, or a negative error. */
long vmmc_export_open(uint64_t setup_address);
long vmmc_export_close(struct task *task, uint64_t id);
void vmmc_exports_of_ended(const struct task *task);
void vmmc_exports_forget(void); /* as in a crash: no node is notified */
/* The line takes more: importers learn of the exports that are gone. */
void vmmc_exports_tell(void);

/* What node `from` says. */
void vmmc_export_asked(uint16_t from, const struct vmmc_message *asked);
void vmmc_export_left(uint16_t from, const struct vmmc_message *message);
/* A packet for it has been written into memory, and wants to be noticed. */
void vmmc_export_notified(uint32_t id, uint32_t generation);
