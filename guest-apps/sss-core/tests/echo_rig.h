/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What rigs of Sun RPC within one process share: threads for the binder and the server, the
 * procedures of echo.x, and calls that check what comes back. */
#include <rpc/rpc.h>
#include <stdbool.h>

#include "echo.h"
#include "expect.h"

enum { RIG_PAYLOAD_MOST = 65536 };
#define SECOND 1000000000ull

/* What the server has done; it says no more of itself. */
extern struct rig {
    volatile uint64_t executed, one_way;
    volatile uint32_t slow_ns;     /* how long each execution takes */
    void (*volatile before)(void); /* each execution; NULL: nothing */
} rig;

/* A failure of the rig itself leaves nothing to test. */
void rig_must(bool condition, const char *what);

void rig_dispatch(struct svc_req *request, SVCXPRT *transport);

/* A thread, and waits until it says that it is ready. */
void rig_thread(void *(*run)(void *), const volatile uint32_t *ready);
/* The thread of the binder; `become` makes the calling thread the binder's task -> its id. */
void rig_binder(int (*become)(void));

void rig_end_client(CLIENT *client);
/* One call of `size` bytes: RPC_SUCCESS only if they have come back. */
enum clnt_stat rig_echo(CLIENT *client, uint32_t sequence, u_int size);
