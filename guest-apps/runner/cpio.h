/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Unpacks a "newc" cpio archive (the kernel's buffer-format.rst) below the folder that `folder` is
 * open on: folders, regular files and symbolic links. What is there already stays: it was laid into
 * the root for this machine. 0, or -1 when the archive is damaged or a file cannot be written; what
 * was unpacked before stays. Whole pages of the archive are given back to the system as soon as
 * they are unpacked: a small machine has no room for it and its files.
 */
int cpio_unpack(uint8_t *archive, size_t length, int folder);
