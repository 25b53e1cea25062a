/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The pages that a dispatcher and a dummy task of type 3b share (CSM). The dispatcher writes an
 * order and what belongs to it, then counts `order` up; the dummy does it, then sets `done` to the
 * same number. Each sleeps on the other's word.
 */
#include <rpc/mbcf.h>

#include "mbcf_messages.h"

enum mbm_order { MBM_RELEASE = 1, MBM_ASSIGN = 2, MBM_END = 3 };

struct mbm_share {
    /* the dispatcher's */
    volatile uint32_t order; /* counts */
    uint32_t what;           /* enum mbm_order */
    uint16_t dispatcher;     /* its task */
    uint16_t client_node, client_task, reserved;
    uint64_t client_key;
    uint64_t client_replies;
    uint32_t reply_most, request_most, depth;
    uint32_t semantics, cache;
    uint32_t message_most;
    uint64_t key; /* that the client is given */
    /* the dummy's */
    volatile uint32_t done;
    int32_t status; /* of the order: 0, or a negative error */
    struct mbm_bound bound;
    struct svcmb_counters counters;
    volatile uint64_t words[SVCMB_DUMMY_WORDS];
};
enum { MBM_SHARE_BYTES = 4096 };
_Static_assert(sizeof(struct mbm_share) <= MBM_SHARE_BYTES, "one page");
