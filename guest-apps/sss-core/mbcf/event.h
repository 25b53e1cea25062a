/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a channel reports to those above it: its only call upwards, which mbcf.c hands on. `name` is
 * that of a place, as in op_id, or 0 where the event is of all that was sent to the node.
 */
#include "state.h"

enum channel_event {
    CHANNEL_SENT,      /* a frame that may execute the operation goes out */
    CHANNEL_DONE,      /* acknowledged surely */
    CHANNEL_UNDECIDED, /* acknowledged by a frame that was UNSURE */
    CHANNEL_DECIDED,   /* all that was undecided has succeeded */
    CHANNEL_LOST,      /* given up, or what became of it is not known: `status` */
    CHANNEL_FAILED,    /* the node is dead or has restarted: `status` */
    CHANNEL_DOUBTED,   /* errors of what was sent may never come: `status` */
    CHANNEL_FREED,     /* places fell free */
};
void mbcf_channel_event(struct mbcf *mbcf, struct channel *channel, enum channel_event event,
                        uint32_t name, int status, uint64_t now_ns);
