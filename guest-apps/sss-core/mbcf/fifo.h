/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state.h"

/* All but init return enum mb_status. */
int mbcf_ring_init(struct mbcf *mbcf, struct mbcf_task *task, struct ring *ring, uint64_t address,
                   uint64_t bytes);
/* A whole record: `head`, then `data`. */
int mbcf_ring_put(struct mbcf *mbcf, struct mbcf_task *task, struct ring *ring,
                  struct mb_record *record, const void *head, uint32_t head_length,
                  const void *data, uint32_t length);
/* The same, complete, where it needs no skipping and crosses no page. false: nothing was done. */
bool mbcf_ring_put_quick(struct mbcf *mbcf, const struct mbcf_task *task, struct ring *ring,
                         const struct mb_record *record, const uint8_t *data);
/* The same for the signal queue, whose records have a head. */
bool mbcf_ring_put_signal(struct mbcf *mbcf, struct mbcf_task *task, const struct mb_record *record,
                          uint64_t handler, unsigned arguments, const uint8_t *payload);
int mbcf_ring_part(struct mbcf *mbcf, struct mbcf_task *task, unsigned fifo,
                   const struct packet *packet);
/* Voids what has come of segments: of one source task (0: any) of a node. */
void mbcf_segments_void(struct mbcf *mbcf, uint16_t node, uint16_t source);
void mbcf_segments_forget(struct mbcf *mbcf, const struct mbcf_task *task, int fifo);
uint32_t mbcf_ring_used(const struct mbcf *mbcf, const struct mbcf_task *task,
                        const struct ring *ring);
