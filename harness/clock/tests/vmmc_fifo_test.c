// SPDX-License-Identifier: GPL-2.0-or-later
// The outgoing FIFO of the backplane's adapter: whatever tasks store that a kernel stops when it
// must, and whatever their peers send, it holds all that enters it.
#include "check.h"
#include "vmmc_world.h"

enum { QUIET = 0, COMBINED = 1, WIDE = 2 }; // AU pages: alone; combined; a second one that is alone

static struct vmmc_config config_of(uint32_t combine, uint64_t link_bps, uint64_t dma_bps)
{
    struct vmmc_config config = CONFIG;
    config.combine_bytes = combine;
    config.link_rate_bps = link_bps;
    config.dma_rate_bps = dma_bps;
    for (config.fifo_bytes = 4; vmmc_check(&config); config.fifo_bytes += 4)
        ;
    return config;
}

static void begin_bound(struct vmmc *v, const struct vmmc_config *config)
{
    begin(v, config);
    import(v, 0);
    bind(v, QUIET, 2, 0, VMMC_ENABLED);
    bind(v, COMBINED, 2, 1, VMMC_ENABLED | VMMC_COMBINE);
    bind(v, WIDE, 2, 2, VMMC_ENABLED);
}

static void refused(struct vmmc *v, uint64_t now, uint16_t from, uint32_t export_id)
{
    const struct vmmc_packet header = {.version = 1,
                                       .kind = VMW_AU,
                                       .sender = from,
                                       .receiver = 1,
                                       .export = export_id,
                                       .generation = 5,
                                       .offset = (uint32_t)now % VMMC_PAGE,
                                       .length = 1,
                                       .count = 1};
    uint8_t packet[VMW_HEADER + 1] = {0};
    memcpy(packet, &header, sizeof header);
    vmmc_receive(v, now, packet, sizeof packet);
}

// The most that one instruction brings: a store that crosses from one page into another, which QEMU
// divides into bytes, or a message of the kernel's.
static void store_across(struct vmmc *v, uint64_t now)
{
    for (unsigned byte = 0; byte < 8; byte++)
        store(v, now, VMMC_AU + (byte < 4 ? QUIET : WIDE) * VMMC_PAGE + byte, 1, 1);
}

static void say(struct vmmc *v, uint64_t now)
{
    store(v, now, VMMC_CONTROL_AT, 2 | VMW_MESSAGE_MOST << 16, 8);
}

static const uint32_t COMBINES[] = {8, 12, 64, 1000, 1024, 1600, 2048, 4095, 4096};
enum { COMBINES_COUNT = sizeof COMBINES / sizeof *COMBINES };

// As full as it gets without being high, a packet that is open, and then something else.
static void test_the_last_quarter_holds_what_cannot_wait(void)
{
    for (unsigned i = 0; i < 4 * COMBINES_COUNT; i++) {
        struct vmmc v;
        struct vmmc_config config = config_of(COMBINES[i / 4], 1000000, 1000000);
        uint32_t high = config.fifo_bytes / 4 * 3, open = config.combine_bytes - 1;
        begin_bound(&v, &config);
        while (v.fifo_fill + 33 <= high)
            store(&v, 1000, VMMC_AU, 0, 1);
        for (unsigned byte = 0; byte < open; byte++)
            store(&v, 1000, VMMC_AU + COMBINED * VMMC_PAGE + byte, 0, 1);
        CHECK(heard_count == 0 && v.open.length == open);
        if (i % 4 == 0)
            store_across(&v, 1000);
        else if (i % 4 == 1)
            say(&v, 1000);
        else if (i % 4 == 2)
            refused(&v, 1000, 2, 7);
        else
            store(&v, 1000, VMMC_AU, 0, 8);
        CHECK(heard_count == 1 && v.told_high && !v.open.length);
        CHECK(!v.overflow && v.fifo_fill <= config.fifo_bytes);
        free(v.leaving);
    }
}

// What was legal once, and ended runs.
static void test_a_fifo_without_that_room_is_refused(void)
{
    struct vmmc v;
    struct vmmc_config config = config_of(4096, 400000000, 184000000);
    CHECK(config.fifo_bytes == 17664);
    config.fifo_bytes = 8192;
    CHECK(vmmc_check(&config) != NULL);
    config = config_of(8, 1600000000, 1600000000);
    CHECK(config.fifo_bytes == 5560);
    // With just this room a page goes below the high mark, with a store that is open before it.
    begin_bound(&v, &config);
    store(&v, 0, VMMC_DU, transfer(0, 0, 0, VMMC_PAGE), 8);
    store(&v, vmmc_next_ns(&v) - 1, VMMC_AU + COMBINED * VMMC_PAGE, 0, 4);
    vmmc_timeout(&v, vmmc_next_ns(&v));
    CHECK(sent_count == 2 && v.fifo_fill == 36 + 4128 && heard_count == 0 && !v.overflow);
    free(v.leaving);
    config.fifo_bytes = 4128;
    CHECK(vmmc_check(&config) != NULL);
}

