// SPDX-License-Identifier: GPL-2.0-or-later
// The backplane's adapter without QEMU: combining, transfers, tables, the outgoing FIFO. Expected
// times and lengths are worked out by hand.
#define _GNU_SOURCE
#include "check.h"
#include "vmmc_world.h"

#include "../options.h"

// ---- Tests ------------------------------------------------------------------------------------

static void test_options(void)
{
    struct options o;
    char good[] = "vmmc=2:1024:1000:2800:1600000000:184000000:32768";
    char *arguments[] = {"shm=/x", "zero=1", "nics=2", good};
    CHECK(options_parse(&o, 4, arguments) == NULL && o.backplane);
    CHECK(o.vmmc.node == 2 && o.vmmc.combine_bytes == 1024 && o.vmmc.combine_timeout_ns == 1000);
    CHECK(o.vmmc.setup_ns == 2800 && o.vmmc.link_rate_bps == 1600000000 &&
          o.vmmc.dma_rate_bps == 184000000 && o.vmmc.fifo_bytes == 32768);
    const char *const bad[] = {
        "vmmc=",
        "vmmc=2:1024:1000:2800:1600000000:184000000",
        "vmmc=2:1024:1000:2800:1600000000:184000000:32768:1",
        "vmmc=0:1024:1000:2800:1600000000:184000000:32768",
        "vmmc=65:1024:1000:2800:1600000000:184000000:32768",
        "vmmc=65537:1024:1000:2800:1600000000:184000000:32768",
        "vmmc=2:7:1000:2800:1600000000:184000000:32768",
        "vmmc=2:4097:1000:2800:1600000000:184000000:32768",
        "vmmc=2:1024:0:2800:1600000000:184000000:32768",
        "vmmc=2:1024:1000:2800:0:184000000:32768",
        "vmmc=2:1024:1000:2800:1600000000:0:32768",
        // Three quarters hold 32 + 4,096 and 32 + what is combined, one that and 32 + 256.
        "vmmc=2:8:1000:2800:1600000000:184000000:5559",
        "vmmc=2:1024:1000:2800:1600000000:184000000:6911",
        "vmmc=2:4096:1000:2800:1600000000:184000000:17663",
        "vmmc=2:1024:1000:2800:1600000000:184000000:x",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *copy = strdup(bad[i]);
        arguments[3] = copy;
        CHECK(options_parse(&o, 4, arguments) != NULL);
        free(copy);
    }
    const char *const least[] = {
        "vmmc=2:8:1000:2800:1600000000:184000000:5560",
        "vmmc=2:1024:1000:2800:1600000000:184000000:6912",
        "vmmc=2:4096:1000:2800:1600000000:184000000:17664",
    };
    for (size_t i = 0; i < sizeof least / sizeof *least; i++) {
        char *copy = strdup(least[i]);
        arguments[3] = copy;
        CHECK(options_parse(&o, 4, arguments) == NULL);
        free(copy);
    }
    char boot[] = "vmmc=2:1024:1000:2800:1600000000:184000000:32768";
    char *booting[] = {"mode=boot", "report=/r", boot};
    CHECK(options_parse(&o, 3, booting) != NULL);
}

