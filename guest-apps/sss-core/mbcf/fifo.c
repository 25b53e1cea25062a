/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rings in the memory of tasks: FIFOs, TASKQUEs, signal queues. The owner may write anything into
 * them at any time, so the kernel keeps address, size and head itself and reads `tail` only, which
 * counts when it is between the last one that was good and the head.
 */
#include "fifo.h"

#include "bytes.h"

enum {
    AT_HEAD = offsetof(struct mb_fifo, head),
    AT_TAIL = offsetof(struct mb_fifo, tail),
    AT_EVENTS = offsetof(struct mb_fifo, events),
    AT_REFUSED = offsetof(struct mb_fifo, refused),
    AT_STATE = offsetof(struct mb_record, state),
    UNIT = sizeof(struct mb_record),
};

/* The header of a ring is 64-byte aligned: never across pages. */
static uint8_t *fifo_header(const struct mbcf *mbcf, const struct mbcf_task *task,
                            const struct ring *ring, int *status)
{
    struct span span;

    *status = span_of(mbcf, task, ring->address, MB_FIFO_HEADER, true, &span);
    return span.part[0];
}

static void put_word(uint8_t *header, unsigned at, uint32_t value)
{
    __atomic_store_n((uint32_t *)(void *)(header + at), value, __ATOMIC_RELEASE);
}

static void add_word(uint8_t *header, unsigned at)
{
    __atomic_fetch_add((uint32_t *)(void *)(header + at), 1, __ATOMIC_RELEASE);
}

static void take_tail(struct ring *ring, const uint8_t *header)
{
    uint32_t tail = __atomic_load_n((const uint32_t *)(const void *)(header + AT_TAIL),
                                    __ATOMIC_ACQUIRE);

    if (ring->head - tail <= ring->head - ring->tail && tail % UNIT == 0)
        ring->tail = tail;
}

int mbcf_ring_init(struct mbcf *mbcf, struct mbcf_task *task, struct ring *ring, uint64_t address,
                   uint64_t bytes)
{
    struct ring fresh = {.address = address, .size = (uint32_t)(bytes - MB_FIFO_HEADER)};
    struct mb_fifo image = {.magic = MB_FIFO_MAGIC, .size = fresh.size};
    struct span span;

    if (bytes < MB_FIFO_HEADER + MB_FIFO_LEAST || bytes - MB_FIFO_HEADER > 0x40000000u ||
        (fresh.size & (fresh.size - 1)) != 0 || address == 0 || address % MB_FIFO_HEADER != 0)
        return -SSS_EINVAL;
    for (uint64_t at = 0; at < bytes; at += PAGE_BYTES)
        if (span_of(mbcf, task, address + at, 1, true, &span) != MB_OK)
            return -SSS_EFAULT;
    if (span_of(mbcf, task, address + bytes - 1, 1, true, &span) != MB_OK ||
        span_of(mbcf, task, address, sizeof(image), true, &span) != MB_OK)
        return -SSS_EFAULT;
    span_fill(&span, &image);
    *ring = fresh;
    return 0;
}

uint32_t mbcf_ring_used(const struct mbcf *mbcf, const struct mbcf_task *task,
                        const struct ring *ring)
{
    struct ring look = *ring;
    int status;
    const uint8_t *header = fifo_header(mbcf, task, ring, &status);

    if (header != NULL)
        take_tail(&look, header);
    return look.head - look.tail;
}

static uint32_t record_bytes(uint32_t length)
{
    return (UNIT + length + UNIT - 1) / UNIT * UNIT;
}

static uint64_t record_address(const struct ring *ring, uint32_t position)
{
    return ring->address + MB_FIFO_HEADER + (position & (ring->size - 1));
}

/* Where a record would go: behind a SKIP record of `skip` bytes, if that is not 0. */
struct reservation {
    uint8_t *header;
    uint8_t *skip_at;
    uint32_t skip;
    uint32_t position;
    uint32_t bytes;
};

/* Finds room for `length` bytes, touching nothing but the count of refused segments. */
static int reserve(struct mbcf *mbcf, struct mbcf_task *task, struct ring *ring, uint32_t length,
                   struct reservation *found)
{
    struct span span;
    uint32_t to_end = ring->size - (ring->head & (ring->size - 1));
    int status;

    found->header = fifo_header(mbcf, task, ring, &status);
    if (found->header == NULL)
        return status;
    found->bytes = record_bytes(length);
    /* More than a half might find no place even in an empty ring, depending on where it stands. */
    if (found->bytes > ring->size / 2)
        return MB_RANGE;
    found->skip = found->bytes > to_end ? to_end : 0;
    found->position = ring->head + found->skip;
    take_tail(ring, found->header);
    if (found->position + found->bytes - ring->tail > ring->size) {
        add_word(found->header, AT_REFUSED);
        return MB_FULL;
    }
    if (found->skip != 0) {
        status = span_of(mbcf, task, record_address(ring, ring->head), UNIT, true, &span);
        found->skip_at = span.part[0];
    }
    return status;
}

