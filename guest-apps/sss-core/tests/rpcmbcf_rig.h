/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* RPC over MBCF in one process: a client's node, and a server's with its binder, over the wire of a
 * group. */
#include <rpc/async.h>
#include <rpc/mbcf.h>

#include "echo.h"
#include "expect.h"

enum { RIG_PAYLOAD_MOST = 65536 };
#define SECOND 1000000000ull

/* What the server has done; it says no more of itself. */
extern struct rig {
    volatile uint64_t executed, one_way;
    volatile uint32_t slow_ns; /* how long each execution takes */
    uint64_t precious;         /* what a client must not be able to change */
} rig;

/* The server's threads, and the calling thread as a task of the client's node. */
void rig_start(const struct svcmb_options *options);

CLIENT *rig_client(const struct clntmb_options *options);
/* The same, where it may fail. */
CLIENT *rig_try_client(const struct clntmb_options *options);
void rig_end_client(CLIENT *client);

/* One call of `size` bytes: RPC_SUCCESS only if they have come back. */
enum clnt_stat rig_echo(CLIENT *client, uint32_t sequence, u_int size);
