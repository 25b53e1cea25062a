/* SPDX-License-Identifier: Apache-2.0 */
/* The two queues by themselves, and how many bursts and facks streams of all lengths take. */
#include "expect.h"
#include "rig.h"

#include <stdlib.h>

enum { SMALL = 88 /* fragments with bodies of 8 bytes */ };

static uint8_t buffer[700000];
static uint8_t stream[700000];

static struct dce_pdu piece(uint16_t fragment, uint8_t flags, const uint8_t *body, uint16_t length)
{
    return (struct dce_pdu){.flags1 = DCE_FRAGMENT | flags,
                            .fragment = fragment,
                            .serial = fragment,
                            .length = length,
                            .body = body};
}

static enum dce_insert put(struct dce_recvq *queue, uint16_t fragment, uint8_t flags,
                           const char *body)
{
    struct dce_pdu pdu = piece(fragment, flags, (const uint8_t *)body, (uint16_t)strlen(body));

    return dce_recvq_insert(queue, &pdu);
}

static void fragments_in_any_order(void)
{
    static const char *const bodies[] = {"zero", "1", "", "three!", "4four", "end"};
    unsigned order[6] = {0, 1, 2, 3, 4, 5};

    for (unsigned round = 0; round < 720; round++) {
        struct dce_recvq queue;
        unsigned rest = round;

        /* The permutation of this number. */
        for (unsigned i = 0; i < 6; i++) {
            unsigned swap = i + rest % (6 - i), kept = order[i];

            rest /= 6 - i;
            order[i] = order[swap];
            order[swap] = kept;
        }
        dce_recvq_init(&queue, buffer, dce_recvq_room(19));
        for (unsigned i = 0; i < 6; i++) {
            EXPECT(!queue.complete);
            EXPECT(put(&queue, (uint16_t)order[i], order[i] == 5 ? DCE_LAST : 0,
                       bodies[order[i]]) == DCE_NEW);
            EXPECT(put(&queue, (uint16_t)order[i], order[i] == 5 ? DCE_LAST : 0,
                       bodies[order[i]]) == DCE_OLD);
        }
        EXPECT(queue.complete && !queue.overflow && queue.length == 19);
        EXPECT(memcmp(buffer, "zero1three!4fourend", 19) == 0);
    }
}

static void a_stream_that_is_too_long_ends_as_such(void)
{
    for (unsigned backwards = 0; backwards < 2; backwards++) {
        struct dce_recvq queue;

        dce_recvq_init(&queue, buffer, 10000);
        for (unsigned i = 0; i < 20; i++) {
            uint16_t fragment = (uint16_t)(backwards ? 19 - i : i);
            struct dce_pdu pdu = piece(fragment, fragment == 19 ? DCE_LAST : 0, stream, 1000);

            EXPECT(dce_recvq_insert(&queue, &pdu) == DCE_NEW);
            EXPECT(queue.length <= queue.early_at && queue.early_at <= queue.room);
        }
        EXPECT(queue.complete && queue.overflow);
    }
}

/* ---- sending ---- */

static struct dce_xmitq xmitq;
static struct dce_recvq recvq;
static uint8_t memory[DCE_SLOTS * 8192];

struct tally {
    unsigned bursts, facks, fragments, longest;
};

static struct dce_fack fack_now(const struct dce_pdu *of, const struct dce_offer *offer,
                                struct dce_pdu *pdu)
{
    static uint8_t body[DCE_CONTROL_BODY];
    struct dce_fack fack;
    bool has_body;

    *pdu = (struct dce_pdu){0};
    recvq_fack(&recvq, offer, of->serial, pdu, body);
    EXPECT(dce_fack_decode(pdu, &fack, &has_body));
    return fack;
}

/* Sends what may be sent; then its facks come back. */
static void burst_of(const struct dce_offer *offer, struct tally *tally)
{
    struct dce_fack facks[DCE_SLOTS];
    struct dce_packet packet;
    uint16_t acked[DCE_SLOTS];
    unsigned asking = 0, burst = 0;

    for (; dce_xmitq_next(&xmitq, 0, &packet); burst++) {
        struct dce_pdu pdu;

        EXPECT(dce_recvq_insert(&recvq, &packet.pdu) == DCE_NEW);
        if (!dce_recvq_asks(&recvq, &packet.pdu))
            continue;
        facks[asking] = fack_now(&packet.pdu, offer, &pdu);
        acked[asking++] = pdu.fragment;
    }
    EXPECT(xmitq.outstanding <= xmitq.window);
    for (unsigned i = 0; i < asking; i++)
        EXPECT(dce_xmitq_fack(&xmitq, acked[i], &facks[i], false));
    tally->bursts++;
    tally->fragments += burst;
    tally->facks += asking;
    if (burst > tally->longest)
        tally->longest = burst;
}

static void start(enum dce_policy policy, unsigned fragment, size_t length)
{
    const struct dce_xmitq_settings settings = {policy, fragment, 2 * DCE_SECOND_NS};
    const struct dce_pdu header = {.ptype = DCE_REQUEST};
    const struct dce_peer to = {1, 2};

    dce_xmitq_init(&xmitq, &settings, memory);
    dce_recvq_init(&recvq, buffer, dce_recvq_room(length));
    dce_xmitq_start(&xmitq, 0, &header, &to, stream, length);
}

