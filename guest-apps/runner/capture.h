/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Captures what passes the loopback interface and writes it to the virtio-serial port
 * "sundial.loopback", if the machine has one; a machine without it captures nothing. What is
 * written is specified in harness/schemas/README.md ("nodes/NAME/loopback.bin"). 0, or -1 and
 * errno.
 */
int capture_start(void);

/* Waits until what has passed so far is written; returns at once where nothing is captured. */
void capture_settle(void);
