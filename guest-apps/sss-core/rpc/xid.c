/* SPDX-License-Identifier: Apache-2.0 */
#include <rpc/async.h>
#include <sss/system.h>

#define STRIDE                                                                                     \
    0x9e3779b9u /* 2^32 by the golden ratio: multiples of it keep away from each other             \
                 */

/*
 * Another start for each task and each time, and of a task for each handle, far from the others: a
 * server's reply cache must not take a call for an older one of another with the same address.
 */
uint32_t rpc_next_xid(void)
{
    static uint32_t next;

    if (next == 0) {
        uint64_t mixed = (sss_now_ns() << 16 ^ (uint64_t)SSS_INFO->node << 48 ^ SSS_INFO->task) *
                         0x9e3779b97f4a7c15u;

        next = (uint32_t)(mixed >> 32) | 1;
    }
    return next += STRIDE;
}
