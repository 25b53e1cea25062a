/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* RPC over MBCF in one process: a client's node, and a server's with its binder, over the wire of a
 * group. */
#include <rpc/async.h>
#include <rpc/mbcf.h>

#include "echo_rig.h"

/* What a client must not be able to change. */
extern uint64_t rig_precious;

/* The server's threads, and the calling thread as a task of the client's node. */
void rig_start(const struct svcmb_options *options);

CLIENT *rig_client(const struct clntmb_options *options);
/* The same, where it may fail. */
CLIENT *rig_try_client(const struct clntmb_options *options);
