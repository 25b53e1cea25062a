/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What tasks of this node have imported from others. */
#include <stdint.h>

struct task;
struct vmmc_message;

void vmmc_imports_init(void);
/* System calls, with their arguments as they are. */
long vmmc_import_open(const uint64_t arguments[6]);
long vmmc_import_bind(const uint64_t arguments[6]);
long vmmc_import_source(const uint64_t arguments[6]);
long vmmc_import_close(struct task *task, uint64_t handle);
void vmmc_imports_of_ended(const struct task *task);
void vmmc_imports_forget(void); /* as in a crash: no node is notified */
/* The line takes more: exporters learn of the imports that are over. */
void vmmc_imports_settle(void);

/* What node `from` says; an export is gone also if the node refuses packets for it. */
void vmmc_import_answered(uint16_t from, const struct vmmc_message *answer);
void vmmc_import_gone(uint16_t from, uint32_t export_id, uint32_t generation);
