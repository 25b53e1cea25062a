/* SPDX-License-Identifier: Apache-2.0 */
#include "ring.h"

#include <string.h>

/* Once: the other side may write at any time. */
static struct ring_record read_record(const struct ring_reader *ring)
{
    uint64_t word =
        *(const volatile uint64_t *)(const void *)(ring->ring + ring->head % ring->size);
    struct ring_record record;

    memcpy(&record, &word, sizeof(record));
    return record;
}

enum ring_taken ring_take(struct ring_reader *ring, uint32_t tail, struct ring_message *message)
{
    struct ring_record record;
    uint32_t left, filled;

    for (;;) {
        left = ring->size - ring->head % ring->size;
        filled = tail - ring->head;
        if (filled == 0)
            return RING_NOTHING;
        if (filled > ring->size || filled % RING_WORD != 0)
            return RING_BROKEN;
        record = read_record(ring);
        if (record.sequence != ring->sequence + 1)
            return RING_BROKEN;
        if (record.length != RING_SKIP)
            break;
        if (left > filled)
            return RING_BROKEN;
        ring->head += left;
        ring->tell = true;
    }
    if (record.length > ring_most(ring->size) || ring_bytes(record.length) > left ||
        ring_bytes(record.length) > filled)
        return RING_BROKEN;
    ring->sequence++;
    message->bytes = ring->ring + ring->head % ring->size + sizeof(record);
    message->length = record.length;
    return RING_MESSAGE;
}
