/* SPDX-License-Identifier: Apache-2.0 */

/* The wire of nodes in one process: first in, first out, nothing is lost but what finds no room. */
#include <string.h>

#include "state.h"

enum { WIRE_FRAMES = 1024 };

static struct {
    uint16_t length;
    uint8_t bytes[SSS_FRAME_BYTES];
} frames[WIRE_FRAMES];
static unsigned first, end;

void node_wire_send(const struct sss_frame *frame)
{
    if (end - first == WIRE_FRAMES)
        return;
    frames[end % WIRE_FRAMES].length = frame->length;
    memcpy(frames[end++ % WIRE_FRAMES].bytes, frame->bytes, frame->length);
}

bool node_wire_receive(uint8_t *frame, size_t *length)
{
    if (first == end)
        return false;
    *length = frames[first % WIRE_FRAMES].length;
    memcpy(frame, frames[first++ % WIRE_FRAMES].bytes, *length);
    return true;
}
