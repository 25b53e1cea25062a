/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Opens the virtio-serial port that has been given this name. There is no udev in the guest to make
 * /dev/virtio-ports, so this makes the link that applications know. -1 if there is no such port.
 */
int ports_open(const char *name, int flags);
