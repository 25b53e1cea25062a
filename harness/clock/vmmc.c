// SPDX-License-Identifier: GPL-2.0-or-later
#include "vmmc.h"

#include <stdlib.h>
#include <string.h>

enum { EXPORT_ENTRY = 256, TARGET_ENTRY = 16, SOURCES_AT = 256, DU_LONGEST = 65536 };

_Static_assert(sizeof(struct vmmc_target) == TARGET_ENTRY, "as the guest writes it");
_Static_assert(sizeof(struct vmmc_source) == 16, "as the guest writes it");
_Static_assert(VMMC_MESSAGE_AT + VMW_MESSAGE_MOST <= VMMC_EXPORT_TABLE, "registers");
_Static_assert(VMMC_EXPORT_TABLE + VMMC_EXPORTS * EXPORT_ENTRY <= VMMC_DU, "240 of 256 bytes");
_Static_assert(VMMC_DU + VMMC_EXPORTS * VMMC_PAGE == VMMC_AU, "a page an import");
_Static_assert(VMMC_AU + VMMC_AU_PAGES * VMMC_PAGE == VMMC_BINDINGS, "AU pages");
_Static_assert(VMMC_BINDINGS + VMMC_AU_PAGES * TARGET_ENTRY == VMMC_IMPORT_TABLE, "bindings");
_Static_assert(VMMC_IMPORT_TABLE + VMMC_EXPORTS * VMMC_PAGE == VMMC_BYTES, "imports");
_Static_assert(SOURCES_AT + VMMC_SOURCES * sizeof(struct vmmc_source) <= VMMC_PAGE, "sources");

static const uint64_t NEVER = UINT64_MAX, PS_PER_NS = 1000, PS_PER_S = UINT64_C(1000000000000);

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

// Rounded up; at most VMW_PACKET_MOST bytes, so nothing overflows.
static uint64_t duration_ps(uint32_t bytes, uint64_t rate_bps)
{
    return (8 * (uint64_t)bytes * PS_PER_S + rate_bps - 1) / rate_bps;
}

static void count(struct vmmc *v, unsigned at, int64_t by)
{
    uint64_t value;
    memcpy(&value, v->seen + at, sizeof value);
    value += (uint64_t)by;
    memcpy(v->seen + at, &value, sizeof value);
}

static uint32_t low_mark(const struct vmmc_config *config)
{
    return config->fifo_bytes / 4;
}

static uint32_t high_mark(const struct vmmc_config *config)
{
    return 3 * low_mark(config);
}

const char *vmmc_check(const struct vmmc_config *config)
{
    if (config->node < 1 || config->node > VMMC_NODES)
        return "a node's number is 1 to 64";
    if (config->combine_bytes < VMMC_COMBINE_LEAST || config->combine_bytes > VMMC_PAGE)
        return "8 to 4096 bytes are combined";
    // What is combined leaves just before something else does. A piece of a transfer waits until
    // both fit below the high mark; a store or a message, which do not, have what is above it.
    const uint32_t combined = VMW_HEADER + config->combine_bytes;
    if (high_mark(config) < combined + VMW_PACKET_MOST)
        return "three quarters of the outgoing FIFO do not hold what is combined and a page";
    if (low_mark(config) < combined + VMW_HEADER + VMW_MESSAGE_MOST)
        return "a quarter of the outgoing FIFO does not hold what is combined and a message";
    if (!config->link_rate_bps || !config->dma_rate_bps || !config->combine_timeout_ns)
        return "a rate or the time of combining is 0";
    return NULL;
}

void vmmc_init(struct vmmc *v, const struct vmmc_config *config, const struct vmmc_world *world,
               uint8_t *seen)
{
    *v = (struct vmmc){.config = config, .world = world, .seen = seen};
    v->leaving_places = config->fifo_bytes / VMW_HEADER + 1;
    v->leaving = calloc(v->leaving_places, sizeof *v->leaving);
    if (!v->leaving)
        abort();
    const uint32_t head[] = {VMMC_MAGIC, VMW_VERSION, config->node};
    memcpy(seen + VMMC_REGISTERS, head, sizeof head);
}

