/* SPDX-License-Identifier: Apache-2.0 */

#include "pool.h"

void mbcf_slots_init(struct free_slots *free, uint16_t *slots, unsigned size)
{
    *free = (struct free_slots){.slots = slots, .size = size};
    for (unsigned i = 0; i < size; i++)
        mbcf_slot_give(free, (uint16_t)i);
}

struct sss_frame *mbcf_frame_get(struct mbcf *mbcf)
{
    struct sss_frame *frame = surroundings_frame_get(mbcf->context);

    if (frame == NULL)
        mbcf->scarce = true;
    return frame;
}

void mbcf_loop_put(struct mbcf *mbcf, struct sss_frame *frame)
{
    /* What finds no place is lost, as on a wire. */
    if (mbcf->loop_end - mbcf->loop_first < LOOP) {
        frame->users++;
        mbcf->loop[mbcf->loop_end++ % LOOP] = frame;
    }
}

struct sss_frame *mbcf_loop_take(struct mbcf *mbcf)
{
    return mbcf->loop_first != mbcf->loop_end ? mbcf->loop[mbcf->loop_first++ % LOOP] : NULL;
}

void mbcf_wake(struct mbcf *mbcf)
{
    mbcf->starved = false;
    surroundings_window_open(mbcf->context);
}
