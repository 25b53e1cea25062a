// SPDX-License-Identifier: GPL-2.0-or-later
// What kernels have of the backplane's adapter, without QEMU: messages to one another, and what the
// adapter tells them.
#include "check.h"
#include "vmmc_world.h"

enum { TOLD_HEADER_AT = 26, TOLD_DATA_AT = 58 };

// What the kernel heard as number `number`; its frame is checked.
static struct vmmc_packet heard_header(unsigned number)
{
    static const uint8_t HEAD[] = "\xff\xff\xff\xff\xff\xff\x02\x53\x48\x52\x00\x00\x88\xb5"
                                  "sundial-vmmc";
    struct vmmc_packet header;
    CHECK(number < heard_count);
    CHECK(memcmp(heard[number].frame, HEAD, TOLD_HEADER_AT) == 0);
    memcpy(&header, heard[number].frame + TOLD_HEADER_AT, sizeof header);
    uint32_t data = header.kind == VMW_CONTROL ? header.length : 0;
    CHECK(heard[number].length == (data > 2 ? TOLD_DATA_AT + data : 60));
    return header;
}

static void test_a_message_goes_from_kernel_to_kernel(void)
{
    struct vmmc a, b;
    begin(&b, &OTHER);
    begin(&a, &CONFIG);
    bind(&a, 0, 2, 0, VMMC_ENABLED | VMMC_COMBINE);
    for (unsigned i = 0; i < 8; i++)
        store(&a, 100, VMMC_MESSAGE_AT + 8 * i, 0x0101010101010101 * (i + 1), 8);
    store(&a, 108, VMMC_AU, 7, 8);
    store(&a, 116, VMMC_CONTROL_AT, 2 | 64 << 16, 8);
    // What was stored before is there before.
    CHECK(sent_count == 2 && is(0, VMW_AU, VMW_GAP, 0, 8));
    CHECK(is(1, VMW_CONTROL, 0, 0, 64));
    const struct vmmc_packet *p = &sent[1].header;
    CHECK(p->sender == 1 && p->receiver == 2 && !p->flags && !p->export && !p->generation &&
          !p->count);
    for (unsigned i = 0; i < 64; i++)
        CHECK(sent[1].data[i] == i / 8 + 1);
    CHECK(heard_count == 0);
    deliver(&b, p, sent[1].data);
    CHECK(sent_count == 2 && heard_count == 1 && counted(&b, VMMC_TOLD_AT) == 1);
    struct vmmc_packet header = heard_header(0);
    CHECK(memcmp(&header, p, sizeof header) == 0);
    CHECK(memcmp(heard[0].frame + TOLD_DATA_AT, sent[1].data, 64) == 0);
    free(a.leaving);
    free(b.leaving);
}

static void test_messages_have_a_length_and_a_node(void)
{
    struct vmmc v;
    begin(&v, &CONFIG);
    const uint64_t bad[] = {
        0 | 64 << 16,     1 | 64 << 16,  65 | 64 << 16,
        65535 | 64 << 16, 2 | 257 << 16, 2 | 65535ul << 16,
    };
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        store(&v, 0, VMMC_CONTROL_AT, bad[i], 8);
        CHECK(sent_count == 0 && counted(&v, VMMC_NOWHERE_AT) == i + 1);
    }
    store(&v, 0, VMMC_CONTROL_AT, 2 | 64 << 16, 4); // half a word
    CHECK(sent_count == 0);
    store(&v, 0, VMMC_CONTROL_AT, 2 | 256 << 16, 8);
    store(&v, 0, VMMC_CONTROL_AT, 2, 8);
    CHECK(is(0, VMW_CONTROL, 0, 0, 256) && is(1, VMW_CONTROL, 0, 0, 0));
    // The message's place is memory up to its end.
    store(&v, 0, VMMC_MESSAGE_AT + 248, ~0ull, 8);
    store(&v, 0, VMMC_MESSAGE_AT + 252, 5, 8);
    store(&v, 0, VMMC_MESSAGE_AT + 256, 5, 8);
    CHECK(counted(&v, VMMC_MESSAGE_AT + 248) == ~0ull && !counted(&v, VMMC_MESSAGE_AT + 256));
    // One that is longer, or not whole, is dropped.
    struct vmmc_packet packet = {.version = 1, .kind = VMW_CONTROL, .sender = 2, .receiver = 1};
    const uint8_t data[VMMC_PAGE] = {0};
    packet.length = 257;
    deliver(&v, &packet, data);
    uint8_t bytes[VMW_HEADER + 8] = {0};
    packet.length = 9;
    memcpy(bytes, &packet, sizeof packet);
    vmmc_receive(&v, 0, bytes, sizeof bytes);
    packet.kind = VMW_FIFO; // never on the way
    packet.length = 0;
    deliver(&v, &packet, data);
    CHECK(heard_count == 0 && sent_count == 2 && counted(&v, VMMC_REFUSED_AT) == 3);
    free(v.leaving);
}

