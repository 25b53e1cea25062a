/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Static executables: ELF64, x86-64, each segment on separate pages, none of them writable and
 * executable. */
#include <stddef.h>
#include <stdint.h>

struct task;

/* Maps the segments -> the entry point, or 0 with *why. */
uint64_t elf_load(struct task *task, const void *file, size_t length, const char **why);
