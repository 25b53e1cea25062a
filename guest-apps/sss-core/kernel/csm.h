/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * CSM: pages that tasks of one node share. The id belongs to the task that shares them and ends
 * with it; a page stays allocated while a task maps it.
 */
#include <stdint.h>

struct task;

int csm_share(struct task *task, uint64_t address, uint64_t bytes);
int csm_map(struct task *task, int id, uint64_t address, unsigned protection);
/* Nothing more can map what its owner has unmapped; existing mappings stay. */
void csm_unmapped(const struct task *task, uint64_t address, uint64_t bytes);
void csm_task_ended(struct task *task);
struct task *csm_tasks(void); /* the first of those with CSM; the others by next_sharing */
