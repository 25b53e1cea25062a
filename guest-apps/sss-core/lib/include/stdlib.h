/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

enum { EXIT_SUCCESS = 0, EXIT_FAILURE = 1 };

void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *memory, size_t bytes);
void free(void *memory);
_Noreturn void exit(int status);
_Noreturn void abort(void);
long strtol(const char *text, char **end, int base);
unsigned long strtoul(const char *text, char **end, int base);
int atoi(const char *text);
void qsort(void *base, size_t count, size_t bytes, int (*compare)(const void *a, const void *b));
