/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state.h"

/* As mbcf_operate; frames to the own node wait to be taken. */
int mbcf_operate_any(struct mbcf *mbcf, uint16_t task, struct mb_operation *request,
                     uint64_t *progress, uint64_t now_ns);
/*
 * What most operations are, on the shortest way: a WRITE, FIFO or SIGNAL of one packet, its data
 * and its ack each in a page, on an open connection whose channel can send at once. false: it is
 * not that, and nothing has been done.
 */
bool mbcf_operate_quick(struct mbcf *mbcf, uint16_t id, const struct mb_operation *request,
                        uint64_t now_ns);
/* Ends segments whose sender has ended before them, as far as there are places for that. */
void mbcf_operation_chores(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns);
