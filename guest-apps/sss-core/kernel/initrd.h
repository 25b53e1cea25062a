/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The archives of programs. Names are without folder. */
#include <stddef.h>

void initrd_init(void);                                    /* after boot_info_init */
const void *initrd_find(const char *name, size_t *length); /* or NULL */
const char *initrd_at(unsigned index);                     /* NULL past the last */
