/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The options "wait" and "deliberate_above", which clients and servers of vRPC have. */
#include <rpc/vrpc.h>

void vrpc_options_read(enum vrpc_wait *wait, uint32_t *deliberate_above);
