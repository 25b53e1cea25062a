/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* Kernel objects of at most a page; 16-byte aligned, not zeroed. */
void *kmalloc(size_t bytes);
void kfree(void *object);
