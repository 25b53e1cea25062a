/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "job/job.h"

/*
 * Brings all Ethernet devices up as they are, without addresses: enough to send one frame on. Waits
 * until the kernel has noticed that they are up, which it does up to a second later, so that a
 * bridge over them forwards from its first moment.
 */
int network_bring_up(void);

/*
 * Gives an interface its identity, in an order in which the kernel sends nothing of its own.
 * On failure -1 and a message naming the interface and the step.
 */
int network_configure(const struct job_interface *interface, char error[JOB_ERROR]);

/* Routes to networks, and whether packets of others are forwarded. On failure -1 and a message. */
int network_configure_routes(const struct job *job, char error[JOB_ERROR]);

/* A bridge "br0" over the ports, each with its netem discipline on the way out. */
int network_configure_bridge(const struct job_bridge_port *ports, size_t count,
                             char error[JOB_ERROR]);
