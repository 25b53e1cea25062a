/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The living tasks. */
#include <stdint.h>

#include "sss/abi.h"

struct task;

extern struct task *tasks[SSS_TASKS]; /* NULL: a free place */

uint16_t task_id(const struct task *task);
const char *task_name(const struct task *task);
struct task *task_by_id(uint16_t id); /* or NULL */
/* 0: the current task; else one that it has created, or NULL. */
struct task *task_owned(uint16_t id);
/* For panic_who. */
void task_print_current(void);