// ---- Telling the kernel -----------------------------------------------------------------------

// Broadcast, from a locally administered address, IEEE 802 local experimental.
static const uint8_t TOLD[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x53, 0x48,
                               0x52, 0x00, 0x00, 0x88, 0xb5, 's',  'u',  'n',  'd',
                               'i',  'a',  'l',  '-',  'v',  'm',  'm',  'c'};
enum { TOLD_LEAST = 60 }; // Ethernet's

static void tell(struct vmmc *v, const struct vmmc_packet *header, const uint8_t *data,
                 uint32_t bytes)
{
    uint8_t frame[sizeof TOLD + VMW_HEADER + VMW_MESSAGE_MOST] = {0};
    uint32_t length = sizeof TOLD + VMW_HEADER + bytes;
    memcpy(frame, TOLD, sizeof TOLD);
    memcpy(frame + sizeof TOLD, header, VMW_HEADER);
    if (bytes)
        memcpy(frame + sizeof TOLD + VMW_HEADER, data, bytes);
    count(v, VMMC_TOLD_AT, 1);
    v->world->tell(frame, length > TOLD_LEAST ? length : TOLD_LEAST);
}

static void tell_fill(struct vmmc *v, bool high)
{
    const struct vmmc_packet header = {.version = VMW_VERSION,
                                       .kind = VMW_FIFO,
                                       .flags = high ? VMW_FIFO_HIGH : 0,
                                       .sender = v->config->node,
                                       .receiver = v->config->node,
                                       .count = v->fifo_fill};
    v->told_high = high;
    memcpy(v->seen + VMMC_HIGH_AT, &(uint32_t){high}, sizeof(uint32_t));
    tell(v, &header, NULL, 0);
}

// ---- Sending ----------------------------------------------------------------------------------

// What has left makes room.
static void drain_fifo(struct vmmc *v, uint64_t now_ns)
{
    uint64_t now_ps = now_ns * PS_PER_NS;
    for (; v->leaving_count && v->leaving[v->leaving_first].end_ps <= now_ps; v->leaving_count--) {
        v->fifo_fill -= v->leaving[v->leaving_first].bytes;
        v->leaving_first = (v->leaving_first + 1) % v->leaving_places;
    }
}

// When the FIFO, which holds more, is below that fill if nothing else enters it.
static uint64_t below_from_ns(const struct vmmc *v, uint32_t limit)
{
    uint32_t fill = v->fifo_fill, place = v->leaving_first;
    for (;; place = (place + 1) % v->leaving_places) {
        fill -= v->leaving[place].bytes;
        if (fill < limit)
            return (v->leaving[place].end_ps + PS_PER_NS - 1) / PS_PER_NS;
    }
}

// The kernel keeps those from running who would fill it, from three quarters until it is low.
static void watch_fifo(struct vmmc *v)
{
    if (v->told_high || v->fifo_fill <= high_mark(v->config))
        return;
    v->low_ns = below_from_ns(v, low_mark(v->config));
    tell_fill(v, true);
}

// Whether the outgoing FIFO takes the packet, which is on the line as soon as that is free.
static bool enter_fifo(struct vmmc *v, uint64_t now_ns, uint32_t bytes)
{
    drain_fifo(v, now_ns);
    if (v->fifo_fill + bytes > v->config->fifo_bytes) {
        v->overflow = true;
        return false;
    }
    v->line_free_ps = later(now_ns * PS_PER_NS, v->line_free_ps) +
                      duration_ps(bytes, v->config->link_rate_bps);
    uint32_t place = (v->leaving_first + v->leaving_count++) % v->leaving_places;
    v->leaving[place].end_ps = v->line_free_ps;
    v->leaving[place].bytes = bytes;
    v->fifo_fill += bytes;
    return true;
}

