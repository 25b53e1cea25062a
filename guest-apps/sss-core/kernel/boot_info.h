/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the PVH start info says. The first GiB of physical memory must be mapped at DIRECT_MAP. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void boot_info_init(uint64_t start_info_physical);
const char *boot_command_line(void);     /* for tests/boot_main.c */
const void *boot_initrd(size_t *length); /* NULL if there is none */
/* The index-th entry of the memory map; *ram: whether it is RAM. False past the last entry. */
bool boot_memory(uint32_t index, bool *ram, uint64_t *begin, uint64_t *end);
