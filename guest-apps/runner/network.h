/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "job.h"

/* Brings a device up as it is: enough to send one frame on, without an address. */
int network_bring_up(const char *device);

/*
 * Gives an interface its identity, in an order in which the kernel sends nothing of its own.
 * On failure -1 and a message naming the interface and the step.
 */
int network_configure(const struct interface *interface, char error[JOB_ERROR_LIMIT]);

/* A bridge "br0" over the ports, each with its netem discipline on the way out. */
int network_configure_bridge(const struct bridge_port *ports, size_t count,
                             char error[JOB_ERROR_LIMIT]);
