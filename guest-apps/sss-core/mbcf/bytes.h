/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fields of the wire, copies, and memory of tasks. All inline: they are most of what an operation
 * costs. */
#include <string.h>

#include "state.h"

enum { PAGE_BYTES = 4096 };

/* memcpy, without the call where one or two words are copied. */
static inline void copy(void *to, const void *from, size_t length)
{
    uint64_t first, last;

    if (length - 8 <= 8) {
        memcpy(&first, from, 8);
        memcpy(&last, (const uint8_t *)from + length - 8, 8);
        memcpy(to, &first, 8);
        memcpy((uint8_t *)to + length - 8, &last, 8);
    } else if (length == 4) {
        memcpy(to, from, 4);
    } else {
        memcpy(to, from, length);
    }
}

enum { HEAD_WORDS = 8 };

/* The headers of a frame, and zeros behind them as far as padding may reach: the caller writes the
 * payload over that. */
_Static_assert(HEAD_WORDS * 8 >= MBW_FRAME_LEAST, "padding");
static inline void put_head(uint8_t *to, const uint64_t head[HEAD_WORDS])
{
#pragma GCC unroll 8
    for (unsigned i = 0; i < HEAD_WORDS; i++)
        memcpy(to + (size_t)8 * i, &head[i], 8);
}

/* Up to a page of a task's memory: in two pieces where it crosses into the next page. */
struct span {
    uint8_t *part[2];
    size_t length[2];
};

/* All of it is looked at before anything is touched -> MB_OK, MB_FAULT or MB_READONLY. */
static inline int span_of(const struct mbcf *mbcf, const struct mbcf_task *task, uint64_t address,
                          size_t length, bool write, struct span *span)
{
    size_t here = PAGE_BYTES - (address & (PAGE_BYTES - 1));
    int why = MB_FAULT;

    span->length[0] = length;
    span->length[1] = 0;
    span->part[0] = span->part[1] = NULL;
    if (length == 0)
        return MB_OK;
    if (length > here) {
        if (address + length < address)
            return MB_FAULT;
        span->length[0] = here;
        span->length[1] = length - here;
        span->part[1] = surroundings_page(mbcf->context, task->space, address + here, write, &why);
        if (span->part[1] == NULL)
            return why;
    }
    span->part[0] = surroundings_page(mbcf->context, task->space, address, write, &why);
    return span->part[0] != NULL ? MB_OK : why;
}

/* The same if all is in one page; NULL: it does not, or is not there. */
static inline uint8_t *bytes_in_page(const struct mbcf *mbcf, const struct mbcf_task *task,
                                     uint64_t address, size_t length, bool write)
{
    int why;

    if ((address & (PAGE_BYTES - 1)) + length > PAGE_BYTES)
        return NULL;
    return surroundings_page(mbcf->context, task->space, address, write, &why);
}

/* Threads of the task shall look again, once what is being done has been done: mbcf_settle. */
static inline void touch(struct mbcf *mbcf, const struct mbcf_task *task)
{
    if (mbcf->touched != NULL && mbcf->touched != task->space)
        surroundings_changed(mbcf->context, mbcf->touched);
    mbcf->touched = task->space;
}

static inline void tell_touched(struct mbcf *mbcf)
{
    if (mbcf->touched == NULL)
        return;
    surroundings_changed(mbcf->context, mbcf->touched);
    mbcf->touched = NULL;
}

static inline void span_fill(const struct span *span, const void *from)
{
    if (span->length[0] != 0)
        copy(span->part[0], from, span->length[0]);
    if (span->length[1] != 0)
        memcpy(span->part[1], (const uint8_t *)from + span->length[0], span->length[1]);
}

/* A piece of a span. */
static inline void span_fill_at(const struct span *span, size_t at, const void *from, size_t length)
{
    size_t here;

    if (at + length <= span->length[0]) {
        copy(span->part[0] + at, from, length);
    } else if (at >= span->length[0]) {
        memcpy(span->part[1] + (at - span->length[0]), from, length);
    } else {
        here = span->length[0] - at;
        memcpy(span->part[0] + at, from, here);
        memcpy(span->part[1], (const uint8_t *)from + here, length - here);
    }
}

static inline void span_read(const struct span *span, void *to)
{
    if (span->length[0] != 0)
        copy(to, span->part[0], span->length[0]);
    if (span->length[1] != 0)
        memcpy((uint8_t *)to + span->length[0], span->part[1], span->length[1]);
}

static inline uint8_t *frame_header(struct sss_frame *frame)
{
    return frame->bytes + MBW_ETHERNET;
}

/* `flags`: those of its header. */
static inline uint8_t *frame_payload(struct sss_frame *frame, uint8_t flags)
{
    return frame_header(frame) + MBW_HEADER + mbw_definition_bytes(flags);
}

/* The length of a frame whose payload is there; a short one is padded. */
static inline void frame_end(struct sss_frame *frame, uint32_t behind_header)
{
    uint32_t end = MBW_ETHERNET + MBW_HEADER + behind_header;

    if (end < MBW_FRAME_LEAST)
        memset(frame->bytes + end, 0, MBW_FRAME_LEAST - end);
    frame->length = (uint16_t)mbw_frame_bytes(behind_header);
}

/* The channel that a frame of at least the header's bytes belongs to: by its addresses and its
 * EtherType. NULL: none. */
static inline struct channel *mbcf_channel_of(struct mbcf *mbcf, const uint8_t *frame)
{
    uint64_t first, last, wanted_first, wanted_last;
    unsigned node = mbcf->by_address[frame[MBW_SOURCE_MAC_AT + MBW_MAC - 1]];
    struct channel *channel;

    memcpy(&first, frame, 8);
    memcpy(&last, frame + MBW_ETHERNET - 8, 8);
    for (; node != 0; node = channel->alike) {
        channel = &mbcf->channels[node];
        memcpy(&wanted_first, channel->from, 8);
        memcpy(&wanted_last, channel->from + MBW_ETHERNET - 8, 8);
        if (first == wanted_first && last == wanted_last)
            return channel;
    }
    return NULL;
}

static inline void count_received(struct mbcf *mbcf, size_t length)
{
    mbcf->counters.frames_received++;
    mbcf->counters.bytes_received += length;
}
