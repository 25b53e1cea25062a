/* SPDX-License-Identifier: Apache-2.0 */
#include "mbcf_rig.h"

/* ---- chance: splitmix64 ---- */

uint64_t rig_random(struct rig *rig)
{
    uint64_t z = rig->random += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

bool rig_chance(struct rig *rig, unsigned of_1000)
{
    return of_1000 != 0 && rig_random(rig) % 1000 < of_1000;
}

/* ---- wire ---- */

FILE *rig_capture(const char *path)
{
    static const uint32_t header[6] = {0xa1b23c4d, 4u << 16 | 2, 0, 0, 65535, 1};
    FILE *file = fopen(path, "wb");

    if (file != NULL)
        fwrite(header, sizeof(header), 1, file);
    return file;
}

static void record(struct rig *rig, const uint8_t *frame, size_t length)
{
    uint32_t header[4] = {(uint32_t)(946684800 + rig->now_ns / 1000000000),
                          (uint32_t)(rig->now_ns % 1000000000), (uint32_t)length, (uint32_t)length};

    if (rig->capture == NULL)
        return;
    fwrite(header, sizeof(header), 1, rig->capture);
    fwrite(frame, length, 1, rig->capture);
}

static void deliver_later(struct rig *rig, uint16_t to, const uint8_t *frame, size_t length)
{
    uint64_t delay_ns = RIG_DELAY_NS;

    if (rig->pending == RIG_EVENTS)
        abort();
    if (rig_chance(rig, rig->reordering))
        delay_ns += rig_random(rig) % (6 * RIG_DELAY_NS);
    rig->events[rig->pending] = (struct rig_event){rig->now_ns + delay_ns, rig->order++, to,
                                                   (uint16_t)length, malloc(length)};
    memcpy(rig->events[rig->pending++].bytes, frame, length);
}

bool surroundings_transmit(void *context, struct sss_frame *frame)
{
    struct rig_node *node = context;
    struct rig *rig = node->rig;

    if (node->refuses)
        return false;
    rig->sent++;
    if (node->mute)
        return true;
    record(rig, frame->bytes, frame->length);
    if (rig->tap != NULL && !rig->tap(rig, node->id, frame->bytes, frame->length))
        return true;
    for (uint16_t to = 1; to <= rig->count; to++) {
        if (memcmp(rig->nodes[to].mac, frame->bytes, 6) != 0 || rig_chance(rig, rig->loss))
            continue;
        deliver_later(rig, to, frame->bytes, frame->length);
        if (rig_chance(rig, rig->duplication))
            deliver_later(rig, to, frame->bytes, frame->length);
    }
    return true;
}

void rig_inject(struct rig *rig, unsigned node, const uint8_t *frame, size_t length)
{
    /* A copy of just this size: reading beyond it is seen. */
    uint8_t *bytes = malloc(length != 0 ? length : 1);

    memcpy(bytes, frame, length);
    mbcf_receive(rig->nodes[node].mbcf, rig->now_ns, bytes, length);
    free(bytes);
}

/* ---- surroundings ---- */

struct sss_frame *surroundings_frame_get(void *context)
{
    struct rig_node *node = context;
    struct sss_frame *frame = node->frames_out < node->frame_limit ? sss_frame_take(&node->free)
                                                                   : NULL;

    if (frame == NULL)
        return NULL;
    node->frames_out++;
    frame->next = NULL;
    return frame;
}

void surroundings_frame_put(void *context, struct sss_frame *frame)
{
    struct rig_node *node = context;

    if (frame->users == 0)
        abort();
    if (sss_frame_release(&node->free, frame))
        node->frames_out--;
}

void *surroundings_page(void *context, void *space_of_task, uint64_t address, bool write, int *why)
{
    const struct rig_space *space = space_of_task;
    uint64_t index = (address - RIG_BASE) / 4096;

    (void)context;
    *why = MB_FAULT;
    if (address < RIG_BASE || index >= RIG_PAGES || space->protection[index] == 0)
        return NULL;
    if (write && !(space->protection[index] & SSS_WRITE)) {
        *why = MB_READONLY;
        return NULL;
    }
    return space->pages[index] + address % 4096;
}

void surroundings_changed(void *context, void *space)
{
    (void)context;
    ((struct rig_space *)space)->changed++;
}

void surroundings_signalled(void *context, void *space_of_task, uint64_t handler)
{
    struct rig_space *space = space_of_task;

    (void)context;
    space->signalled[space->signals++ % RIG_SIGNALS] = handler;
}

void surroundings_window_open(void *context)
{
    ((struct rig_node *)context)->window_opens++;
}

void surroundings_failed(void *context, void *space)
{
    (void)context;
    ((struct rig_space *)space)->failed++;
}

/* ---- nodes ---- */

static void start_node(struct rig *rig, unsigned index, const struct mbcf_config *wanted,
                       uint32_t epoch)
{
    struct rig_node *node = &rig->nodes[index];
    struct mbcf_config config = wanted != NULL ? *wanted : (struct mbcf_config){0};

    config.node = node->id;
    config.epoch = epoch;
    memcpy(config.mac, node->mac, 6);
    mbcf_init(node->mbcf, &config, node);
    for (uint16_t other = 1; other <= rig->count; other++)
        if (other != node->id)
            mbcf_add_node(node->mbcf, other, rig->nodes[other].mac);
}

static void fill_pool(struct rig_node *node)
{
    node->free = NULL;
    node->frames_out = 0;
    for (unsigned i = 0; i < RIG_FRAMES; i++) {
        node->frames[i].next = node->free;
        node->free = &node->frames[i];
    }
}

struct rig *rig_new(unsigned count, uint64_t seed, const struct mbcf_config *config)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    rig->count = count;
    rig->random = seed;
    rig->now_ns = 1000000;
    if (config != NULL)
        rig->config = *config;
    for (unsigned i = 1; i <= count; i++) {
        struct rig_node *node = &rig->nodes[i];

        node->rig = rig;
        node->id = (uint16_t)i;
        node->frame_limit = RIG_FRAMES;
        memcpy(node->mac, (const uint8_t[6]){2, 0x53, 0x44, 0, 0, (uint8_t)i}, 6);
        node->mbcf = malloc(mbcf_size());
        /* Byte 14 is 8-byte aligned, and nothing is behind the last byte. */
        for (unsigned f = 0; f < RIG_FRAMES; f++)
            node->frames[f].bytes = (uint8_t *)malloc(2 + SSS_FRAME_BYTES) + 2;
        fill_pool(node);
    }
    for (unsigned i = 1; i <= count; i++)
        start_node(rig, i, config, 0x1000 * i + 7);
    return rig;
}

