/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A transmit buffer: filled by a protocol, read by the adapter in place. MBCF keeps sequenced
 * frames until they are acknowledged, so nothing is copied for retransmission. `bytes` is 8-byte
 * aligned at its byte 14 (behind the Ethernet header), and the adapter's own header has room in
 * front of it.
 */
struct sss_frame {
    struct sss_frame *next;
    uint16_t length; /* of the Ethernet frame, padding to 60 included */
    uint16_t users;  /* references: the protocol's and the adapter's; free at 0 */
    uint8_t *bytes;
};
enum { SSS_FRAME_BYTES = 1514, SSS_FRAMES = 512 };

/* A pool is a list of free frames. -> one with a single user, or NULL where none is left. */
static inline struct sss_frame *sss_frame_take(struct sss_frame **pool)
{
    struct sss_frame *frame = *pool;

    if (frame == NULL)
        return NULL;
    *pool = frame->next;
    frame->users = 1;
    return frame;
}

/* One user less -> whether it was the last, and the frame is free again. */
static inline bool sss_frame_release(struct sss_frame **pool, struct sss_frame *frame)
{
    if (--frame->users != 0)
        return false;
    frame->next = *pool;
    *pool = frame;
    return true;
}
