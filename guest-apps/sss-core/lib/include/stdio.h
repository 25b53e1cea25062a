/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Printing only: to the console, line by line. Conversions are d i u x X p s c %; there is no
 * floating point. */
#include <stdarg.h>
#include <stddef.h>

typedef struct sss_stream FILE;
extern FILE *const stdout, *const stderr; /* the same */

int vsnprintf(char *text, size_t size, const char *format, va_list arguments);
int snprintf(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fprintf(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
int vprintf(const char *format, va_list arguments);
int puts(const char *text);
int putchar(int character);
int fputc(int character, FILE *stream);
int fputs(const char *text, FILE *stream);
size_t fwrite(const void *data, size_t bytes, size_t count, FILE *stream);
int fflush(FILE *stream);
