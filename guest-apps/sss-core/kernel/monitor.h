/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The commands of the console, and of the port sundial.exec. -> 0, or 1 if the line was no valid
 * command. */
int monitor_line(const char *line, void (*print)(void *context, const char *text), void *context);
