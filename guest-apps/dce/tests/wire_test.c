/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client against server over a wire with faults: every call is executed once and brings all bytes,
 * in bounded virtual time.
 */
#include "expect.h"
#include "rig.h"

#include <stdlib.h>

enum { LIMIT_S = 200 };

static const struct rig_settings plain = {
    .policy = DCE_WINDOW,
    .fragment = 4096,
    .window_kib = 32,
    .clients = 1,
    .latency_ns = 100000,
    .byte_ns = 800,
};

static struct rig rig;

static void expect_all_well(unsigned calls, const char *what, unsigned which)
{
    EXPECT_OF(rig_run(&rig, LIMIT_S * DCE_SECOND_NS), "%s %u", what, which);
    for (unsigned i = 0; i < rig.settings.clients; i++) {
        EXPECT_OF(rig.call[i].failed == 0, "%s %u: status %x", what, which, rig.call[i].status);
        EXPECT_OF(rig.call[i].done == calls, "%s %u", what, which);
    }
    EXPECT_OF(!rig.wrong_bytes, "%s %u", what, which);
    if ((rig.settings.semantics & (DCE_IDEMPOTENT | DCE_MAYBE)) == 0)
        EXPECT_OF(rig_most_executed(&rig) == 1, "%s %u", what, which);
    EXPECT_OF(rig.executions == calls * rig.settings.clients, "%s %u", what, which);
    EXPECT_OF(rig.server.counts.of[DCE_COUNT_overruns] == 0, "%s %u", what, which);
}

static void lossless_calls_of_all_kinds(void)
{
    static const size_t sizes[] = {0, 1, 1392, 4016, 4017, 64256, 196608};

    for (unsigned policy = 0; policy < DCE_POLICIES; policy++)
        for (unsigned order = 0; order < 4; order++)
            for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
                for (uint16_t opnum = RIG_PUT; opnum <= RIG_ECHO; opnum++) {
                    struct rig_settings settings = plain;
                    size_t most = policy == DCE_OSF ? 944 : 4016;
                    bool in, out; /* more than a fragment */

                    settings.policy = policy;
                    settings.client_big = order & 1;
                    settings.server_big = order & 2;
                    settings.semantics = i % 2 != 0 ? DCE_IDEMPOTENT : 0;
                    rig_open(&rig, &settings);
                    rig_call(&rig, 0, opnum, sizes[i], 3);
                    expect_all_well(3, "opnum", opnum);
                    EXPECT(rig.client[0].counts.of[DCE_COUNT_fragments_resent] == 0);
                    EXPECT(rig.client[0].counts.of[DCE_COUNT_pings] == 0);
                    EXPECT(rig.server.counts.of[DCE_COUNT_fragments_resent] == 0);
                    in = opnum != RIG_GET && sizes[i] > most;
                    out = opnum != RIG_PUT && sizes[i] > most;
                    EXPECT(rig.sent_of[DCE_ACK] == (settings.semantics == 0 || in || out));
                    EXPECT(rig.server.counts.of[DCE_COUNT_who_are_you] ==
                           (settings.semantics == 0 || in));
                    rig_close(&rig);
                }
}

static unsigned victim;
static enum rig_fate victims_fate;

static enum rig_fate one_victim(struct rig *of, unsigned number, const struct dce_pdu *pdu)
{
    (void)of;
    (void)pdu;
    return number == victim ? victims_fate : RIG_PASS;
}

static void each_packet_in_turn(void)
{
    static const struct {
        uint16_t opnum;
        size_t size;
        uint8_t semantics;
    } kinds[] = {{RIG_ECHO, 30000, 0},
                 {RIG_PUT, 0, 0},
                 {RIG_ECHO, 9000, DCE_IDEMPOTENT},
                 {RIG_PUT, 24096, DCE_MAYBE}};

    for (unsigned kind = 0; kind < sizeof(kinds) / sizeof(*kinds); kind++)
        for (unsigned policy = 0; policy < DCE_POLICIES; policy++)
            for (victims_fate = RIG_DROP; victims_fate < RIG_FATES; victims_fate++) {
                unsigned packets = 1;

                for (victim = 0; victim < packets; victim++) {
                    struct rig_settings settings = plain;

                    settings.policy = policy;
                    settings.semantics = kinds[kind].semantics;
                    settings.fate = one_victim;
                    rig_open(&rig, &settings);
                    rig_call(&rig, 0, kinds[kind].opnum, kinds[kind].size, 2);
                    if ((settings.semantics & DCE_MAYBE) == 0) {
                        expect_all_well(2, "victim", victim);
                    } else { /* nothing says whether it was executed */
                        EXPECT_OF(rig_run(&rig, LIMIT_S * DCE_SECOND_NS) || rig.running == 0,
                                  "victim %u", victim);
                        EXPECT(rig.call[0].failed == 0 && rig.call[0].done == 2);
                        EXPECT(!rig.wrong_bytes);
                    }
                    packets = rig.sent;
                    rig_close(&rig);
                }
            }
}

