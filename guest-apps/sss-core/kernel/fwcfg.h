/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* QEMU's configuration device (qemu docs/specs/fw_cfg), by its DMA interface: a byte at a time
 * would cost an exit each. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fwcfg_file {
    uint16_t key;
    uint32_t size;
};

bool fwcfg_find(const char *name, struct fwcfg_file *file);
/* Reads from the file's beginning; `to` is in the direct map or the kernel image. */
bool fwcfg_read(const struct fwcfg_file *file, void *to, size_t length);
