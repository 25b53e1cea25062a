/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Output on the first serial port; its input is prompt.c's. */
#include <stddef.h>

void console_init(void);
void console_write(const char *text, size_t length);
/* For the user at the terminal: what is shown is not in the log. */
void console_show(const char *text, size_t length);
void kprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints the last bytes that were written. */
void console_replay(void (*print)(void *context, const char *text), void *context);