static unsigned loss; /* in a thousand */

static enum rig_fate by_seed(struct rig *of, unsigned number, const struct dce_pdu *pdu)
{
    (void)number;
    (void)pdu;
    return rig_random(of) % 1000 < loss ? 1 + rig_random(of) % (RIG_FATES - 1) : RIG_PASS;
}

static void seeds(void)
{
    for (unsigned seed = 1; seed <= 400; seed++) {
        struct rig_settings settings = plain;
        static const unsigned fragments[] = {1464, 4096, 8192};

        settings.policy = seed % DCE_POLICIES;
        settings.fragment = fragments[seed / 3 % 3];
        settings.clients = 1 + seed % RIG_CLIENTS;
        settings.semantics = seed % 4 == 3 ? DCE_IDEMPOTENT : 0;
        settings.work_ns = seed % 5 == 0 ? 3 * DCE_SECOND_NS : 0;
        settings.client_big = seed % 7 == 0;
        settings.fate = by_seed;
        loss = seed % 2 != 0 ? 100 : 10;
        rig_open(&rig, &settings);
        rig.random ^= seed * 0x9e3779b97f4a7c15u;
        for (unsigned i = 0; i < settings.clients; i++)
            rig_call(&rig, i, (uint16_t)(1 + (seed + i) % 3), rig_random(&rig) % 40000, 4);
        expect_all_well(4, "seed", seed);
        rig_close(&rig);
    }
}

static bool drop_responses;

static enum rig_fate no_responses(struct rig *of, unsigned number, const struct dce_pdu *pdu)
{
    (void)of;
    (void)number;
    return drop_responses && pdu->ptype == DCE_RESPONSE && pdu->opnum == RIG_PUT &&
                   dce_uuid_equal(&pdu->interface, &rig_interface)
               ? RIG_DROP
               : RIG_PASS;
}

/* The server executes, loses the response and everything else, and boots again. */
static void a_restart_between_execution_and_response(void)
{
    for (unsigned first = 0; first < 2; first++) {
        struct rig_settings settings = plain;

        settings.fate = no_responses;
        rig_open(&rig, &settings);
        drop_responses = false;
        if (first == 0) { /* the client knows the server's boot time from a call before */
            rig_call(&rig, 0, RIG_PUT, 100, 1);
            EXPECT(rig_run(&rig, LIMIT_S * DCE_SECOND_NS));
        }
        drop_responses = true;
        rig_call(&rig, 0, RIG_PUT, 100, 1);
        rig_run(&rig, DCE_SECOND_NS);
        EXPECT(rig.executions == (first == 0 ? 2 : 1));
        rig_restart_server(&rig);
        drop_responses = false;
        EXPECT(rig_run(&rig, LIMIT_S * DCE_SECOND_NS));
        EXPECT(rig.call[0].failed == 1 && rig.call[0].status == DCE_WRONG_BOOT_TIME);
        EXPECT(rig_most_executed(&rig) == 1);
        /* The next call is a first one again. */
        rig_call(&rig, 0, RIG_PUT, 100, 1);
        EXPECT(rig_run(&rig, LIMIT_S * DCE_SECOND_NS));
        EXPECT(rig.call[0].failed == 0 && rig_most_executed(&rig) == 1);
        rig_close(&rig);
    }
}

static void more_callers_than_places_wait_for_idle_ones(void)
{
    struct rig_settings settings = plain;

    settings.clients = RIG_CLIENTS;
    rig_open(&rig, &settings);
    rig.server.settings.activities = 2;
    for (unsigned i = 0; i < RIG_CLIENTS; i++) {
        rig_call(&rig, i, RIG_PUT, 1000, 1);
        EXPECT(rig_run(&rig, LIMIT_S * DCE_SECOND_NS));
        EXPECT(rig.call[i].failed == 0);
    }
    EXPECT(rig.server.used == 2);
    rig_close(&rig);
}

static void wrapping_numbers(void)
{
    struct rig_settings settings = plain;

    /* Sequence numbers, and at-most-once across their end. */
    settings.fate = by_seed;
    loss = 50;
    rig_open(&rig, &settings);
    rig.client[0].settings.seq = UINT32_MAX - 1;
    rig_call(&rig, 0, RIG_ECHO, 5000, 5);
    expect_all_well(5, "seq", 0);
    EXPECT(rig.client[0].seq == 2);
    rig_close(&rig);
}

int main(void)
{
    static const struct test tests[] = {
        {"lossless_calls_of_all_kinds", lossless_calls_of_all_kinds},
        {"each_packet_in_turn", each_packet_in_turn},
        {"seeds", seeds},
        {"a_restart_between_execution_and_response", a_restart_between_execution_and_response},
        {"more_callers_than_places_wait_for_idle_ones",
         more_callers_than_places_wait_for_idle_ones},
        {"wrapping_numbers", wrapping_numbers},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