/* Writes the SKIP record, if there is one, and moves the head behind the new record, which is there
 * already. */
static void publish(struct ring *ring, const struct reservation *at)
{
    if (at->skip != 0) {
        struct mb_record skip = {.length = at->skip - UNIT, .kind = MB_SKIP, .state = MB_COMPLETE};

        memcpy(at->skip_at, &skip, sizeof(skip));
    }
    ring->head = at->position + at->bytes;
    put_word(at->header, AT_HEAD, ring->head);
}

static void tell_reader(struct mbcf *mbcf, const struct mbcf_task *task, uint8_t *header)
{
    add_word(header, AT_EVENTS);
    touch(mbcf, task);
}

int mbcf_ring_put(struct mbcf *mbcf, struct mbcf_task *task, struct ring *ring,
                  struct mb_record *record, const void *head, uint32_t head_length,
                  const void *data, uint32_t length)
{
    struct reservation at;
    struct span span;
    int status = reserve(mbcf, task, ring, head_length + length, &at);

    if (status == MB_OK)
        status = span_of(mbcf, task, record_address(ring, at.position), UNIT + head_length + length,
                         true, &span);
    if (status != MB_OK)
        return status;
    record->length = head_length + length;
    record->state = MB_COMPLETE;
    memcpy(span.part[0], record, UNIT); /* 16-aligned: never across pages */
    if (head_length != 0)
        span_fill_at(&span, UNIT, head, head_length);
    span_fill_at(&span, UNIT + head_length, data, length);
    publish(ring, &at);
    tell_reader(mbcf, task, at.header);
    return MB_OK;
}

/* Where a record of `length` bytes, its head included, goes without skipping and crossing no page;
 * NULL: there is no such place. */
static inline uint8_t *place_quick(struct mbcf *mbcf, const struct mbcf_task *task,
                                   struct ring *ring, uint32_t length, uint8_t **header)
{
    uint32_t bytes = record_bytes(length - UNIT);
    uint32_t at = ring->head & (ring->size - 1);
    uint8_t *to;

    if (bytes > ring->size / 2 || at + bytes > ring->size)
        return NULL;
    *header = bytes_in_page(mbcf, task, ring->address, MB_FIFO_HEADER, true);
    to = bytes_in_page(mbcf, task, ring->address + MB_FIFO_HEADER + at, length, true);
    if (*header == NULL || to == NULL)
        return NULL;
    take_tail(ring, *header);
    return ring->head + bytes - ring->tail <= ring->size ? to : NULL;
}

static inline void publish_quick(struct mbcf *mbcf, const struct mbcf_task *task, struct ring *ring,
                                 uint32_t length, uint8_t *header)
{
    ring->head += record_bytes(length - UNIT);
    put_word(header, AT_HEAD, ring->head);
    tell_reader(mbcf, task, header);
}

bool mbcf_ring_put_quick(struct mbcf *mbcf, const struct mbcf_task *task, struct ring *ring,
                         const struct mb_record *record, const uint8_t *data)
{
    uint32_t length = UNIT + record->length;
    uint8_t *header, *to = place_quick(mbcf, task, ring, length, &header);

    if (to == NULL)
        return false;
    memcpy(to, record, UNIT);
    copy(to + UNIT, data, record->length);
    publish_quick(mbcf, task, ring, length, header);
    return true;
}

bool mbcf_ring_put_signal(struct mbcf *mbcf, struct mbcf_task *task, const struct mb_record *record,
                          uint64_t handler, unsigned arguments, const uint8_t *payload)
{
    struct ring *ring = &task->signal_queue;
    uint32_t length = UNIT + record->length;
    uint8_t *header, *to = place_quick(mbcf, task, ring, length, &header);
    struct mb_signal_head *head;

    if (to == NULL)
        return false;
    memcpy(to, record, UNIT);
    head = (struct mb_signal_head *)(void *)(to + UNIT);
    *head = (struct mb_signal_head){.handler = handler};
    for (unsigned i = 0; i < arguments; i++)
        head->argument[i] = mbw_signal_argument(payload, i);
    copy(head + 1, payload + arguments * MBW_SIGNAL_ARGUMENT, record->length - sizeof(*head));
    publish_quick(mbcf, task, ring, length, header);
    return true;
}

/* ---- segments of several packets ---- */