static void test_stores_are_combined_until_one_of_six_reasons(void)
{
    struct vmmc v;
    begin(&v, &CONFIG);
    CHECK(counted(&v, VMMC_MAGIC_AT) == ((uint64_t)1 << 32 | VMMC_MAGIC));
    bind(&v, 0, 2, 5, VMMC_ENABLED | VMMC_COMBINE);
    bind(&v, 1, 2, 6, VMMC_ENABLED);
    CHECK(vmmc_next_ns(&v) == UINT64_MAX);

    // Three in a row, then a gap; the rest waits for its time, which each store puts off.
    store(&v, 100, VMMC_AU + 16, 0x0807060504030201, 8);
    store(&v, 108, VMMC_AU + 24, 0x0a09, 2);
    store(&v, 116, VMMC_AU + 26, 0x0b, 1);
    CHECK(sent_count == 0 && vmmc_next_ns(&v) == 1116);
    store(&v, 124, VMMC_AU + 28, 1, 4);
    CHECK(sent_count == 1 && is(0, VMW_AU, VMW_GAP, 5 * VMMC_PAGE + 16, 11));
    for (unsigned i = 0; i < 11; i++)
        CHECK(sent[0].data[i] == i + 1);
    const struct vmmc_packet *p = &sent[0].header;
    CHECK(p->sender == 1 && p->receiver == 2 && p->export == 3 && p->generation == 9 &&
          p->count == 3);
    vmmc_timeout(&v, 1123);
    CHECK(sent_count == 1 && vmmc_next_ns(&v) == 1124);
    vmmc_timeout(&v, 1124);
    CHECK(sent_count == 2 && is(1, VMW_AU, VMW_TIMER, 5 * VMMC_PAGE + 28, 4));

    // The end of the page needs no timer.
    store(&v, 2000, VMMC_AU + VMMC_PAGE - 16, 1, 8);
    store(&v, 2008, VMMC_AU + VMMC_PAGE - 8, 2, 8);
    CHECK(sent_count == 3 && is(2, VMW_AU, VMW_PAGE_END, 6 * VMMC_PAGE - 16, 16));

    // 64 bytes are combined: exactly, or as many as fit.
    for (unsigned i = 0; i < 8; i++)
        store(&v, 3000 + 8 * i, VMMC_AU + 8 * i, i, 8);
    CHECK(sent_count == 4 && is(3, VMW_AU, VMW_FULL, 5 * VMMC_PAGE, 64));
    for (unsigned i = 0; i < 9; i++)
        store(&v, 4000 + 8 * i, VMMC_AU + (i ? 4 + 8 * (i - 1) : 0), i, i ? 8 : 4);
    CHECK(sent_count == 5 && is(4, VMW_AU, VMW_FULL, 5 * VMMC_PAGE, 60));

    // A store to the other page pushes it out, and leaves alone.
    store(&v, 5000, VMMC_AU + VMMC_PAGE + 8, 7, 8);
    CHECK(sent_count == 7 && is(5, VMW_AU, VMW_GAP, 5 * VMMC_PAGE + 60, 8));
    CHECK(is(6, VMW_AU, VMW_UNCOMBINED, 6 * VMMC_PAGE + 8, 8));

    store(&v, 6000, VMMC_AU, 1, 8);
    store(&v, 6008, VMMC_FLUSH_AT, 0, 4);
    CHECK(sent_count == 8 && is(7, VMW_AU, VMW_FLUSHED, 5 * VMMC_PAGE, 8));
    CHECK(vmmc_next_ns(&v) == UINT64_MAX);
    CHECK(counted(&v, VMMC_PACKETS_AT) == 8 && counted(&v, VMMC_STORES_AT) == 25);
    free(v.leaving);
}

static void test_what_is_not_bound_stays_here(void)
{
    struct vmmc v;
    begin(&v, &CONFIG);
    bind(&v, 0, 1, 0, VMMC_ENABLED);  // itself
    bind(&v, 1, 65, 0, VMMC_ENABLED); // no such node
    bind(&v, 2, 2, 0, VMMC_COMBINE);  // not enabled
    for (unsigned page = 0; page < 4; page++)
        store(&v, 100, VMMC_AU + page * VMMC_PAGE + 8, page + 1, 8);
    CHECK(sent_count == 0 && vmmc_next_ns(&v) == UINT64_MAX);
    CHECK(counted(&v, VMMC_NOWHERE_AT) == 2 && counted(&v, VMMC_STORES_AT) == 0);
    for (unsigned page = 0; page < 4; page++) // loads are local
        CHECK(counted(&v, VMMC_AU + page * VMMC_PAGE + 8) == page + 1);
    // Registers and DU pages keep nothing that is stored to them.
    store(&v, 100, VMMC_NODE_AT, 99, 4);
    store(&v, 100, VMMC_DU + VMMC_PENDING_AT, 99, 8);
    CHECK((uint32_t)counted(&v, VMMC_NODE_AT) == 1 && counted(&v, VMMC_DU + VMMC_PENDING_AT) == 0);
    free(v.leaving);
}