static void test_a_binding_or_a_transfer_notifies(void)
{
    struct vmmc v;
    begin(&v, &CONFIG);
    bind(&v, 0, 2, 0, VMMC_ENABLED | VMMC_NOTIFY);
    bind(&v, 1, 2, 1, VMMC_ENABLED | VMMC_COMBINE | VMMC_NOTIFY);
    bind(&v, 2, 2, 1, VMMC_ENABLED | VMMC_COMBINE);
    store(&v, 0, VMMC_AU, 1, 8);
    store(&v, 8, VMMC_AU + VMMC_PAGE, 1, 8);
    store(&v, 16, VMMC_AU + VMMC_PAGE + 8, 1, 8);
    store(&v, 24, VMMC_AU + 2 * VMMC_PAGE + 16, 1, 8); // would go on, but for its flags
    vmmc_timeout(&v, 2000);
    CHECK(sent_count == 3 && is(1, VMW_AU, VMW_GAP, VMMC_PAGE, 16));
    CHECK(sent[0].header.flags == VMW_NOTIFY && sent[1].header.flags == VMW_NOTIFY);
    CHECK(sent[2].header.flags == 0);
    // A transfer does it once: when all of it is there.
    import(&v, 0);
    store(&v, 10000, VMMC_DU + VMMC_START_NOTIFY_AT, transfer(0, 0, 4000, 200), 8);
    store(&v, 10008, VMMC_DU + VMMC_START_AT, transfer(0, 0, 0, 8), 8);
    store(&v, 10016, VMMC_DU + 16, transfer(0, 0, 0, 8), 8); // no place to start at
    vmmc_timeout(&v, 10000000);
    CHECK(sent_count == 6 && counted(&v, VMMC_DU + VMMC_PENDING_AT) == 0);
    CHECK(is(3, VMW_DU, 0, 4000, 96) && sent[3].header.flags == 0);
    CHECK(is(4, VMW_DU, 0, 4096, 104) && sent[4].header.flags == (VMW_NOTIFY | VMW_LAST));
    CHECK(is(5, VMW_DU, 0, 0, 8) && sent[5].header.flags == VMW_LAST);
    free(v.leaving);
}

static void test_the_kernel_is_told_of_notifications_and_refusals(void)
{
    struct vmmc v;
    begin(&v, &OTHER);
    make_list(8, 0, 1);
    export(&v, 3, 9, 1, 8);
    struct vmmc_packet packet = {.version = 1, .kind = VMW_AU, .sender = 1, .receiver = 2};
    packet.export = 3;
    packet.generation = 9;
    packet.length = 1;
    packet.sequence = 77;
    uint8_t data[VMMC_PAGE] = {1};
    deliver(&v, &packet, data);
    CHECK(heard_count == 0 && memory[0] == 1);
    packet.flags = VMW_NOTIFY;
    data[0] = 2;
    deliver(&v, &packet, data);
    CHECK(heard_count == 1 && heard[0].written == 2); // after the data
    struct vmmc_packet header = heard_header(0);
    CHECK(memcmp(&header, &packet, sizeof header) == 0);
    packet.kind = VMW_DU;
    packet.flags = VMW_NOTIFY | VMW_LAST;
    deliver(&v, &packet, data);
    CHECK(heard_count == 2 && heard_header(1).kind == VMW_DU);
    // What is refused notifies no task; the sender's kernel learns of it.
    packet.generation = 8;
    deliver(&v, &packet, data);
    CHECK(heard_count == 2 && sent_count == 1 && sent[0].header.kind == VMW_NACK);
    packet = sent[0].header;
    packet.sender = 1;
    packet.receiver = 2;
    deliver(&v, &packet, data);
    CHECK(heard_count == 3 && counted(&v, VMMC_NACKS_AT) == 1 && sent_count == 1);
    header = heard_header(2);
    CHECK(memcmp(&header, &packet, sizeof header) == 0);
    free(v.leaving);
}

