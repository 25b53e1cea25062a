/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The wire of nodes in one process: first in, first out, and nothing is lost but what finds no
 * room, unless faults are asked for. A frame that is reordered is held back until one more has been
 * sent.
 */
#include <string.h>

#include "node_state.h"

enum { WIRE_FRAMES = 1024, PER_MILLE = 1000 };

static struct {
    uint16_t length;
    uint8_t bytes[SSS_FRAME_BYTES];
} frames[WIRE_FRAMES];
static unsigned first, end;

static struct node_faults faults;
static uint64_t draws;
static struct {
    uint16_t length; /* 0: none */
    uint8_t bytes[SSS_FRAME_BYTES];
} held;

void node_wire_faults(const struct node_faults *new_faults)
{
    faults = new_faults != NULL ? *new_faults : (struct node_faults){0};
    draws = faults.seed;
}

/* SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, figure 17). */
static bool happens(unsigned per_mille)
{
    uint64_t z;

    if (per_mille == 0)
        return false;
    z = draws += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % PER_MILLE < per_mille;
}

static void put(const uint8_t *bytes, uint16_t length)
{
    if (end - first == WIRE_FRAMES)
        return;
    frames[end % WIRE_FRAMES].length = length;
    memcpy(frames[end++ % WIRE_FRAMES].bytes, bytes, length);
}

void node_wire_send(const struct sss_frame *frame)
{
    if (happens(faults.lost))
        return;
    if (held.length == 0 && happens(faults.reordered)) {
        held.length = frame->length;
        memcpy(held.bytes, frame->bytes, frame->length);
        return;
    }
    put(frame->bytes, frame->length);
    if (happens(faults.duplicated))
        put(frame->bytes, frame->length);
    if (held.length != 0)
        put(held.bytes, held.length);
    held.length = 0;
}

bool node_wire_receive(uint8_t *frame, size_t *length)
{
    if (first == end)
        return false;
    *length = frames[first % WIRE_FRAMES].length;
    memcpy(frame, frames[first++ % WIRE_FRAMES].bytes, *length);
    return true;
}
