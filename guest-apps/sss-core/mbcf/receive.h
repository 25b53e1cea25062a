/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state.h"

/*
 * -> whether the frame is to be executed now: then one of the next two is called, before anything
 * else. *before: what the second one is given.
 */
bool mbcf_channel_receive(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                          uint32_t *before, uint64_t now_ns);
void mbcf_channel_executed(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                           uint64_t now_ns);
/* There was no place for its result: as if it had not come. */
void mbcf_channel_not_executed(struct mbcf *mbcf, struct channel *channel, uint32_t before,
                               uint64_t now_ns);

/* The same for what nearly all frames are, on the shortest way. */
enum turn {
    TURN_SPECIAL,    /* the long way is open */
    TURN_TO_EXECUTE, /* by mbcf_execute_quick, then mbcf_channel_executed_quick; else as above */
    TURN_TO_ANSWER,  /* by mbcf_answer_quick, then mbcf_channel_answered_quick; else as above */
    /* a RESULT: by mbcf_operation_result_quick, then mbcf_channel_executed_quick and mbcf_acks_note
     */
    TURN_TO_END,
    TURN_OVER, /* an ACK, which has been taken */
    /* an ACK for the only frame under way, which completes an operation: mbcf_acks_take_quick */
    TURN_TO_COMPLETE,
};
enum turn mbcf_channel_receive_quick(struct mbcf *mbcf, const uint8_t *frame, size_t length,
                                     struct channel **from, uint64_t now_ns);
void mbcf_channel_executed_quick(struct mbcf *mbcf, struct channel *channel, const uint8_t *frame,
                                 size_t length, uint64_t now_ns);

void mbcf_channel_answered_quick(struct mbcf *mbcf, struct channel *channel, size_t length);

uint64_t mbcf_channel_due(const struct mbcf *mbcf, const struct channel *channel);
void mbcf_channel_timeout(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns);
