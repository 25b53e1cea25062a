/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Received frames: which are for this node, and for which protocol. */

/* The handler of an adapter's interrupt (net_init). */
void ethernet_received(void *adapter);