/* Sends a stream whose facks come back when its burst is out. */
static struct tally stream_of(enum dce_policy policy, unsigned fragment, unsigned window_kib,
                              size_t length, bool *in_order)
{
    const struct dce_offer offer = {(uint16_t)window_kib, fragment};
    struct tally tally = {0};

    start(policy, fragment, length);
    while (!recvq.complete && tally.bursts < 100000)
        burst_of(&offer, &tally);
    *in_order = recvq.length == length && memcmp(buffer, stream, length) == 0;
    EXPECT(dce_xmitq_all_sent(&xmitq) && xmitq.resent == 0);
    return tally;
}

/* bursts of 1, 2, 4, 8, 8...: floor(log2 k) facks below 16 PDUs, then one each 8 (the paper's
 * text). */
static unsigned facks_of_window(unsigned pdus)
{
    unsigned facks = 0;

    if (pdus > 15)
        return 3 + (pdus - 15 + 7) / 8;
    while (pdus >>= 1)
        facks++;
    return facks;
}

static void bursts_and_facks_of_every_length(void)
{
    static const unsigned fragments[] = {1464, 2048, 4096, 8192};

    for (unsigned f = 0; f < sizeof(fragments) / sizeof(*fragments); f++) {
        unsigned body = (fragments[f] - DCE_HEADER) / 8 * 8;

        for (size_t length = 0; length <= 200000; length += length % body == 0 ? 1 : body - 1) {
            unsigned pdus = length == 0 ? 1 : (unsigned)((length + body - 1) / body);
            bool in_order;
            struct tally tally = stream_of(DCE_WINDOW, fragments[f], 64, length, &in_order);

            EXPECT_OF(tally.fragments == pdus && in_order, "%zu", length);
            EXPECT_OF(tally.facks == facks_of_window(pdus), "%zu: %u", length, tally.facks);
            EXPECT_OF(tally.bursts == tally.facks + 1 && tally.longest <= 8, "%zu", length);
        }
    }
}

/* Where each fack comes back after its burst is out (Table 2's S8 has 1, 3, 4 of 2, 4, 6 PDUs). */
static void facks_in_the_middle_of_bursts(void)
{
    static const struct {
        unsigned pdus, facks;
    } table[] = {{1, 0}, {2, 1}, {3, 2},  {4, 3},  {5, 4}, {6, 4},
                 {8, 5}, {9, 6}, {13, 6}, {16, 7}, {17, 8}};

    for (unsigned i = 0; i < sizeof(table) / sizeof(*table); i++)
        for (size_t less = 0; less < 4016; less += 4015) {
            size_t length = table[i].pdus * 4016u - less;
            bool in_order;
            struct tally tally = stream_of(DCE_HALVES, 4096, 32, length, &in_order);

            EXPECT_OF(tally.fragments == table[i].pdus && in_order, "%zu", length);
            EXPECT_OF(tally.facks == table[i].facks, "%u: %u", table[i].pdus, tally.facks);
        }
}

static void the_sizes_of_osf(void)
{
    bool in_order;
    struct tally tally = stream_of(DCE_OSF, 4096, 24, 100000, &in_order);

    /* 944 bytes in the first fragment, then 1384 each: its bursts have grown from 4 to 8. */
    EXPECT(in_order && tally.fragments == 1 + (100000 - 944 + 1383) / 1384);
    EXPECT_OF(tally.longest == 8, "%u", tally.longest);
}

static void windows_are_kept(void)
{
    static const unsigned windows[] = {1, 2, 3, 8, 16, 32, 64};

    for (unsigned policy = 0; policy < DCE_POLICIES; policy++)
        for (unsigned i = 0; i < sizeof(windows) / sizeof(*windows); i++) {
            unsigned w = windows[i], fragment = policy == DCE_OSF ? 1464 : 4096;
            unsigned most = w <= 2 ? w : w * 1024 / fragment;
            bool in_order;
            struct tally tally;

            if (most == 0)
                continue;
            tally = stream_of(policy, fragment, w, 150000, &in_order);
            EXPECT_OF(in_order && tally.longest <= most, "%u KiB: %u", w, tally.longest);
        }
}

/* 65536 fragments and more: their numbers and serials begin again. */
static void numbers_wrap_around(void)
{
    for (unsigned policy = 0; policy < DCE_OSF; policy++) {
        bool in_order;
        struct tally tally = stream_of(policy, SMALL, 2, 8 * 70000, &in_order);

        EXPECT(in_order && tally.fragments == 70000 && xmitq.next == (uint16_t)70000);
        tally = stream_of(policy, SMALL, 64, 8 * 70000, &in_order);
        EXPECT(in_order && tally.fragments == 70000 && xmitq.serial == (uint16_t)70000);
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"fragments_in_any_order", fragments_in_any_order},
        {"a_stream_that_is_too_long_ends_as_such", a_stream_that_is_too_long_ends_as_such},
        {"bursts_and_facks_of_every_length", bursts_and_facks_of_every_length},
        {"facks_in_the_middle_of_bursts", facks_in_the_middle_of_bursts},
        {"the_sizes_of_osf", the_sizes_of_osf},
        {"windows_are_kept", windows_are_kept},
        {"numbers_wrap_around", numbers_wrap_around},
    };

    for (size_t i = 0; i < sizeof(stream); i++)
        stream[i] = rig_byte(1, i);
    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
