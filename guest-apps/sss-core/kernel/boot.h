/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the PVH start info said. */
#include <stddef.h>

const char *boot_command_line(void);
const void *boot_initrd(size_t *length); /* NULL where there is none */

/* Beyond kernel.h's page_alloc: for tasks, so that some pages stay the kernel's own; and pages of
 * several users. */
void *page_alloc_user(void);
void page_share(void *page); /* one more page_free is needed */