// Sends what is in v->packet behind the header.
static void send_packet(struct vmmc *v, uint64_t now_ns, struct vmmc_packet header)
{
    header.version = VMW_VERSION;
    header.sender = v->config->node;
    header.sequence = v->sequence[header.receiver]++;
    memcpy(v->packet, &header, sizeof header);
    uint32_t bytes = VMW_HEADER + header.length;
    if (!enter_fifo(v, now_ns, bytes))
        return;
    count(v, VMMC_PACKETS_AT, 1);
    v->world->send(v->packet, bytes);
    watch_fifo(v);
}

// ---- Automatic update -------------------------------------------------------------------------

// What is being combined leaves.
static void leave(struct vmmc *v, uint64_t now_ns, enum vmw_reason reason)
{
    if (!v->open.length)
        return;
    const struct vmmc_packet header = {.kind = VMW_AU,
                                       .flags = v->open.to.flags & VMMC_NOTIFY ? VMW_NOTIFY : 0,
                                       .reason = (uint8_t)reason,
                                       .receiver = v->open.to.node,
                                       .export = v->open.to.export_id,
                                       .generation = v->open.to.generation,
                                       .offset = v->open.offset,
                                       .length = v->open.length,
                                       .count = v->open.stores};
    v->open.length = 0;
    send_packet(v, now_ns, header);
}

static bool can_be(const struct vmmc *v, const struct vmmc_target *to)
{
    return to->node >= 1 && to->node <= VMMC_NODES && to->node != v->config->node;
}

static void automatic(struct vmmc *v, uint64_t now_ns, uint64_t offset, uint64_t value,
                      unsigned size)
{
    uint32_t page = (uint32_t)(offset - VMMC_AU) / VMMC_PAGE, within = offset % VMMC_PAGE;
    struct vmmc_target to;
    memcpy(&to, v->seen + VMMC_BINDINGS + page * TARGET_ENTRY, sizeof to);
    if (!(to.flags & VMMC_ENABLED))
        return;
    if (!can_be(v, &to)) {
        count(v, VMMC_NOWHERE_AT, 1);
        return;
    }
    count(v, VMMC_STORES_AT, 1);
    uint32_t at = to.page * VMMC_PAGE + within;
    bool combine = to.flags & VMMC_COMBINE;
    bool follows = combine && v->open.binding == page && at == v->open.offset + v->open.length &&
                   memcmp(&to, &v->open.to, sizeof to) == 0;
    if (!follows)
        leave(v, now_ns, VMW_GAP);
    else if (v->open.length + size > v->config->combine_bytes)
        leave(v, now_ns, VMW_FULL);
    if (!v->open.length) {
        v->open.to = to;
        v->open.binding = page;
        v->open.offset = at;
        v->open.stores = 0;
    }
    memcpy(v->packet + VMW_HEADER + v->open.length, &value, size);
    v->open.length += size;
    v->open.stores++;
    v->open.deadline_ns = now_ns + v->config->combine_timeout_ns;
    if (!combine)
        leave(v, now_ns, VMW_UNCOMBINED);
    else if (within + size == VMMC_PAGE)
        leave(v, now_ns, VMW_PAGE_END);
    else if (v->open.length == v->config->combine_bytes)
        leave(v, now_ns, VMW_FULL);
}

// ---- Deliberate update ------------------------------------------------------------------------

// How much of the transfer one packet takes: it crosses no page of the destination.
static uint32_t piece(const struct vmmc_transfer *t)
{
    return least(t->left, VMMC_PAGE - t->at % VMMC_PAGE);
}

static void begin_piece(struct vmmc *v)
{
    const struct vmmc_transfer *t = &v->transfers[v->first_transfer];
    v->read_ps = later(t->ready_ns * PS_PER_NS, v->engine_free_ps) +
                 duration_ps(piece(t), v->config->dma_rate_bps);
    v->engine_free_ps = v->read_ps;
}

