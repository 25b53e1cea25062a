/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

/* vsnprintf and snprintf; the job's parser is compiled for the host as well, where those are the C
 * library's. */
int kvsnprintf(char *text, size_t size, const char *format, va_list arguments);
int ksnprintf(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