// Whether the kernel heard of the FIFO so, as number `number`.
static bool heard_fill(unsigned number, bool high, uint32_t fill)
{
    struct vmmc_packet p = heard_header(number);
    return p.kind == VMW_FIFO && p.flags == high && p.count == fill && p.sender == 1 &&
           p.receiver == 1 && p.length == 0;
}

static void test_a_filling_fifo_is_told_once_and_when_it_is_low(void)
{
    struct vmmc v;
    struct vmmc_config small = CONFIG;
    small.fifo_bytes = 4128; // three quarters 3096, a quarter 1032; packets of 40 bytes, 200 ns
    begin(&v, &small);
    bind(&v, 0, 2, 0, VMMC_ENABLED);
    for (unsigned i = 0; i < 77; i++)
        store(&v, 1000, VMMC_AU + 8 * i, i, 8);
    CHECK(heard_count == 0 && vmmc_next_ns(&v) == UINT64_MAX);
    store(&v, 1000, VMMC_AU, 0, 8);
    CHECK(heard_count == 1 && heard_fill(0, true, 3120));
    // 25 packets are low: 53 have left then.
    CHECK(vmmc_next_ns(&v) == 1000 + 53 * 200);
    store(&v, 5000, VMMC_AU, 0, 8); // 20 have left
    for (unsigned i = 0; i < 20; i++)
        store(&v, 5008, VMMC_AU, 0, 8);
    CHECK(heard_count == 1);
    vmmc_timeout(&v, 11600);
    CHECK(heard_count == 1 && vmmc_next_ns(&v) == 11600 + 21 * 200);
    vmmc_timeout(&v, 15799);
    CHECK(heard_count == 1);
    vmmc_timeout(&v, 15800);
    CHECK(heard_count == 2 && heard_fill(1, false, 1000));
    CHECK(vmmc_next_ns(&v) == UINT64_MAX);
    for (unsigned i = 0; i < 53; i++)
        store(&v, 15800, VMMC_AU, 0, 8);
    CHECK(heard_count == 3 && heard_fill(2, true, 3120));
    free(v.leaving);
}

static void test_the_engine_pauses_while_the_fifo_has_no_room_for_its_packet(void)
{
    struct vmmc v;
    struct vmmc_config fast = CONFIG;
    fast.link_rate_bps = fast.dma_rate_bps = 8000000; // 1 us a byte
    fast.fifo_bytes = 8256;                           // three quarters 6192, a quarter 2064
    begin(&v, &fast);
    import(&v, 0);
    bind(&v, 0, 2, 0, VMMC_ENABLED);
    // Three pieces of 4,096 bytes, read at once: 2,096 bytes may be there when one enters.
    store(&v, 0, VMMC_DU, transfer(0, 0, 0, 3 * VMMC_PAGE), 8);
    vmmc_timeout(&v, 4098800);
    CHECK(sent_count == 1 && v.fifo_fill == 4128 && vmmc_next_ns(&v) == 4098800 + 4096000);
    // 55 packets of 40 bytes behind it are on the line from 8,226,800 on, each 40 us.
    for (unsigned i = 0; i < 55; i++)
        store(&v, 5000000, VMMC_AU, i, 8);
    CHECK(heard_count == 1 && heard_fill(0, true, 4128 + 52 * 40) &&
          counted(&v, VMMC_HIGH_AT) == 1);
    // Read, but the FIFO is high: until 51 are left, of the 52 that were there or of the 55.
    vmmc_timeout(&v, 8194800);
    CHECK(sent_count == 56 && vmmc_next_ns(&v) == 8226800 + 40000);
    vmmc_timeout(&v, 8226800 + 40000);
    CHECK(sent_count == 56 && vmmc_next_ns(&v) == 8226800 + 4 * 40000);
    memory[9 * VMMC_PAGE] = 77; // of the second piece
    vmmc_timeout(&v, 8386799);
    CHECK(heard_count == 1 && sent_count == 56);
    vmmc_timeout(&v, 8386800); // the frame first: then it leaves, as it is in memory now
    CHECK(heard_count == 2 && heard_fill(1, false, 2040) && !counted(&v, VMMC_HIGH_AT));
    CHECK(sent_count == 57 && sent[56].data[0] == 77 && v.fifo_fill == 2040 + 4128);
    // The next one is read from now on. With the one before it the FIFO would be high, so that has
    // left first: behind 51 of 40 bytes.
    CHECK(vmmc_next_ns(&v) == 8386800 + 4096000);
    vmmc_timeout(&v, 12482800);
    CHECK(sent_count == 57 && vmmc_next_ns(&v) == 8386800 + 2040000 + 4128000);
    vmmc_timeout(&v, 14554800);
    CHECK(sent_count == 58 && v.fifo_fill == 4128 && sent[57].header.flags == VMW_LAST);
    CHECK(vmmc_next_ns(&v) == UINT64_MAX && heard_count == 2);
    free(v.leaving);
}

