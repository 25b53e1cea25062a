/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of tasks, as system calls and remote operations reach it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct task;

/* The current task's; false if part of it is not mapped, or is read-only. */
bool user_read(void *to, uint64_t from, size_t length);
bool user_write(uint64_t to, const void *from, size_t length);
long user_string(char *to, size_t size, uint64_t from); /* -> length without NUL, or -1 */
/* The byte of `task` at `address`, valid to the end of its page; NULL with *why = MB_FAULT or
 * MB_READONLY. */
void *task_page(struct task *task, uint64_t address, bool write, int *why);
/* Before pages of the range are unmapped or protected. */
void task_drop_translations(struct task *task, uint64_t address, uint64_t bytes);