static void test_a_transfer_is_read_and_leaves_page_by_page(void)
{
    struct vmmc v;
    begin(&v, &CONFIG);
    import(&v, 4);
    bind(&v, 0, 2, 0, VMMC_ENABLED | VMMC_COMBINE);
    const uint64_t page = VMMC_DU + 4 * VMMC_PAGE;
    store(&v, 1000, page, transfer(0, 4000, 5000, 4000), 8);
    CHECK(counted(&v, page + VMMC_PENDING_AT) == 1 && sent_count == 0);
    // To the end of the destination's page 3,192 bytes, 1 us each.
    CHECK(vmmc_next_ns(&v) == 1000 + 2800 + 3192000);
    // Pages are listed last first: byte 4000 of the source is in page 10, 4096 in page 9.
    memory[10 * VMMC_PAGE + 4000] = 1;
    memory[9 * VMMC_PAGE] = 2;
    memory[9 * VMMC_PAGE + 3192 - 96] = 3;
    vmmc_timeout(&v, 3195799);
    CHECK(sent_count == 0);
    // What is being combined left before the transfer: it was stored before.
    store(&v, 3195799, VMMC_AU, 1, 8);
    vmmc_timeout(&v, 3195800);
    CHECK(sent_count == 2 && is(0, VMW_AU, VMW_GAP, 0, 8));
    CHECK(is(1, VMW_DU, 0, 5000, 3192) && sent[1].header.flags == 0);
    CHECK(sent[1].data[0] == 1 && sent[1].data[96] == 2);
    CHECK(counted(&v, page + VMMC_PENDING_AT) == 1);
    CHECK(vmmc_next_ns(&v) == 3195800 + 808000);
    vmmc_timeout(&v, 4003800);
    CHECK(sent_count == 3 && is(2, VMW_DU, 0, 8192, 808));
    CHECK(sent[2].header.flags == VMW_LAST && sent[2].data[0] == 3);
    CHECK(counted(&v, page + VMMC_PENDING_AT) == 0 && counted(&v, page + VMMC_ERRORS_AT) == 0);
    CHECK(vmmc_next_ns(&v) == UINT64_MAX);
    free(v.leaving);
}

static void test_transfers_follow_one_another(void)
{
    struct vmmc v;
    begin(&v, &CONFIG);
    import(&v, 0);
    for (unsigned i = 0; i < VMMC_TRANSFERS + 1; i++)
        store(&v, 0, VMMC_DU, transfer(0, 0, 8 * i, 8), 8);
    CHECK(counted(&v, VMMC_DU + VMMC_PENDING_AT) == VMMC_TRANSFERS);
    CHECK(counted(&v, VMMC_DU + VMMC_ERRORS_AT) == 1);
    for (unsigned i = 0; i < VMMC_TRANSFERS; i++) {
        uint64_t at = 2800 + 8000 * (uint64_t)(i + 1);
        CHECK(vmmc_next_ns(&v) == at);
        vmmc_timeout(&v, at);
        CHECK(sent_count == i + 1 && is(i, VMW_DU, 0, 8 * i, 8) && sent[i].header.count == i);
    }
    free(v.leaving);
}