static void start_transfer(struct vmmc *v, uint64_t now_ns, unsigned import, uint64_t word,
                           bool notify)
{
    uint8_t *own = v->seen + VMMC_IMPORT_TABLE + import * VMMC_PAGE;
    uint32_t slot = word & 0xff, source_at = word >> 8 & 0xfffff, at = word >> 28 & 0xfffff;
    uint32_t length = (uint32_t)(word >> 48) ? (uint32_t)(word >> 48) : DU_LONGEST;
    struct vmmc_target to;
    struct vmmc_source source = {0};
    memcpy(&to, own, sizeof to);
    if (slot < VMMC_SOURCES)
        memcpy(&source, own + SOURCES_AT + slot * sizeof source, sizeof source);
    if (!(to.flags & VMMC_ENABLED) || !can_be(v, &to) || v->transfer_count == VMMC_TRANSFERS ||
        source_at + (uint64_t)length > (uint64_t)source.pages * VMMC_PAGE ||
        at + (uint64_t)length > (uint64_t)to.pages * VMMC_PAGE) {
        count(v, VMMC_DU + import * VMMC_PAGE + VMMC_ERRORS_AT, 1);
        return;
    }
    uint32_t place = (v->first_transfer + v->transfer_count++) % VMMC_TRANSFERS;
    v->transfers[place] = (struct vmmc_transfer){.source_list = source.list,
                                                 .source_at = source_at,
                                                 .to = to,
                                                 .at = at,
                                                 .left = length,
                                                 .number = v->transfers_begun++,
                                                 .import = (uint16_t)import,
                                                 .notify = notify,
                                                 .ready_ns = now_ns + v->config->setup_ns};
    count(v, VMMC_DU + import * VMMC_PAGE + VMMC_PENDING_AT, 1);
    if (v->transfer_count == 1)
        begin_piece(v);
}

// The guest's address of byte `at` of the pages that are listed at `list`.
static uint64_t listed(const struct vmmc *v, uint64_t list, uint64_t at)
{
    uint64_t page = 0;
    v->world->read(list + at / VMMC_PAGE * sizeof page, &page, sizeof page);
    return page + at % VMMC_PAGE;
}

// Whether the engine pauses with the piece under way: it gives the last quarter of the FIFO to
// those that cannot wait, and lets a high one become low.
static bool pauses(struct vmmc *v, uint64_t now_ns)
{
    uint32_t bytes = VMW_HEADER + piece(&v->transfers[v->first_transfer]);
    if (v->open.length) // leaves before it
        bytes += VMW_HEADER + v->open.length;
    uint32_t limit = high_mark(v->config) - bytes + 1; // vmmc_check: not below 1
    drain_fifo(v, now_ns);
    if (!v->told_high && v->fifo_fill < limit)
        return false;
    uint64_t until_ns = v->told_high ? v->low_ns : below_from_ns(v, limit);
    v->read_ps = v->engine_free_ps = until_ns * PS_PER_NS;
    return true;
}

// The piece under way has been read: it leaves as it is in memory now. What is being combined is
// older than it.
static void send_piece(struct vmmc *v, uint64_t now_ns)
{
    struct vmmc_transfer *t = &v->transfers[v->first_transfer];
    uint32_t bytes = piece(t);
    leave(v, now_ns, VMW_GAP);
    for (uint32_t done = 0, part; done < bytes; done += part) {
        uint64_t at = t->source_at + done;
        part = least(bytes - done, VMMC_PAGE - (uint32_t)(at % VMMC_PAGE));
        v->world->read(listed(v, t->source_list, at), v->packet + VMW_HEADER + done, part);
    }
    const unsigned last = t->notify ? VMW_LAST | VMW_NOTIFY : VMW_LAST;
    const struct vmmc_packet header = {.kind = VMW_DU,
                                       .flags = bytes == t->left ? (uint8_t)last : 0,
                                       .receiver = t->to.node,
                                       .export = t->to.export_id,
                                       .generation = t->to.generation,
                                       .offset = t->at,
                                       .length = bytes,
                                       .count = t->number};
    send_packet(v, now_ns, header);
    t->source_at += bytes;
    t->at += bytes;
    t->left -= bytes;
    if (!t->left) {
        count(v, VMMC_DU + t->import * VMMC_PAGE + VMMC_PENDING_AT, -1);
        v->first_transfer = (v->first_transfer + 1) % VMMC_TRANSFERS;
        v->transfer_count--;
    }
    if (v->transfer_count)
        begin_piece(v);
}

