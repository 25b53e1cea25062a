/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Static executables: ELF64, x86-64, each segment on separate pages, none of them writable and
 * executable. */
#include <stddef.h>
#include <stdint.h>

struct task;

/* Maps the segments -> 0 with *entry, or a negative error with *why: -SSS_ENOMEM, or -SSS_EINVAL if
 * the file is not such an executable. */
int elf_load(struct task *task, const void *file, size_t length, uint64_t *entry, const char **why);
