// SPDX-License-Identifier: GPL-2.0-or-later
// A world around the backplane's adapter: one memory, and a record of what it sent and what its
// kernel heard.
#pragma once

#include "check.h"

#include "../vmmc.h"

#include <stdlib.h>
#include <string.h>

// 1.6 Gbit/s: 5 ns a byte; 8 Mbit/s: 1 us a byte.
#define CONFIG_OF(number)                                                                          \
    {                                                                                              \
        .node = (number), .combine_bytes = 64, .combine_timeout_ns = 1000, .setup_ns = 2800,       \
        .link_rate_bps = 1600000000, .dma_rate_bps = 8000000, .fifo_bytes = 32768                  \
    }
static const struct vmmc_config CONFIG = CONFIG_OF(1), OTHER = CONFIG_OF(2);

enum { MEMORY_PAGES = 64, SENT_MOST = 4096 };
static uint8_t memory[MEMORY_PAGES * VMMC_PAGE];
static uint8_t seen[2][VMMC_BYTES];
static struct {
    struct vmmc_packet header;
    uint8_t data[VMMC_PAGE];
} sent[SENT_MOST];
static unsigned sent_count;
// What the guest's kernel heard; `written`: the memory's first byte just then.
static struct {
    uint8_t frame[512];
    size_t length;
    uint8_t written;
} heard[SENT_MOST];
static unsigned heard_count;

static inline void send(const uint8_t *packet, size_t length)
{
    CHECK(sent_count < SENT_MOST);
    memcpy(&sent[sent_count].header, packet, VMW_HEADER);
    CHECK(length == VMW_HEADER + sent[sent_count].header.length);
    memcpy(sent[sent_count++].data, packet + VMW_HEADER, length - VMW_HEADER);
}

static inline void read_memory(uint64_t address, void *bytes, uint64_t length)
{
    CHECK(address + length <= sizeof memory);
    memcpy(bytes, memory + address, length);
}

static inline void write_memory(uint64_t address, const void *bytes, uint64_t length)
{
    CHECK(address + length <= sizeof memory);
    memcpy(memory + address, bytes, length);
}

static inline void tell(const uint8_t *frame, size_t length)
{
    CHECK(heard_count < SENT_MOST && length <= sizeof heard->frame);
    heard[heard_count].length = length;
    heard[heard_count].written = memory[0];
    memcpy(heard[heard_count++].frame, frame, length);
}

static const struct vmmc_world WORLD = {send, read_memory, write_memory, tell};

static inline void begin(struct vmmc *v, const struct vmmc_config *config)
{
    uint8_t *own = seen[config->node - 1];
    memset(own, 0, VMMC_BYTES);
    memset(memory, 0, sizeof memory);
    sent_count = heard_count = 0;
    vmmc_init(v, config, &WORLD, own);
}

static inline void store(struct vmmc *v, uint64_t now, uint64_t offset, uint64_t value,
                         unsigned size)
{
    vmmc_store(v, now, offset, value, size);
}

// Binds AU page `local` to page `page` of export 3, generation 9, of `node`.
static inline void bind(struct vmmc *v, unsigned local, uint16_t node, unsigned page,
                        unsigned flags)
{
    const struct vmmc_target to = {
        .node = node, .flags = (uint8_t)flags, .export_id = 3, .generation = 9, .page = page};
    uint64_t halves[2];
    memcpy(halves, &to, sizeof to);
    for (unsigned i = 0; i < 2; i++)
        store(v, 0, VMMC_BINDINGS + 16 * local + 8 * i, halves[i], 8);
}

// Pages of the memory, last first, listed at `list`.
static inline void make_list(uint64_t list, unsigned first, unsigned pages)
{
    for (unsigned i = 0; i < pages; i++) {
        uint64_t page = (uint64_t)(first + pages - 1 - i) * VMMC_PAGE;
        memcpy(memory + list + 8 * i, &page, sizeof page);
    }
}

static inline uint64_t counted(const struct vmmc *v, unsigned at)
{
    uint64_t value;
    memcpy(&value, v->seen + at, sizeof value);
    return value;
}

// Whether packet `number` is so; of its kind, reason, offset and length all must be.
static inline bool is(unsigned number, unsigned kind, unsigned reason, uint32_t offset,
                      uint32_t length)
{
    const struct vmmc_packet *p = &sent[number].header;
    return p->version == 1 && p->kind == kind && p->reason == reason && p->offset == offset &&
           p->length == length && p->sequence == number;
}

// Import `number` to export 3 of node 2, of 4 pages; its slot 0 is 3 pages of memory.
static inline void import(struct vmmc *v, unsigned number)
{
    const struct vmmc_target to = {
        .node = 2, .flags = VMMC_ENABLED, .export_id = 3, .generation = 9, .pages = 4};
    const struct vmmc_source source = {.list = 0, .pages = 3};
    const uint64_t at = VMMC_IMPORT_TABLE + (uint64_t)number * VMMC_PAGE;
    uint64_t halves[2];
    memcpy(halves, &to, sizeof to);
    for (unsigned i = 0; i < 2; i++)
        store(v, 0, at + 8 * i, halves[i], 8);
    memcpy(halves, &source, sizeof source);
    for (unsigned i = 0; i < 2; i++)
        store(v, 0, at + 256 + 8 * i, halves[i], 8);
    make_list(0, 8, 3);
}

static inline uint64_t transfer(unsigned slot, uint64_t source, uint64_t at, uint64_t length)
{
    return slot | source << 8 | at << 28 | length << 48;
}

static inline void deliver(struct vmmc *v, const struct vmmc_packet *header, const uint8_t *data)
{
    uint8_t packet[VMW_PACKET_MOST];
    memcpy(packet, header, VMW_HEADER);
    memcpy(packet + VMW_HEADER, data, header->length);
    vmmc_receive(v, 0, packet, VMW_HEADER + header->length);
}

static inline void export(struct vmmc *v, unsigned number, uint32_t generation, uint32_t pages,
                          uint64_t list)
{
    const uint64_t entry = VMMC_EXPORT_TABLE + 256 * (uint64_t)number;
    store(v, 0, entry + 8, list, 8);
    store(v, 0, entry, generation | (uint64_t)pages << 32, 8);
}