static struct segment *segment_of(struct mbcf *mbcf, const struct packet *packet)
{
    for (unsigned i = 0; i < SEGMENTS; i++) {
        struct segment *segment = &mbcf->segments[i];

        if (segment->node == packet->node && segment->name == packet->op_id &&
            segment->source == packet->source && segment->task == packet->destination)
            return segment;
    }
    return NULL;
}

/* Completes or voids the record that was reserved. If its page has gone meanwhile there is
 * no task to notify. */
static int finish(struct mbcf *mbcf, struct mbcf_task *task, struct segment *segment,
                  enum mb_record_state state)
{
    struct ring *ring = &task->fifos[segment->fifo];
    struct span span;
    int status;
    uint8_t *header = fifo_header(mbcf, task, ring, &status);

    segment->node = 0;
    if (header == NULL)
        return status;
    status = span_of(mbcf, task, record_address(ring, segment->position), UNIT, true, &span);
    if (status != MB_OK)
        return status;
    __atomic_store_n(span.part[0] + AT_STATE, (uint8_t)state, __ATOMIC_RELEASE);
    tell_reader(mbcf, task, header);
    return MB_OK;
}

static int begin_segment(struct mbcf *mbcf, struct mbcf_task *task, unsigned fifo,
                         const struct packet *packet, uint32_t total, struct segment **made)
{
    struct ring *ring = &task->fifos[fifo];
    struct mb_record record = {.length = total,
                               .kind = MB_DATA,
                               .state = MB_RESERVED,
                               .node = packet->node,
                               .task = packet->source};
    struct segment *segment = NULL;
    struct reservation at;
    struct span span;
    int status;

    for (unsigned i = 0; i < SEGMENTS && segment == NULL; i++)
        if (mbcf->segments[i].node == 0)
            segment = &mbcf->segments[i];
    if (segment == NULL)
        return MB_FULL;
    if (total > MB_SEGMENT)
        return MB_RANGE;
    status = reserve(mbcf, task, ring, total, &at);
    if (status == MB_OK)
        status = span_of(mbcf, task, record_address(ring, at.position), UNIT, true, &span);
    if (status != MB_OK)
        return status;
    span_fill(&span, &record);
    publish(ring, &at);
    *segment = (struct segment){.node = packet->node,
                                .source = packet->source,
                                .task = task->id,
                                .fifo = (uint8_t)fifo,
                                .name = packet->op_id,
                                .position = at.position,
                                .total = total};
    *made = segment;
    return MB_OK;
}

int mbcf_ring_part(struct mbcf *mbcf, struct mbcf_task *task, unsigned fifo,
                   const struct packet *packet)
{
    uint32_t total = mbw_part_total(packet->payload);
    uint32_t offset = mbw_part_offset(packet->payload);
    uint32_t length = packet->length - MBW_PART_HEAD;
    struct segment *segment = segment_of(mbcf, packet);
    struct span span;
    int status;

    if (total == 0) {
        /* The sender gives it up. */
        if (segment != NULL)
            finish(mbcf, task, segment, MB_VOID);
        return MB_OK;
    }
    if (offset == 0 && segment == NULL) {
        status = begin_segment(mbcf, task, fifo, packet, total, &segment);
        if (status != MB_OK)
            return status;
    }
    /* Of a segment that was refused. Its sender knows; what is under way need not be refused part
     * by part. */
    if (segment == NULL)
        return packet->flags & MBW_MORE ? MB_OK : MB_BADOP;
    if (segment->fifo != fifo || segment->total != total || offset != segment->arrived ||
        length > total - offset ||
        (packet->flags & MBW_MORE ? offset + length == total : offset + length != total)) {
        finish(mbcf, task, segment, MB_VOID);
        return MB_BADOP;
    }
    status = span_of(mbcf, task,
                     record_address(&task->fifos[fifo], segment->position) + UNIT + offset, length,
                     true, &span);
    if (status != MB_OK) {
        finish(mbcf, task, segment, MB_VOID);
        return status;
    }
    span_fill(&span, packet->payload + MBW_PART_HEAD);
    segment->arrived += length;
    return packet->flags & MBW_MORE ? MB_OK : finish(mbcf, task, segment, MB_COMPLETE);
}

void mbcf_segments_void(struct mbcf *mbcf, uint16_t node, uint16_t source)
{
    for (unsigned i = 0; i < SEGMENTS; i++) {
        struct segment *segment = &mbcf->segments[i];

        if (segment->node == node && (source == 0 || segment->source == source))
            finish(mbcf, task_of(mbcf, segment->task), segment, MB_VOID);
    }
}

void mbcf_segments_forget(struct mbcf *mbcf, const struct mbcf_task *task, int fifo)
{
    for (unsigned i = 0; i < SEGMENTS; i++)
        if (mbcf->segments[i].task == task->id && (fifo < 0 || mbcf->segments[i].fifo == fifo))
            mbcf->segments[i].node = 0;
}
