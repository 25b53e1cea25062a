/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state.h"

void mbcf_epoch_take_syn(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                         uint64_t now_ns);
void mbcf_epoch_take_synack(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                            uint64_t now_ns);
void mbcf_epoch_take_opened(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                            uint64_t now_ns);
void mbcf_epoch_take_reset(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                           uint64_t now_ns);
/* Whether a frame belongs to this incarnation of both nodes. */
bool mbcf_epoch_is_current(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                           uint64_t now_ns);
/* The node does not answer. */
void mbcf_epoch_die(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns);
