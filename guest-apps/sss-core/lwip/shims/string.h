/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t length);
void *memmove(void *to, const void *from, size_t length);
void *memset(void *memory, int value, size_t length);
int memcmp(const void *a, const void *b, size_t length);
size_t strlen(const char *text);
int strncmp(const char *a, const char *b, size_t length);
