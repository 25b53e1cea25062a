/* SPDX-License-Identifier: Apache-2.0 */
#include "vrpc_line.h"

#include <string.h>

void vrpc_line_open(struct vrpc_line *line, const struct vrpc_carrier *carrier, uint8_t *in,
                    uint8_t *out, uint32_t deliberate_above)
{
    line->carrier = carrier;
    line->in = in;
    line->out = out;
    line->deliberate_above = deliberate_above;
    line->writer = (struct ring_writer){.size = VRPC_RING};
    line->reader = (struct ring_reader){.ring = in + RING_CONTROL, .size = VRPC_RING};
}

/* All that was stored before is stored before. */
static void store(uint8_t *at, uint64_t word)
{
    __atomic_store_n((uint64_t *)(void *)at, word, __ATOMIC_RELEASE);
}

static void store_and_push(struct vrpc_line *line, uint32_t at, uint64_t word)
{
    store(line->out + at, word);
    if (line->carrier->push != NULL)
        line->carrier->push(line, at, RING_WORD);
}

static uint64_t word_of(struct ring_record record)
{
    uint64_t word;

    memcpy(&word, &record, sizeof(word));
    return word;
}

uint8_t *vrpc_line_begin(struct vrpc_line *line, uint32_t length)
{
    uint32_t head = (uint32_t)__atomic_load_n((uint64_t *)(void *)(line->in + RING_HEAD),
                                              __ATOMIC_ACQUIRE);
    struct ring_place place = ring_make_place(&line->writer, head, length);
    uint8_t *record;

    if (place.skips)
        store_and_push(line, RING_CONTROL + place.skip_at, word_of(place.skip));
    if (!place.fits) {
        if (place.skips)
            store_and_push(line, RING_TAIL, ring_tail_word(line->writer.tail));
        return NULL;
    }
    line->at = RING_CONTROL + place.at;
    line->bytes = (uint32_t)sizeof(place.record) + length;
    record = line->out + line->at;
    line->by_source = false;
    if (length > line->deliberate_above && line->carrier->source != NULL) {
        uint8_t *source = line->carrier->source(line);

        line->by_source = source != NULL;
        record = source != NULL ? source : record;
    }
    store(record, word_of(place.record));
    return record + sizeof(place.record);
}

void vrpc_line_end(struct vrpc_line *line)
{
    if (line->by_source)
        line->carrier->deliberate(line, line->at, line->bytes);
    else if (line->carrier->push != NULL)
        line->carrier->push(line, line->at, line->bytes);
    store_and_push(line, RING_TAIL, ring_tail_word(line->writer.tail));
}

static void tell_head(struct vrpc_line *line)
{
    if (line->reader.tell)
        store_and_push(line, RING_HEAD, ring_head_word(ring_tell(&line->reader)));
}

enum ring_taken vrpc_line_take(struct vrpc_line *line, struct ring_message *message)
{
    enum ring_taken taken = ring_take(&line->reader, vrpc_line_tail(line), message);

    tell_head(line);
    return taken;
}

void vrpc_line_release(struct vrpc_line *line, const struct ring_message *message)
{
    ring_release(&line->reader, message);
    tell_head(line);
}
