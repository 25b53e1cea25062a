/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state.h"

/* A request of a peer. false: there is no place for the result that it needs; nothing was done. */
bool mbcf_execute(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                  uint64_t now_ns);

/* WRITE, FIFO or SIGNAL of one packet whose frame is in its turn. false: nothing was done,
 * something is special about it. */
/* READ and atomic operations, their RESULT included: it carries the acknowledgement. */
bool mbcf_answer_quick(struct mbcf *mbcf, struct channel *channel, const uint8_t *header,
                       uint16_t length, uint64_t now_ns);
bool mbcf_execute_quick(struct mbcf *mbcf, const struct channel *channel, const uint8_t *header,
                        uint16_t length);
/* Of a request in its turn that is like the one before: for the task in mbcf->expected. */
bool mbcf_execute_expected(struct mbcf *mbcf, const struct channel *channel, const uint8_t *header,
                           uint16_t length);