static void test_transfers_beyond_either_end_are_refused(void)
{
    struct vmmc v;
    begin(&v, &CONFIG);
    import(&v, 0);
    const struct {
        uint64_t page, word;
        unsigned size;
    } bad[] = {
        {0, transfer(0, 3 * VMMC_PAGE - 7, 0, 8), 8},
        {0, transfer(0, 0, 4 * VMMC_PAGE - 7, 8), 8},
        {0, transfer(1, 0, 0, 8), 8},
        {0, transfer(255, 0, 0, 8), 8},
        {0, transfer(0, 0, 0, 0), 8}, // 65,536 bytes
        {1, transfer(0, 0, 0, 8), 8},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const uint64_t page = VMMC_DU + bad[i].page * VMMC_PAGE;
        uint64_t errors = counted(&v, page + VMMC_ERRORS_AT);
        store(&v, 0, page, bad[i].word, bad[i].size);
        CHECK(counted(&v, page + VMMC_ERRORS_AT) == errors + 1);
        CHECK(vmmc_next_ns(&v) == UINT64_MAX);
    }
    // Who imports next begins at zero; transfers that are under way are the adapter's to count.
    store(&v, 0, VMMC_DU + VMMC_ERRORS_AT, 0, 8);
    store(&v, 0, VMMC_DU + VMMC_PENDING_AT, 7, 8);
    CHECK(counted(&v, VMMC_DU + VMMC_ERRORS_AT) == 0);
    CHECK(counted(&v, VMMC_DU + VMMC_PENDING_AT) == 0);
    CHECK(counted(&v, VMMC_DU + VMMC_PAGE + VMMC_ERRORS_AT) == 1);
    // Half a word starts nothing.
    store(&v, 0, VMMC_DU, transfer(0, 0, 0, 8), 4);
    CHECK(vmmc_next_ns(&v) == UINT64_MAX);
    free(v.leaving);
}

static void test_only_an_export_of_that_generation_is_written(void)
{
    struct vmmc v;
    begin(&v, &OTHER);
    make_list(0, 1, 2);
    export(&v, 3, 9, 2, 0);
    const uint8_t data[VMMC_PAGE] = {0xaa, 0xbb, 0xcc};
    struct vmmc_packet packet = {.version = 1, .kind = VMW_AU, .sender = 1, .receiver = 2};
    packet.export = 3;
    packet.generation = 9;
    packet.offset = VMMC_PAGE + 5;
    packet.length = 3;
    deliver(&v, &packet, data);
    CHECK(memcmp(memory + VMMC_PAGE + 5, data, 3) == 0 && memory[VMMC_PAGE + 8] == 0);
    CHECK(counted(&v, VMMC_WRITTEN_AT) == 1 && sent_count == 0);

    const struct vmmc_packet good = packet;
    struct {
        uint32_t export_id, generation, offset, length;
    } bad[] = {
        {4, 9, 0, 3},   {3, 8, 0, 3}, {3, 10, 0, 3},  {3, 9, 2 * VMMC_PAGE, 3}, {240, 9, 0, 3},
        {~0u, 9, 0, 3}, {4, 0, 0, 3}, {3, 9, ~0u, 3}, {3, 9, VMMC_PAGE - 2, 3},
    };
    uint8_t before[sizeof memory];
    memcpy(before, memory, sizeof memory);
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        packet = good;
        packet.export = bad[i].export_id;
        packet.generation = bad[i].generation;
        packet.offset = bad[i].offset;
        deliver(&v, &packet, data);
        CHECK(memcmp(before, memory, sizeof memory) == 0);
        CHECK(counted(&v, VMMC_REFUSED_AT) == i + 1 && sent_count == i + 1);
        CHECK(is(i, VMW_NACK, 0, bad[i].offset, 0) && sent[i].header.receiver == 1);
        CHECK(sent[i].header.export == bad[i].export_id &&
              sent[i].header.generation == bad[i].generation);
    }
    // A NACK is counted and not answered.
    unsigned answers = sent_count;
    packet = good;
    packet.kind = VMW_NACK;
    packet.length = 0;
    deliver(&v, &packet, data);
    CHECK(counted(&v, VMMC_NACKS_AT) == 1 && sent_count == answers);
    free(v.leaving);
}

