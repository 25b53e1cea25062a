/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* From a call message to its reply: what a server task and a dummy task of type 3b have in common.
 */
#include <rpc/mbcf.h>

#include "mbcf_cache.h"
#include "mbcf_messages.h"

/* Where a call has come from, and where its reply goes. */
struct mbm_origin {
    struct mbm_caller caller; /* xid: filled in by mbm_service_call */
    int ltn;
    uint64_t replies;
    uint32_t reply_most;
};

struct mbm_service {
    SVCXPRT transport;
    struct svcmb_counters counters;
    struct mbm_cache *cache; /* NULL: replies are not kept */
    size_t message_most;
    char *reply; /* message_most bytes */

    /* of the call at hand */
    struct mbm_origin origin;
    char *message;
    uint32_t length;
    XDR arguments;
};

bool mbm_service_init(struct mbm_service *service, size_t message_most, const char *netid);
/* Executes the call in `message` and sends the reply. The message may be a record in a FIFO:
 * arguments are decoded in place. */
void mbm_service_call(struct mbm_service *service, const struct mbm_origin *origin, void *message,
                      uint32_t length);
