/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The record stream, one JSON value a line (ARCHITECTURE.md, "Samples"), on the port
 * sundial.samples. */
void records_init(void);
void records_flush(void);
/* A line in printf's manner, without its end; too long a one is refused with a line that says so.
 */
void records_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* {"type":"error","app":APP,"message":MESSAGE}, there and on the console. */
void records_error(const char *app, const char *message);