static void test_a_full_fifo_is_noticed(void)
{
    struct vmmc v;
    struct vmmc_config small = CONFIG;
    small.fifo_bytes = 4128; // 103 packets of 40 bytes, 200 ns each on the line
    begin(&v, &small);
    bind(&v, 0, 2, 0, VMMC_ENABLED);
    for (unsigned i = 0; i < 103; i++)
        store(&v, 1000, VMMC_AU + 8 * i, i, 8);
    CHECK(sent_count == 103 && !v.overflow);
    store(&v, 1199, VMMC_AU, 0, 1); // the first has not left
    CHECK(sent_count == 103 && v.overflow);
    v.overflow = false;
    store(&v, 1200, VMMC_AU, 0, 8);
    CHECK(sent_count == 104 && !v.overflow);
    free(v.leaving);
}

// Whatever is stored, in whatever pieces: when all packets have arrived, the other node's memory is
// as if each store had been made there.
static void test_random_stores_arrive_as_they_were_made(void)
{
    unsigned long long state = 88172645463325252ull;
    for (unsigned round = 0; round < 200; round++) {
        struct vmmc a, b;
        begin(&b, &OTHER);
        begin(&a, &CONFIG);
        uint8_t expected[4 * VMMC_PAGE] = {0};
        for (unsigned page = 0; page < 4; page++)
            bind(&a, page, 2, 3 - page, VMMC_ENABLED | (page % 2 ? VMMC_COMBINE : 0));
        make_list(0, 8, 4);
        export(&b, 3, 9, 4, 0);
        uint64_t now = 0, at = VMMC_AU;
        for (unsigned i = 0; i < 300; i++) {
            unsigned long long draw = next_random(&state);
            unsigned size = 1u << (draw & 3);
            if (draw >> 2 & 1 || at + size > VMMC_BINDINGS)
                at = VMMC_AU + (draw >> 8) % (4 * VMMC_PAGE);
            if (at % VMMC_PAGE + size > VMMC_PAGE) // QEMU divides such a store
                size = 1;
            now += (draw >> 40) % 64 ? 8 : 1500;
            vmmc_timeout(&a, now);
            uint64_t value = next_random(&state);
            store(&a, now, at, value, size);
            uint64_t page = (at - VMMC_AU) / VMMC_PAGE;
            if (page < 4)
                memcpy(expected + (3 - page) * VMMC_PAGE + at % VMMC_PAGE, &value, size);
            at += size;
        }
        vmmc_timeout(&a, now + CONFIG.combine_timeout_ns);
        CHECK(vmmc_next_ns(&a) == UINT64_MAX && !a.overflow);
        unsigned packets = sent_count;
        for (unsigned i = 0; i < packets; i++) {
            const struct vmmc_packet *p = &sent[i].header;
            CHECK(p->sequence == i && p->length <= CONFIG.combine_bytes && p->length);
            CHECK(p->offset / VMMC_PAGE == (p->offset + p->length - 1) / VMMC_PAGE);
            deliver(&b, p, sent[i].data);
        }
        CHECK(sent_count == packets && counted(&b, VMMC_WRITTEN_AT) == packets);
        for (unsigned page = 0; page < 4; page++)
            CHECK(memcmp(memory + (11 - page) * VMMC_PAGE, expected + page * VMMC_PAGE,
                         VMMC_PAGE) == 0);
        free(a.leaving);
        free(b.leaving);
    }
}

int main(void)
{
    RUN(test_options);
    RUN(test_stores_are_combined_until_one_of_six_reasons);
    RUN(test_what_is_not_bound_stays_here);
    RUN(test_a_transfer_is_read_and_leaves_page_by_page);
    RUN(test_transfers_follow_one_another);
    RUN(test_transfers_beyond_either_end_are_refused);
    RUN(test_only_an_export_of_that_generation_is_written);
    RUN(test_a_full_fifo_is_noticed);
    RUN(test_random_stores_arrive_as_they_were_made);
    printf("%u passed, 0 failed\n", tests_passed);
    return 0;
}