// A node that does what it may, instruction by instruction: tasks store until the kernel has to
// stop them, which is at the end of an instruction; the kernel sends messages while the register
// says that it may; transfers are begun and packets refused at any time.
static void run_node(struct vmmc *v, unsigned long long *state, unsigned instructions)
{
    bool stopped = false;
    uint64_t now = 1000, at = 0;
    unsigned heard_before = 0;
    for (unsigned i = 0; i < instructions; i++) {
        unsigned long long draw = next_random(state);
        unsigned size = 1u << (draw >> 8 & 3), what = draw >> 16 & 15;
        now += draw >> 24 & 1023 ? draw >> 40 & 15 : 100000; // mostly quick
        if (vmmc_next_ns(v) <= now)
            vmmc_timeout(v, now);
        if (what < 6 && !stopped) {
            at = what && at % VMMC_PAGE + size <= VMMC_PAGE ? at : (draw >> 44) % (VMMC_PAGE - 8);
            store(v, now, VMMC_AU + COMBINED * VMMC_PAGE + at % VMMC_PAGE, 0, size);
            at += size;
        } else if (what < 9 && !stopped)
            store(v, now, VMMC_AU, 0, size);
        else if (what == 9 && !stopped)
            store_across(v, now);
        else if (what == 10 && !counted(v, VMMC_HIGH_AT))
            say(v, now);
        else if (what == 11)
            store(v, now, VMMC_DU, transfer(0, 0, 0, 1 + (draw >> 44) % (2 * VMMC_PAGE)), 8);
        else if (what > 12)
            refused(v, now, (uint16_t)(2 + (draw >> 44) % 7), (draw >> 48) % 4);
        CHECK(!v->overflow && v->fifo_fill <= v->config->fifo_bytes);
        for (; heard_before < heard_count; heard_before++)
            stopped = v->told_high;
        if (sent_count > SENT_MOST - 100 || heard_count > SENT_MOST - 100)
            sent_count = heard_count = heard_before = 0;
    }
}

static void test_a_node_that_stops_never_fills_it(void)
{
    static const uint64_t LINKS[] = {10000000, 400000000, 1600000000, 4000000000};
    unsigned long long state = 5;
    for (unsigned i = 0; i < COMBINES_COUNT * 4 * 2 * 2; i++) {
        struct vmmc v;
        uint64_t link = LINKS[i / COMBINES_COUNT % 4];
        struct vmmc_config config = config_of(COMBINES[i % COMBINES_COUNT], link,
                                              i / COMBINES_COUNT / 4 % 2 ? link : 10000000);
        if (i / COMBINES_COUNT / 8)
            config.fifo_bytes += next_random(&state) % 5000;
        config.combine_timeout_ns = 1 + next_random(&state) % 3000;
        config.setup_ns = 1 + next_random(&state) % 3000;
        begin_bound(&v, &config);
        run_node(&v, &state, 5000);
        free(v.leaving);
    }
}

// ---- Refusals ---------------------------------------------------------------------------------

enum { SENDERS_MOST = 7, IMPORTS = 3, FULL_OF_BYTES = 32768 / 33 };

// When the last NACK left that each import of each sender has got.
static uint64_t nacked[SENDERS_MOST + 2][IMPORTS];
static unsigned nacks, nacks_read;

static void read_nacks(uint64_t now)
{
    for (; nacks_read < sent_count; nacks_read++) {
        const struct vmmc_packet *p = &sent[nacks_read].header;
        if (p->kind != VMW_NACK)
            continue;
        CHECK(p->receiver >= 2 && p->export < IMPORTS && p->generation == 5 && !p->length);
        CHECK(!p->flags && !p->reason && p->count == 1);
        nacked[p->receiver][p->export] = now;
        nacks++;
    }
}

static void run_until(struct vmmc *v, uint64_t now)
{
    for (uint64_t next; (next = vmmc_next_ns(v)) <= now;) {
        vmmc_timeout(v, next);
        read_nacks(next);
    }
}