void rig_restart(struct rig *rig, unsigned index, uint32_t epoch)
{
    struct rig_node *node = &rig->nodes[index];

    fill_pool(node);
    for (unsigned s = 0; s < RIG_SPACES; s++)
        memset(node->spaces[s].protection, 0, RIG_PAGES);
    start_node(rig, index, &rig->config, epoch);
}

static bool pools_whole(struct rig *rig)
{
    bool whole = true;

    for (unsigned i = 1; i <= rig->count; i++) {
        struct mbcf_channel_info info;
        unsigned in_flight = 0;

        for (unsigned c = 0; mbcf_channel_at(rig->nodes[i].mbcf, c, &info); c++)
            in_flight += info.in_flight;
        if (rig->nodes[i].frames_out != in_flight) {
            printf("node %u has %u buffers for %u frames\n", i, rig->nodes[i].frames_out,
                   in_flight);
            whole = false;
        }
    }
    return whole;
}

bool rig_free(struct rig *rig)
{
    bool whole = pools_whole(rig);

    for (unsigned i = 1; i <= rig->count; i++) {
        struct rig_node *node = &rig->nodes[i];

        free(node->mbcf);
        for (unsigned f = 0; f < RIG_FRAMES; f++)
            free(node->frames[f].bytes - 2);
        for (unsigned s = 0; s < RIG_SPACES; s++)
            for (unsigned p = 0; p < RIG_PAGES; p++)
                free(node->spaces[s].pages[p]);
    }
    for (unsigned i = 0; i < rig->pending; i++)
        free(rig->events[i].bytes);
    if (rig->capture != NULL)
        fclose(rig->capture);
    free(rig);
    return whole;
}

/* ---- tasks ---- */

void rig_map(struct rig *rig, unsigned node, unsigned space, unsigned index, unsigned protection)
{
    struct rig_space *of = &rig->nodes[node].spaces[space];

    if (of->pages[index] == NULL)
        of->pages[index] = calloc(1, 4096);
    of->protection[index] = (uint8_t)protection;
}

uint16_t rig_task(struct rig *rig, unsigned node, unsigned space, unsigned pages)
{
    for (unsigned i = 0; i < pages; i++)
        rig_map(rig, node, space, i, SSS_READ | SSS_WRITE);
    return (uint16_t)mbcf_task_open(rig->nodes[node].mbcf, &rig->nodes[node].spaces[space]);
}

void *rig_at(struct rig *rig, unsigned node, unsigned space, uint64_t address)
{
    uint64_t index = (address - RIG_BASE) / 4096;
    struct rig_space *of = &rig->nodes[node].spaces[space];

    return index < RIG_PAGES && of->pages[index] != NULL ? of->pages[index] + address % 4096 : NULL;
}

