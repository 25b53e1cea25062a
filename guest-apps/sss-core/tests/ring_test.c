/* SPDX-License-Identifier: Apache-2.0 */

/* Rings over plain memory: each record comes out as it went in, whatever sizes and delays there
 * are; nothing that the other side writes makes a reader leave its ring. */
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "ring.h"

enum { SIZE = 4096, PENDING = SIZE / 16 + 1, STEPS = 20000, SEEDS = 20 };

/* Both ends. What the writer has stored reaches the reader at once, words too. */
struct rig {
    uint8_t ring[SIZE];
    uint32_t tail, head; /* as announced */
    struct ring_writer writer;
    struct ring_reader reader;
    unsigned skips;
};

static void rig_open(struct rig *rig)
{
    memset(rig, 0, sizeof(*rig));
    rig->writer.size = SIZE;
    rig->reader = (struct ring_reader){.ring = rig->ring, .size = SIZE};
}

static uint8_t byte_of(uint32_t sequence, uint32_t at)
{
    return (uint8_t)(sequence * 31 + at * 7 + 1);
}

static bool put(struct rig *rig, uint32_t length)
{
    struct ring_place place = ring_make_place(&rig->writer, rig->head, length);

    if (place.skips) {
        EXPECT(place.skip.length == RING_SKIP && place.skip_at + RING_WORD <= SIZE);
        memcpy(rig->ring + place.skip_at, &place.skip, sizeof(place.skip));
        rig->tail = rig->writer.tail - (place.fits ? ring_bytes(length) : 0);
        rig->skips++;
    }
    if (!place.fits)
        return false;
    EXPECT(place.at % RING_WORD == 0 && place.at + ring_bytes(length) <= SIZE);
    EXPECT(rig->writer.tail - rig->reader.head <= SIZE);
    memcpy(rig->ring + place.at, &place.record, sizeof(place.record));
    for (uint32_t i = 0; i < length; i++)
        rig->ring[place.at + sizeof(place.record) + i] = byte_of(place.record.sequence, i);
    rig->tail = rig->writer.tail;
    return true;
}

static enum ring_taken take(struct rig *rig, struct ring_message *message)
{
    enum ring_taken taken = ring_take(&rig->reader, rig->tail, message);

    if (rig->reader.tell)
        rig->head = ring_tell(&rig->reader);
    return taken;
}

static bool is_whole(const struct rig *rig, const struct ring_message *message, uint32_t length)
{
    if (message->length != length)
        return false;
    for (uint32_t i = 0; i < length; i++)
        if (message->bytes[i] != byte_of(rig->reader.sequence, i))
            return false;
    return true;
}

static void release(struct rig *rig, const struct ring_message *message)
{
    ring_release(&rig->reader, message);
    if (rig->reader.tell)
        rig->head = ring_tell(&rig->reader);
}

static void test_records_come_in_order_and_whole(void)
{
    static struct rig rig;

    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        uint32_t lengths[PENDING], first = 0, count = 0, passed = 0;
        struct ring_message message;

        srand(seed);
        rig_open(&rig);
        for (unsigned step = 0; step < STEPS; step++) {
            bool is_long = rand() % 8 == 0;
            uint32_t length = (uint32_t)rand() % (is_long ? ring_most(SIZE) + 1 : 100);

            if (rand() % 2 != 0 && put(&rig, length)) {
                lengths[(first + count++) % PENDING] = length;
                continue;
            }
            if (take(&rig, &message) != RING_MESSAGE) {
                EXPECT_OF(count == 0, "seed %u step %u", seed, step);
                continue;
            }
            EXPECT_OF(is_whole(&rig, &message, lengths[first % PENDING]), "seed %u step %u", seed,
                      step);
            release(&rig, &message);
            first++;
            count--;
            passed++;
        }
        EXPECT_OF(passed > STEPS / 8 && rig.skips > 10, "seed %u: %u passed", seed, passed);
    }
}

/* A reader that has taken everything has announced enough: two tries find room, wherever the ring
 * is. */
