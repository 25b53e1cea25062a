/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The information page of each task (struct sss_info). */
#include <stdint.h>

struct task;

int task_info_map(struct task *task); /* -> 0 or a negative error */
/* What the information pages of all tasks say, the living ones included. */
void task_identity(uint16_t node, uint32_t address, const char *machine);
void task_clock(uint32_t clock); /* SSS_CLOCK_TSC or _CALL: how tasks read the time */
/* Counts a change of any task's state in all information pages. */
void tasks_changed(void);
/* Counts a failed remote operation in the task's. */
void task_operation_failed(struct task *task);