// Of one byte each the line takes 33: 165 ns, the engine reads one in 43 ns.
static void test_a_flood_of_short_transfers_leaves_the_last_quarter_free(void)
{
    struct vmmc v;
    struct vmmc_config config = CONFIG;
    config.dma_rate_bps = 184000000;
    unsigned begun = 0;
    begin(&v, &config);
    import(&v, 0);
    for (uint64_t now = 0; now < 600000; now += 80) {
        vmmc_timeout(&v, now);
        if (sent_count > SENT_MOST - 100)
            break;
        if (counted(&v, VMMC_DU + VMMC_PENDING_AT) == VMMC_TRANSFERS)
            continue;
        store(&v, now, VMMC_DU, transfer(0, 0, begun++ % VMMC_PAGE, 1), 8);
        CHECK(!v.overflow && v.fifo_fill <= 32768 / 4 * 3 && heard_count == 0);
    }
    // The line has never been idle since the first: 200 packets an engine ahead, at least.
    CHECK(sent_count > 600000 / 165 - 50 && v.fifo_fill > 32768 / 4 * 3 - 33);
    CHECK(counted(&v, VMMC_DU + VMMC_ERRORS_AT) == 0);
    for (unsigned i = 0; i < sent_count; i++)
        CHECK(sent[i].header.count == i && sent[i].header.flags == VMW_LAST);
    free(v.leaving);
}

// Against a FIFO that is stepped through each nanosecond.
static void test_random_fills_are_told_when_they_happen(void)
{
    enum { ROUNDS = 40, END_NS = 500000, STORES = 4000 };
    unsigned long long state = 1;
    unsigned all = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct vmmc v;
        struct vmmc_config small = CONFIG;
        small.fifo_bytes = 4128 + (uint32_t)(next_random(&state) % 4000);
        begin(&v, &small);
        bind(&v, 0, 2, 0, VMMC_ENABLED);
        struct {
            uint64_t end;
            uint32_t bytes;
        } line[STORES] = {{0}};
        unsigned first = 0, entered = 0, expected = 0;
        uint64_t free_ns = 0, next_store = 0;
        uint32_t fill = 0;
        bool high = false;
        for (uint64_t now = 0; now < END_NS; now++) {
            for (; first < entered && line[first].end <= now; first++)
                fill -= line[first].bytes;
            bool low = high && fill < small.fifo_bytes / 4;
            if (vmmc_next_ns(&v) <= now)
                vmmc_timeout(&v, now);
            if (low) {
                high = false;
                CHECK(heard_count == expected + 1 && heard_fill(expected, false, fill));
                expected++;
            }
            // In bursts, with pauses between.
            if (now >= next_store && entered < STORES && fill + 40 <= small.fifo_bytes) {
                unsigned size = 1u << next_random(&state) % 4;
                store(&v, now, VMMC_AU + 64, 0, size);
                free_ns = (free_ns > now ? free_ns : now) + 5 * (32 + size);
                line[entered].end = free_ns;
                line[entered++].bytes = 32 + size;
                fill += 32 + size;
                next_store = now + (next_random(&state) % 200 ? next_random(&state) % 60 : 40000);
                if (!high && fill > small.fifo_bytes / 4 * 3) {
                    high = true;
                    CHECK(heard_count == expected + 1 && heard_fill(expected, true, fill));
                    expected++;
                }
            }
            CHECK(heard_count == expected && sent_count == entered && !v.overflow);
        }
        all += expected;
        free(v.leaving);
    }
    CHECK(all > 5 * ROUNDS);
}

// ---- Whatever a guest and its peers do --------------------------------------------------------

static void read_anywhere(uint64_t address, void *bytes, uint64_t length)
{
    memset(bytes, 0, length);
    if (address < sizeof memory && length <= sizeof memory - address)
        memcpy(bytes, memory + address, length);
}

static void write_anywhere(uint64_t address, const void *bytes, uint64_t length)
{
    if (address < sizeof memory && length <= sizeof memory - address)
        memcpy(memory + address, bytes, length);
}

