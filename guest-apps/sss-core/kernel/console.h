/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Hands each line that is typed to `taken`, in the interrupt, without its end. Output: kernel.h. */
void console_listen(void (*taken)(const char *line));
/* Prints the last bytes that were written. */
void console_replay(void (*print)(void *context, const char *text), void *context);