// ---- Control ----------------------------------------------------------------------------------

// What the kernel has laid into the registers' page is for the other's kernel.
static void send_message(struct vmmc *v, uint64_t now_ns, uint64_t word)
{
    const struct vmmc_target to = {.node = (uint16_t)word};
    uint32_t bytes = word >> 16 & 0xffff;
    if (!can_be(v, &to) || bytes > VMW_MESSAGE_MOST) {
        count(v, VMMC_NOWHERE_AT, 1);
        return;
    }
    leave(v, now_ns, VMW_GAP);
    memcpy(v->packet + VMW_HEADER, v->seen + VMMC_MESSAGE_AT, bytes);
    send_packet(v, now_ns,
                (struct vmmc_packet){.kind = VMW_CONTROL, .receiver = to.node, .length = bytes});
}

static void store_to_register(struct vmmc *v, uint64_t now_ns, uint64_t offset, uint64_t value,
                              unsigned size)
{
    if (offset >= VMMC_MESSAGE_AT && offset + size <= VMMC_MESSAGE_AT + VMW_MESSAGE_MOST)
        memcpy(v->seen + offset, &value, size);
    else if (offset == VMMC_CONTROL_AT && size == sizeof value)
        send_message(v, now_ns, value);
    else if (offset == VMMC_FLUSH_AT)
        leave(v, now_ns, VMW_FLUSHED);
}

static void store_to_import(struct vmmc *v, uint64_t now_ns, uint64_t offset, uint64_t value,
                            unsigned size)
{
    uint64_t within = offset % VMMC_PAGE;
    if (size == sizeof value && (within == VMMC_START_AT || within == VMMC_START_NOTIFY_AT))
        start_transfer(v, now_ns, (unsigned)((offset - VMMC_DU) / VMMC_PAGE), value,
                       within == VMMC_START_NOTIFY_AT);
    else if (size == sizeof value && within == VMMC_ERRORS_AT)
        memcpy(v->seen + offset, &value, size);
}

// ---- Refusals ---------------------------------------------------------------------------------

static void send_refusal(struct vmmc *v, uint64_t now_ns, struct vmmc_packet nack)
{
    nack.kind = VMW_NACK;
    nack.flags = nack.reason = 0;
    nack.length = 0;
    leave(v, now_ns, VMW_GAP);
    send_packet(v, now_ns, nack);
}

// A packet for no export of this node. The answer has its own generation and place: the sender
// knows by them which import is over. Packets may come faster than answers leave; while the FIFO is
// high the last one of each import waits, for a sender that stores no more must learn it, too.
static void refuse(struct vmmc *v, uint64_t now_ns, const struct vmmc_packet *header)
{
    count(v, VMMC_REFUSED_AT, 1);
    if (!v->told_high) {
        struct vmmc_packet nack = *header;
        nack.receiver = header->sender;
        send_refusal(v, now_ns, nack);
        return;
    }
    if (header->export >= VMMC_EXPORTS) // of no import
        return;
    struct vmmc_held *held = &v->held[header->sender][header->export];
    v->held_count += !held->waits;
    *held = (struct vmmc_held){true, header->generation, header->offset, header->count};
}

static void send_held(struct vmmc *v, uint64_t now_ns)
{
    for (unsigned node = 1; node <= VMMC_NODES && v->held_count; node++)
        for (unsigned id = 0; id < VMMC_EXPORTS && !v->told_high; id++) {
            struct vmmc_held *held = &v->held[node][id];
            if (!held->waits)
                continue;
            held->waits = false;
            v->held_count--;
            send_refusal(v, now_ns,
                         (struct vmmc_packet){.receiver = (uint16_t)node,
                                              .export = id,
                                              .generation = held->generation,
                                              .offset = held->offset,
                                              .count = held->count});
        }
}

