/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Named ports of a virtio serial device (virtio 1.1, 5.3, with MULTIPORT). */
#include <stdbool.h>
#include <stddef.h>

struct console_port;

void virtio_console_init(void);
/* The port of this name, or NULL. */
struct console_port *virtio_console_port(const char *name);
/*
 * Writes all of it, in order, and waits a limited time while the device accepts nothing. False if a
 * part could not be written; then the port is no longer used.
 */
bool virtio_console_write(struct console_port *port, const char *text, size_t length);
/* Input is passed to `received`, in the interrupt. */
void virtio_console_listen(struct console_port *port,
                           void (*received)(const char *text, size_t length));
/* Waits until the device has read everything, a limited time. */
void virtio_console_flush(struct console_port *port);
