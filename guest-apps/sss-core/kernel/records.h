/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The record stream, one JSON value a line (harness/schemas/README.md, "Samples"), on the port
 * sundial.samples. */
#include <stddef.h>
#include <stdint.h>

void records_init(void);
void records_flush(void);
/* A line in printf's manner, without its newline; one that is too long is replaced by an error. */
void records_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Of a task: whole lines, as they are. */
void records_write(const char *text, size_t length);
/* {"type":"error","app":APP,"message":MESSAGE}, there and on the console. */
void records_error(const char *app, const char *message);
/* The same of a task that a fault has ended; the console has a line with more already. */
void records_task_fault(const char *task, unsigned id, const char *what, uint64_t rip);