// More may have entered since `low_ns` was known.
static void look_whether_low(struct vmmc *v, uint64_t now_ns)
{
    drain_fifo(v, now_ns);
    if (v->fifo_fill >= low_mark(v->config)) {
        v->low_ns = below_from_ns(v, low_mark(v->config));
        return;
    }
    tell_fill(v, false);
    send_held(v, now_ns);
}

// ---- Events -----------------------------------------------------------------------------------

void vmmc_store(struct vmmc *v, uint64_t now_ns, uint64_t offset, uint64_t value, unsigned size)
{
    if (offset >= VMMC_AU && offset < VMMC_BINDINGS) {
        memcpy(v->seen + offset, &value, size);
        automatic(v, now_ns, offset, value, size);
    } else if (offset >= VMMC_DU && offset < VMMC_AU)
        store_to_import(v, now_ns, offset, value, size);
    else if (offset >= VMMC_EXPORT_TABLE)
        memcpy(v->seen + offset, &value, size);
    else
        store_to_register(v, now_ns, offset, value, size);
}

static uint64_t combined_ns(const struct vmmc *v)
{
    return v->open.length ? v->open.deadline_ns : NEVER;
}

static uint64_t transfer_ns(const struct vmmc *v)
{
    return v->transfer_count ? (v->read_ps + PS_PER_NS - 1) / PS_PER_NS : NEVER;
}

uint64_t vmmc_next_ns(const struct vmmc *v)
{
    uint64_t next = sooner(combined_ns(v), transfer_ns(v));
    return v->told_high ? sooner(next, v->low_ns) : next;
}

void vmmc_timeout(struct vmmc *v, uint64_t now_ns)
{
    for (uint64_t next; (next = vmmc_next_ns(v)) <= now_ns;)
        if (combined_ns(v) == next)
            leave(v, now_ns, VMW_TIMER);
        else if (v->told_high && v->low_ns == next) // a piece may wait for just this
            look_whether_low(v, now_ns);
        else if (!pauses(v, now_ns))
            send_piece(v, now_ns);
}

static void receive_data(struct vmmc *v, uint64_t now_ns, const struct vmmc_packet *header,
                         const uint8_t *data, bool whole)
{
    struct vmmc_export export = {0};
    if (header->export < VMMC_EXPORTS)
        memcpy(&export, v->seen + VMMC_EXPORT_TABLE + header->export * EXPORT_ENTRY, sizeof export);
    bool fits = whole && header->offset % VMMC_PAGE + (uint64_t)header->length <= VMMC_PAGE;
    if (!export.generation || header->generation != export.generation || !fits ||
        header->offset / VMMC_PAGE >= export.pages) {
        refuse(v, now_ns, header);
        return;
    }
    v->world->write(listed(v, export.list, header->offset), data, header->length);
    count(v, VMMC_WRITTEN_AT, 1);
    if (header->flags & VMW_NOTIFY)
        tell(v, header, NULL, 0);
}

void vmmc_receive(struct vmmc *v, uint64_t now_ns, const uint8_t *packet, size_t length)
{
    struct vmmc_packet header;
    memcpy(&header, packet, sizeof header);
    const uint8_t *data = packet + VMW_HEADER;
    bool whole = header.length == length - VMW_HEADER;
    if (header.kind == VMW_AU || header.kind == VMW_DU)
        receive_data(v, now_ns, &header, data, whole);
    else if (header.kind == VMW_NACK) {
        count(v, VMMC_NACKS_AT, 1);
        tell(v, &header, NULL, 0);
    } else if (header.kind == VMW_CONTROL && whole && header.length <= VMW_MESSAGE_MOST)
        tell(v, &header, data, header.length);
    else
        count(v, VMMC_REFUSED_AT, 1);
}
