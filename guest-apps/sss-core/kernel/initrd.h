/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The archive of programs. Names are without folder. */
#include <stddef.h>

const void *initrd_find(const char *name, size_t *length); /* or NULL */
const char *initrd_at(unsigned index);                     /* NULL past the last */
