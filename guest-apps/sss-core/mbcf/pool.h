/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The ground: free slots, frame buffers, frames to the own node, and when something is due. */
#include "state.h"

void mbcf_slots_init(struct free_slots *free, uint16_t *slots, unsigned size);

static inline uint16_t mbcf_slot_take(struct free_slots *free) /* there must be one */
{
    free->count--;
    return free->slots[free->first++ & (free->size - 1)];
}

static inline void mbcf_slot_give(struct free_slots *free, uint16_t slot)
{
    free->slots[(free->first + free->count++) & (free->size - 1)] = slot;
}

struct sss_frame *mbcf_frame_get(struct mbcf *mbcf);
static inline void mbcf_frame_put(struct mbcf *mbcf, struct sss_frame *frame)
{
    surroundings_frame_put(mbcf->context, frame);
}

/* A frame to the own node, and the oldest of them, or NULL. */
void mbcf_loop_put(struct mbcf *mbcf, struct sss_frame *frame);
struct sss_frame *mbcf_loop_take(struct mbcf *mbcf);

/* Callers that got -SSS_EAGAIN may try again. */
void mbcf_wake(struct mbcf *mbcf);

static inline void due_by(struct mbcf *mbcf, uint64_t at_ns)
{
    if (at_ns < mbcf->due_ns)
        mbcf->due_ns = at_ns;
}