// An export ends while the FIFOs of those that have imported it are full of single bytes: one of
// them is read in 44 ns, a NACK leaves in 160.
static void test_refusals_of_many_wait_for_the_line(void)
{
    for (unsigned senders = 3; senders <= SENDERS_MOST; senders += 4) {
        struct vmmc v;
        struct vmmc_config config = config_of(1024, 1600000000, 184000000);
        uint64_t now = 0, last[SENDERS_MOST + 2][IMPORTS] = {{0}};
        unsigned packets = senders * FULL_OF_BYTES;
        config.fifo_bytes = 32768;
        begin_bound(&v, &config);
        memset(nacked, 0, sizeof nacked);
        nacks = nacks_read = 0;
        for (unsigned i = 0; i < packets; i++) {
            unsigned from = 2 + i % senders, export_id = i / 100 % IMPORTS;
            now = (i + 1) * UINT64_C(4000) / 92;
            run_until(&v, now);
            refused(&v, now, (uint16_t)from, export_id);
            last[from][export_id] = now;
            read_nacks(now);
            CHECK(!v.overflow);
            // One that has room leaves at once.
            CHECK(v.told_high || nacked[from][export_id] == now);
        }
        CHECK(counted(&v, VMMC_REFUSED_AT) == packets && nacks < packets / 2);
        run_until(&v, UINT64_MAX - 1);
        // Each import has got one since its last packet was refused, and then nothing is left.
        for (unsigned from = 2; from < 2 + senders; from++)
            for (unsigned id = 0; id < IMPORTS; id++)
                CHECK(last[from][id] && nacked[from][id] >= last[from][id]);
        CHECK(!v.held_count && !v.told_high && sent_count == nacks);
        free(v.leaving);
    }
}

// What waits is the last packet of its import, and leaves when the kernel learns that the FIFO is
// low, in the order of nodes and exports, as far as there is room.
static void test_a_refusal_that_waits_is_the_last_of_its_import(void)
{
    struct vmmc v;
    struct vmmc_config config = config_of(64, 1600000000, 184000000);
    begin_bound(&v, &config);
    for (unsigned i = 0; !v.told_high; i++)
        store(&v, 1000, VMMC_AU, 0, 8);
    unsigned before = sent_count;
    refused(&v, 1001, 3, 1);
    refused(&v, 1002, 2, 2);
    refused(&v, 1003, 3, 1);
    refused(&v, 1004, 3, 0);
    refused(&v, 1005, 3, VMMC_EXPORTS); // of no import
    CHECK(sent_count == before && v.held_count == 3 && counted(&v, VMMC_REFUSED_AT) == 5);
    vmmc_timeout(&v, vmmc_next_ns(&v) - 1);
    CHECK(sent_count == before);
    vmmc_timeout(&v, vmmc_next_ns(&v));
    CHECK(!v.told_high && heard_count == 2 && !v.held_count && sent_count == before + 3);
    const struct {
        uint16_t to;
        uint32_t export_id, offset;
    } due[] = {{2, 2, 1002}, {3, 0, 1004}, {3, 1, 1003}};
    for (unsigned i = 0; i < 3; i++) {
        const struct vmmc_packet *p = &sent[before + i].header;
        CHECK(p->kind == VMW_NACK && p->receiver == due[i].to && p->sender == 1 && !p->length);
        CHECK(p->export == due[i].export_id && p->offset == due[i].offset && p->count == 1);
    }
    free(v.leaving);
}

// Of all imports that there can be, more than the FIFO takes at once.
static void test_refusals_that_wait_leave_in_portions(void)
{
    struct vmmc v;
    struct vmmc_config config = config_of(8, 1600000000, 184000000);
    uint64_t now = 1000;
    unsigned portions = 0, before;
    begin_bound(&v, &config);
    while (!v.told_high)
        store(&v, now, VMMC_AU, 0, 8);
    before = sent_count;
    for (uint16_t from = 2; from < 5; from++)
        for (uint32_t id = 0; id < VMMC_EXPORTS; id++)
            refused(&v, now, from, id);
    CHECK(sent_count == before && v.held_count == 3 * VMMC_EXPORTS);
    for (; vmmc_next_ns(&v) != UINT64_MAX; portions++) {
        vmmc_timeout(&v, vmmc_next_ns(&v));
        CHECK(!v.overflow && (v.told_high || !v.held_count));
    }
    CHECK(sent_count == before + 3 * VMMC_EXPORTS && portions > 3);
    free(v.leaving);
}

int main(void)
{
    RUN(test_the_last_quarter_holds_what_cannot_wait);
    RUN(test_a_fifo_without_that_room_is_refused);
    RUN(test_a_node_that_stops_never_fills_it);
    RUN(test_refusals_of_many_wait_for_the_line);
    RUN(test_a_refusal_that_waits_is_the_last_of_its_import);
    RUN(test_refusals_that_wait_leave_in_portions);
    printf("%u passed, 0 failed\n", tests_passed);
    return 0;
}