// Numbers that are likely to mean something, and any.
static uint64_t strange(unsigned long long *state)
{
    unsigned long long draw = next_random(state);
    return draw % 3 == 0 ? draw >> 8 & 0x10001000f000307 : draw % 3 == 1 ? draw >> 56 : draw;
}

static void test_nothing_that_is_stored_or_arrives_breaks_the_adapter(void)
{
    static const struct vmmc_world ANYWHERE = {send, read_anywhere, write_anywhere, tell};
    static const uint64_t PLACES[] = {0,        0x100,    0x1000,   0x10000, 0x100000, 0x101000,
                                      0x500000, 0x504000, 0x504100, 0x11000, 0x505000, 0x1300};
    unsigned long long state = 7;
    for (unsigned round = 0; round < 60; round++) {
        struct vmmc v;
        struct vmmc_config config = CONFIG;
        config.combine_bytes = round % 2 ? 4096 : 64;
        config.fifo_bytes = 1 << 20;
        begin(&v, &config);
        v.world = &ANYWHERE;
        uint64_t now = 0, refused = 0;
        for (unsigned i = 0; i < 2000 && !v.overflow; i++) {
            unsigned long long draw = next_random(&state);
            now += draw % 16 ? 8 : 3000;
            vmmc_timeout(&v, now);
            if (draw >> 8 & 3) {
                unsigned size = 1u << (draw >> 10 & 3);
                uint64_t at = PLACES[(draw >> 16) % (sizeof PLACES / sizeof *PLACES)] +
                              8 * ((draw >> 24) % 40);
                store(&v, now, at, strange(&state), size);
                continue;
            }
            uint8_t packet[VMW_PACKET_MOST] = {0};
            struct vmmc_packet header = {.version = 1, .sender = 2, .receiver = 1};
            header.kind = (uint8_t)(draw >> 16 & 7);
            header.flags = (uint8_t)(draw >> 24);
            header.export = (uint32_t)strange(&state);
            header.generation = (uint32_t)strange(&state);
            header.offset = (uint32_t)strange(&state);
            uint32_t length = (uint32_t)(draw >> 40) % (VMMC_PAGE + 1);
            header.length = draw >> 32 & 7 ? length : (uint32_t)strange(&state);
            memcpy(packet, &header, sizeof header);
            uint64_t before = counted(&v, VMMC_REFUSED_AT) + counted(&v, VMMC_WRITTEN_AT) +
                              counted(&v, VMMC_NACKS_AT);
            unsigned heard_before = heard_count;
            vmmc_receive(&v, now, packet, VMW_HEADER + length);
            uint64_t after = counted(&v, VMMC_REFUSED_AT) + counted(&v, VMMC_WRITTEN_AT) +
                             counted(&v, VMMC_NACKS_AT);
            // Each packet is written, refused, or reported to the kernel.
            CHECK(after == before + 1 ||
                  (after == before && header.kind == VMW_CONTROL && heard_count > heard_before));
            refused = counted(&v, VMMC_REFUSED_AT);
        }
        CHECK(refused && heard_count == counted(&v, VMMC_TOLD_AT));
        CHECK(v.overflow || sent_count == counted(&v, VMMC_PACKETS_AT));
        uint32_t next[VMMC_NODES + 1] = {0};
        for (unsigned i = 0; i < sent_count; i++) {
            const struct vmmc_packet *p = &sent[i].header;
            CHECK(p->receiver >= 1 && p->receiver <= VMMC_NODES && p->receiver != 1 &&
                  p->sender == 1);
            CHECK(p->sequence == next[p->receiver]++ && p->kind >= 1 && p->kind <= 4);
        }
        for (unsigned i = 0; i < heard_count; i++)
            CHECK(heard[i].length >= 60 && heard[i].length <= TOLD_DATA_AT + VMW_MESSAGE_MOST);
        free(v.leaving);
    }
}

int main(void)
{
    RUN(test_a_message_goes_from_kernel_to_kernel);
    RUN(test_messages_have_a_length_and_a_node);
    RUN(test_a_binding_or_a_transfer_notifies);
    RUN(test_the_kernel_is_told_of_notifications_and_refusals);
    RUN(test_a_filling_fifo_is_told_once_and_when_it_is_low);
    RUN(test_the_engine_pauses_while_the_fifo_has_no_room_for_its_packet);
    RUN(test_a_flood_of_short_transfers_leaves_the_last_quarter_free);
    RUN(test_random_fills_are_told_when_they_happen);
    RUN(test_nothing_that_is_stored_or_arrives_breaks_the_adapter);
    printf("%u passed, 0 failed\n", tests_passed);
    return 0;
}