void rig_write(struct rig *rig, unsigned node, unsigned space, uint64_t address, const void *from,
               size_t length)
{
    for (size_t i = 0; i < length; i++)
        *(uint8_t *)rig_at(rig, node, space, address + i) = ((const uint8_t *)from)[i];
}

void rig_read(struct rig *rig, unsigned node, unsigned space, uint64_t address, void *to,
              size_t length)
{
    for (size_t i = 0; i < length; i++)
        ((uint8_t *)to)[i] = *(uint8_t *)rig_at(rig, node, space, address + i);
}

uint32_t rig_word(struct rig *rig, unsigned node, unsigned space, uint64_t address)
{
    uint32_t word;

    rig_read(rig, node, space, address, &word, sizeof(word));
    return word;
}

/* ---- time ---- */

static unsigned earliest_event(const struct rig *rig)
{
    unsigned best = 0;

    for (unsigned i = 1; i < rig->pending; i++)
        if (rig->events[i].at_ns < rig->events[best].at_ns ||
            (rig->events[i].at_ns == rig->events[best].at_ns &&
             rig->events[i].order < rig->events[best].order))
            best = i;
    return best;
}

bool rig_step(struct rig *rig, uint64_t until_ns)
{
    uint64_t at_ns = UINT64_MAX;
    unsigned timer = 0, event;
    struct rig_event taken;

    for (unsigned i = 1; i <= rig->count; i++)
        if (mbcf_next_timeout(rig->nodes[i].mbcf) < at_ns) {
            at_ns = mbcf_next_timeout(rig->nodes[i].mbcf);
            timer = i;
        }
    event = earliest_event(rig);
    if (rig->pending != 0 && rig->events[event].at_ns <= at_ns) {
        if (rig->events[event].at_ns > until_ns)
            return false;
        taken = rig->events[event];
        rig->events[event] = rig->events[--rig->pending];
        rig->now_ns = taken.at_ns > rig->now_ns ? taken.at_ns : rig->now_ns;
        if (!rig->nodes[taken.to].deaf)
            mbcf_receive(rig->nodes[taken.to].mbcf, rig->now_ns, taken.bytes, taken.length);
        free(taken.bytes);
        return true;
    }
    if (timer == 0 || at_ns > until_ns)
        return false;
    rig->now_ns = at_ns > rig->now_ns ? at_ns : rig->now_ns;
    mbcf_timeout(rig->nodes[timer].mbcf, rig->now_ns);
    return true;
}

void rig_run(struct rig *rig, uint64_t for_ns)
{
    uint64_t until_ns = rig->now_ns + for_ns;

    while (rig_step(rig, until_ns))
        ;
    rig->now_ns = until_ns;
}

/* ---- operations ---- */

int rig_operate(struct rig *rig, unsigned node, uint16_t task, struct mb_operation *operation)
{
    uint64_t progress = 0;
    int result;

    while ((result = mbcf_operate(rig->nodes[node].mbcf, task, operation, &progress,
                                  rig->now_ns)) == -SSS_EAGAIN)
        if (!rig_step(rig, UINT64_MAX))
            return -SSS_EAGAIN;
    return result;
}

int rig_ack(struct rig *rig, unsigned node, unsigned space, uint64_t address, uint64_t for_ns)
{
    uint64_t until_ns = rig->now_ns + for_ns;

    while (rig_word(rig, node, space, address) != MB_ACK_DONE)
        if (!rig_step(rig, until_ns))
            return -1;
    return (int)rig_word(rig, node, space, address + offsetof(struct mb_ack, status));
}

uint64_t rig_ack_value(struct rig *rig, unsigned node, unsigned space, uint64_t address)
{
    uint64_t value;

    rig_read(rig, node, space, address + offsetof(struct mb_ack, value), &value, sizeof(value));
    return value;
}

int rig_take(struct rig *rig, unsigned node, unsigned space, uint64_t fifo, struct mb_record *taken,
             void *data, size_t size)
{
    for (;;) {
        struct mb_fifo header;
        uint64_t at;
        uint32_t tail;

        rig_read(rig, node, space, fifo, &header, sizeof(header));
        if (header.head == header.tail)
            return -1;
        at = fifo + MB_FIFO_HEADER + (header.tail & (header.size - 1));
        rig_read(rig, node, space, at, taken, sizeof(*taken));
        if (taken->state == MB_RESERVED)
            return -1;
        tail = header.tail + (uint32_t)((sizeof(*taken) + taken->length + 15) / 16 * 16);
        if (taken->kind == MB_DATA && taken->state == MB_COMPLETE)
            rig_read(rig, node, space, at + sizeof(*taken), data,
                     taken->length < size ? taken->length : size);
        rig_write(rig, node, space, fifo + offsetof(struct mb_fifo, tail), &tail, sizeof(tail));
        if (taken->kind == MB_DATA && taken->state == MB_COMPLETE)
            return (int)taken->length;
    }
}