static void test_an_empty_ring_has_room_for_the_longest(void)
{
    static struct rig rig;
    struct ring_message message;

    for (uint32_t before = 0; before < SIZE; before += RING_WORD) {
        rig_open(&rig);
        for (uint32_t at = 0; at < before; at += RING_WORD) {
            EXPECT(put(&rig, 0) && take(&rig, &message) == RING_MESSAGE);
            release(&rig, &message);
        }
        if (!put(&rig, ring_most(SIZE))) {
            EXPECT(take(&rig, &message) == RING_NOTHING); /* the skip alone */
            EXPECT_OF(put(&rig, ring_most(SIZE)), "at %u", before);
        }
        EXPECT(take(&rig, &message) == RING_MESSAGE && message.length == ring_most(SIZE));
    }
}

static void test_the_head_is_announced_once_a_quarter(void)
{
    static struct rig rig;
    struct ring_message message;
    unsigned times = 0;

    rig_open(&rig);
    for (unsigned i = 0; i < 16 * SIZE / 64; i++) { /* 64 bytes a record: no skips */
        uint32_t before = rig.head;

        EXPECT(put(&rig, 56) && take(&rig, &message) == RING_MESSAGE);
        release(&rig, &message);
        times += rig.head != before;
    }
    EXPECT_OF(times == 16 * RING_QUARTERS && rig.skips == 0, "%u times", times);
}

/* Positions go over 2^32. */
static void test_positions_wrap(void)
{
    static struct rig rig;
    struct ring_message message;

    rig_open(&rig);
    rig.writer.tail = rig.tail = rig.head = rig.reader.head = rig.reader.announced =
        (uint32_t)-SIZE;
    for (unsigned i = 0; i < 1000; i++) {
        EXPECT(put(&rig, 40) || put(&rig, 40));
        EXPECT(take(&rig, &message) == RING_MESSAGE && is_whole(&rig, &message, 40));
        release(&rig, &message);
    }
    EXPECT(rig.reader.head < SIZE * 20u);
}

/* Neither a record that was there before nor one behind the next is taken for the next. */
static void test_a_record_out_of_turn_breaks_the_ring(void)
{
    static const int32_t APART[] = {-2, -1, 1, 2};
    static struct rig rig;
    struct ring_message message;

    for (unsigned i = 0; i < sizeof(APART) / sizeof(*APART); i++) {
        rig_open(&rig);
        for (unsigned before = 0; before < 3; before++) {
            EXPECT(put(&rig, 40) && take(&rig, &message) == RING_MESSAGE);
            release(&rig, &message);
        }
        rig.writer.sequence += (uint32_t)APART[i];
        EXPECT_OF(put(&rig, 40) && take(&rig, &message) == RING_BROKEN, "%d apart", APART[i]);
    }
}

/* What a reader gets is inside its ring, or it says that the ring is broken. */
static void test_nothing_that_is_written_is_believed(void)
{
    static struct rig rig;
    struct ring_message message;
    unsigned broken = 0, taken = 0;

    for (unsigned seed = 0; seed < 20000; seed++) {
        uint32_t *words = (uint32_t *)(void *)rig.ring;

        srand(seed);
        rig_open(&rig);
        for (unsigned i = 0; i < SIZE / 4; i += 2) {
            words[i] = rand() % 4 == 0 ? RING_SKIP : (uint32_t)rand() % (2 * SIZE);
            words[i + 1] = 1 + (uint32_t)rand() % 2;
        }
        rig.tail = rand() % 3 == 0 ? (uint32_t)rand() : (uint32_t)rand() % (SIZE + 16) & ~7u;
        for (unsigned i = 0; i < 3; i++) {
            enum ring_taken what = take(&rig, &message);

            if (what != RING_MESSAGE) {
                broken += what == RING_BROKEN;
                break;
            }
            taken++;
            EXPECT_OF(message.bytes >= rig.ring && message.length <= SIZE &&
                          message.bytes + message.length <= rig.ring + SIZE,
                      "seed %u", seed);
            release(&rig, &message);
        }
    }
    EXPECT_OF(broken > 1000 && taken > 100, "%u broken, %u taken", broken, taken);
}

int main(void)
{
    static const struct test tests[] = {
        {"records come in order and whole", test_records_come_in_order_and_whole},
        {"an empty ring has room for the longest", test_an_empty_ring_has_room_for_the_longest},
        {"the head is announced once a quarter", test_the_head_is_announced_once_a_quarter},
        {"positions wrap", test_positions_wrap},
        {"a record out of turn breaks the ring", test_a_record_out_of_turn_breaks_the_ring},
        {"nothing that is written is believed", test_nothing_that_is_written_is_believed},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
