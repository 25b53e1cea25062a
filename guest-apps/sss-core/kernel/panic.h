/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

struct trap_frame;
/* Prints the message, what panic_who's function says, registers and a backtrace with names, then
 * switches the machine off. */
_Noreturn void panic(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void panic_at(const struct trap_frame *frame, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* `print` says on whose behalf the kernel was running. */
void panic_who(void (*print)(void));
