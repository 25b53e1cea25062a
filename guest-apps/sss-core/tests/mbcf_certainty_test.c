/* SPDX-License-Identifier: Apache-2.0 */

/* What a task learns of its operations is true, whatever is lost. */
#include "expect.h"
#include "mbcf_pair.h"

/* ---- certainty: success is an acknowledgement, an error its RESULT; whatever is lost, none is
 * taken for the other ---- */

enum { MIXED = 1500, SLOTS = 24, READONLY_PAGE = 170 };
#define READONLY (RIG_BASE + READONLY_PAGE * 4096ull)
#define UNMAPPED (RIG_BASE + 200 * 4096ull)
#define MARKS    (RIG_BASE + 100 * 4096ull)

/* One of the operations of a node that are under way. */
struct mixed {
    int wanted; /* status; -1: free */
    uint32_t number;
};

static uint64_t slot_address(uint64_t base, unsigned slot)
{
    return base + slot * 64u;
}

static bool mixed_begin(struct rig *rig, unsigned node, uint16_t task, int ltn, unsigned slot,
                        struct mixed *mixed)
{
    static const struct {
        uint64_t remote;
        uint32_t length;
        int wanted;
    } kinds[] = {{0, 4, MB_OK},
                 {0, 4, MB_OK},
                 {READONLY, 8, MB_READONLY},
                 {UNMAPPED, 8, MB_FAULT},
                 {READONLY - 2000, 4000, MB_READONLY | MB_MAYBE}};
    unsigned kind = (unsigned)(rig_random(rig) % (rig_chance(rig, 500) ? 2 : 5));
    uint64_t idle = 0, progress = 0;
    struct mb_operation operation = {.op = MB_OP_WRITE,
                                     .flags = rig_chance(rig, 300) ? MB_LAZY : 0,
                                     .ltn = ltn,
                                     .remote = kinds[kind].remote != 0 ? kinds[kind].remote
                                                                       : slot_address(MARKS, slot),
                                     .data = at(slot_address(DATA, slot)),
                                     .length = kinds[kind].length,
                                     .ack = at(slot_address(ACKS, slot))};

    mixed->number++;
    rig_write(rig, node, 0, slot_address(ACKS, slot), &idle, sizeof(idle));
    rig_write(rig, node, 0, slot_address(DATA, slot), &mixed->number, sizeof(mixed->number));
    if (operation.length > 1408) /* may take several calls: nothing of them is left half done */
        EXPECT(rig_operate(rig, node, task, &operation) == 0);
    else if (mbcf_operate(rig->nodes[node].mbcf, task, &operation, &progress, rig->now_ns) != 0)
        return false;
    mixed->wanted = kinds[kind].wanted;
    return true;
}

static void mixed_end(struct rig *rig, unsigned node, unsigned slot, struct mixed *mixed)
{
    if (rig_word(rig, node, 0, slot_address(ACKS, slot)) != MB_ACK_DONE)
        return;
    EXPECT((int)rig_word(rig, node, 0, slot_address(ACKS, slot) + 4) == mixed->wanted);
    if (mixed->wanted == MB_OK)
        EXPECT(rig_word(rig, 3 - node, 0, slot_address(MARKS, slot)) == mixed->number);
    mixed->wanted = -1;
}

static void certainty(uint64_t seed, unsigned faults)
{
    uint16_t tasks[3];
    int ltns[3];
    struct rig *rig = pair(seed, faults, NULL, tasks, ltns);
    struct mixed mixed[3][SLOTS];
    unsigned begun = 0, under_way = 1;
    uint64_t patience = 0;

    for (unsigned node = 1; node <= 2; node++) {
        rig_map(rig, node, 0, READONLY_PAGE - 1, SSS_READ | SSS_WRITE);
        rig_map(rig, node, 0, READONLY_PAGE, SSS_READ);
        for (unsigned slot = 0; slot < SLOTS; slot++)
            mixed[node][slot] = (struct mixed){.wanted = -1};
    }
    while (under_way != 0 && patience++ < 3000000) {
        under_way = begun < MIXED;
        for (unsigned node = 1; node <= 2; node++)
            for (unsigned slot = 0; slot < SLOTS; slot++) {
                if (mixed[node][slot].wanted >= 0)
                    mixed_end(rig, node, slot, &mixed[node][slot]);
                if (mixed[node][slot].wanted < 0 && begun < MIXED && rig_chance(rig, 300))
                    begun += mixed_begin(rig, node, tasks[node], ltns[node], slot,
                                         &mixed[node][slot]);
                under_way += mixed[node][slot].wanted >= 0;
            }
        rig_step(rig, UINT64_MAX);
    }
    EXPECT(begun == MIXED && under_way == 0);
    for (unsigned node = 1; node <= 2; node++)
        EXPECT(faults != 0 || mbcf_counters(rig->nodes[node].mbcf)->timeouts < 10);
    EXPECT(rig_free(rig));
}

static void test_certainty_clean(void)
{
    certainty(20, 0);
}
static void test_certainty_5(void)
{
    certainty(21, 50);
}
static void test_certainty_30(void)
{
    certainty(22, 300);
}

/* ---- the same, step by step ---- */

static unsigned results_to_lose;
static uint32_t most_acked[2]; /* by ACK frames of node 2: UNSURE ones, others */

static bool lose_results(struct rig *rig, uint16_t node, const uint8_t *frame, size_t length)
{
    const uint8_t *header = frame + MBW_ETHERNET;
    uint32_t ack = mbw_ack(header);

    (void)rig;
    (void)length;
    if (node == 2 && header[0] == MBW_ACK && ack > most_acked[!(header[1] & MBW_UNSURE)])
        most_acked[!(header[1] & MBW_UNSURE)] = ack;
    if (node != 2 || header[0] != MBW_RESULT || results_to_lose == 0)
        return true;
    results_to_lose--;
    return false;
}

static void write_from_1(struct rig *rig, const uint16_t *tasks, const int *ltns, uint64_t remote,
                         unsigned slot)
{
    struct mb_operation operation = {.op = MB_OP_WRITE,
                                     .ltn = ltns[1],
                                     .remote = remote,
                                     .data = at(DATA),
                                     .length = 8,
                                     .ack = at(slot_address(ACKS, slot))};

    EXPECT(rig_operate(rig, 1, tasks[1], &operation) == 0);
}

static uint32_t ack_state(struct rig *rig, unsigned slot)
{
    return rig_word(rig, 1, 0, slot_address(ACKS, slot));
}
static uint32_t ack_status(struct rig *rig, unsigned slot)
{
    return rig_word(rig, 1, 0, slot_address(ACKS, slot) + 4);
}

/* The error is lost, acknowledgements for what follows are not: nothing passes over it. */
static void test_error_lost(void)
{
    uint16_t tasks[3];
    int ltns[3];
    struct rig *rig = pair(23, 0, NULL, tasks, ltns);

    write_from_1(rig, tasks, ltns, DATA, 0); /* frame 1 */
    EXPECT(rig_ack(rig, 1, 0, slot_address(ACKS, 0), SECOND) == MB_OK);
    rig->tap = lose_results;
    results_to_lose = 2;
    most_acked[0] = most_acked[1] = 0;
    write_from_1(rig, tasks, ltns, DATA, 1);
    write_from_1(rig, tasks, ltns, UNMAPPED, 2); /* frame 3 */
    write_from_1(rig, tasks, ltns, DATA, 3);
    write_from_1(rig, tasks, ltns, UNMAPPED, 4); /* frame 5 */
    write_from_1(rig, tasks, ltns, DATA, 5);
    rig_run(rig, 5000000);
    EXPECT(ack_state(rig, 1) == MB_ACK_DONE && ack_status(rig, 1) == MB_OK);
    EXPECT(most_acked[0] == 6 && most_acked[1] == 2);
    for (unsigned slot = 2; slot <= 5; slot++)
        EXPECT(ack_state(rig, slot) == MB_ACK_PENDING);
    rig_run(rig, SECOND);
    for (unsigned slot = 2; slot <= 5; slot++)
        EXPECT(ack_state(rig, slot) == MB_ACK_DONE &&
               ack_status(rig, slot) == (slot % 2 == 0 ? MB_FAULT : MB_OK));
    EXPECT(results_to_lose == 0);
    EXPECT(rig_free(rig));
}

/* Without loss an error costs no node a timeout, also when it meets one that comes the other way.
 */
static void test_errors_meet(void)
{
    uint16_t tasks[3];
    int ltns[3];
    struct rig *rig = pair(24, 0, NULL, tasks, ltns);

    write_from_1(rig, tasks, ltns, DATA, 0);
    EXPECT(rig_ack(rig, 1, 0, slot_address(ACKS, 0), SECOND) == MB_OK);
    for (unsigned i = 0; i < 20; i++) {
        write_from_1(rig, tasks, ltns, i % 5 == 2 ? UNMAPPED : DATA, i);
        rig_run(rig, 3000);
    }
    rig_run(rig, 4000000);
    for (unsigned i = 0; i < 20; i++)
        EXPECT(ack_state(rig, i) == MB_ACK_DONE &&
               ack_status(rig, i) == (i % 5 == 2 ? MB_FAULT : MB_OK));
    EXPECT(mbcf_counters(rig->nodes[1].mbcf)->retransmitted +
               mbcf_counters(rig->nodes[2].mbcf)->retransmitted ==
           0);
    /* Errors both ways at the same moment, far back in full windows. */
    for (unsigned node = 1; node <= 2; node++)
        for (unsigned i = 0; i < 20; i++) {
            struct mb_operation operation = {.op = MB_OP_WRITE,
                                             .ltn = ltns[node],
                                             .remote = i < 8 ? UNMAPPED : DATA,
                                             .data = at(DATA),
                                             .length = 8,
                                             .ack = at(slot_address(ACKS, i))};

            EXPECT(rig_operate(rig, node, tasks[node], &operation) == 0);
        }
    rig_run(rig, 4000000);
    for (unsigned i = 0; i < 20; i++)
        EXPECT(ack_state(rig, i) == MB_ACK_DONE &&
               ack_status(rig, i) == (i < 8 ? MB_FAULT : MB_OK));
    EXPECT(mbcf_counters(rig->nodes[1].mbcf)->retransmitted +
               mbcf_counters(rig->nodes[2].mbcf)->retransmitted ==
           0);
    EXPECT(rig_free(rig));
}

/* Who could not deliver an error gives us up, but comes back: we learn that it is unknown, not
 * that all was well. */
static void test_error_given_up(void)
{
    uint16_t tasks[3];
    int ltns[3];
    struct rig *rig = pair(25, 0, NULL, tasks, ltns);
    struct mb_operation back = {.op = MB_OP_WRITE, .remote = DATA, .data = at(DATA), .length = 8};
    struct mbcf_channel_info info;

    write_from_1(rig, tasks, ltns, DATA, 0);
    EXPECT(rig_ack(rig, 1, 0, slot_address(ACKS, 0), SECOND) == MB_OK);
    rig->tap = lose_results;
    results_to_lose = UINT32_MAX;
    write_from_1(rig, tasks, ltns, UNMAPPED, 1);
    for (unsigned i = 2; i < 20;
         i++) /* they lengthen our timeouts: the peer's patience ends first */
        write_from_1(rig, tasks, ltns, DATA, i);
    do
        EXPECT(rig_step(rig, UINT64_MAX));
    while (mbcf_channel_at(rig->nodes[2].mbcf, 0, &info) && info.state != MBCF_DEAD);
    EXPECT(ack_state(rig, 1) == MB_ACK_PENDING);
    results_to_lose = 0;
    back.ltn = mbcf_connect(rig->nodes[2].mbcf, tasks[2], 1, tasks[1], KEY);
    EXPECT(rig_operate(rig, 2, tasks[2], &back) == 0);
    rig_run(rig, SECOND);
    for (unsigned i = 1; i < 20; i++)
        EXPECT(ack_state(rig, i) == MB_ACK_DONE && ack_status(rig, i) == (MB_NODE_DEAD | MB_MAYBE));
    write_from_1(rig, tasks, ltns, DATA, 0);
    EXPECT(rig_ack(rig, 1, 0, slot_address(ACKS, 0), SECOND) == MB_OK);
    EXPECT(rig_free(rig));
}

/* A lazy ack takes no frame of its own when a reply comes, and the delayed one where none does. */
static void test_lazy(void)
{
    uint16_t tasks[3];
    int ltns[3];
    struct rig *rig = pair(26, 0, NULL, tasks, ltns);
    const struct mbcf_counters *server = mbcf_counters(rig->nodes[2].mbcf);
    struct mb_operation request = {.op = MB_OP_WRITE,
                                   .flags = MB_LAZY,
                                   .ltn = ltns[1],
                                   .remote = DATA,
                                   .data = at(DATA),
                                   .length = 8,
                                   .ack = at(ACK)};
    struct mb_operation reply = {
        .op = MB_OP_WRITE, .ltn = ltns[2], .remote = DATA, .data = at(DATA), .length = 8};
    uint64_t acks, began_ns;

    write_from_1(rig, tasks, ltns, DATA, 0);
    EXPECT(rig_ack(rig, 1, 0, slot_address(ACKS, 0), SECOND) == MB_OK);
    rig_run(rig, SECOND);
    acks = server->acks_sent;
    EXPECT(rig_operate(rig, 1, tasks[1], &request) == 0);
    rig_run(rig, RIG_DELAY_NS + 1000);
    EXPECT(rig_operate(rig, 2, tasks[2], &reply) == 0);
    EXPECT(rig_ack(rig, 1, 0, ACK, RIG_DELAY_NS) == MB_OK && server->acks_sent == acks);
    rig_run(rig, SECOND);
    began_ns = rig->now_ns;
    EXPECT(rig_operate(rig, 1, tasks[1], &request) == 0 &&
           rig_ack(rig, 1, 0, ACK, SECOND) == MB_OK);
    EXPECT(rig->now_ns - began_ns == 2 * RIG_DELAY_NS + 2000000 && server->acks_sent == acks + 1);
    rig_run(rig, SECOND);
    began_ns = rig->now_ns;
    request.flags = 0;
    EXPECT(rig_operate(rig, 1, tasks[1], &request) == 0 &&
           rig_ack(rig, 1, 0, ACK, SECOND) == MB_OK);
    EXPECT(rig->now_ns - began_ns == 2 * RIG_DELAY_NS);
    EXPECT(rig_free(rig));
}

/* A server that closes while the acknowledgement of its last reply is only noted says so once, and
 * nothing is left to do. */
static unsigned closes;

static bool count_closes(struct rig *rig, uint16_t node, const uint8_t *frame, size_t length)
{
    (void)rig;
    (void)length;
    closes += node == 2 && frame[MBW_ETHERNET] == MBW_CLOSE;
    return true;
}

static void test_close_with_noted_ack(void)
{
    uint16_t tasks[3];
    int ltns[3], made[40];
    struct rig *rig = pair(27, 0, NULL, tasks, ltns);
    struct mb_operation reply = {
        .op = MB_OP_WRITE, .ltn = ltns[2], .remote = DATA, .data = at(DATA), .length = 8};

    rig->tap = count_closes;
    closes = 0;
    for (unsigned i = 0; i < 40; i++) {
        struct mb_operation connect = {.op = MB_OP_TASKQUE,
                                       .node = 1,
                                       .task = tasks[1],
                                       .data = at(DATA),
                                       .length = 8,
                                       .argument = {KEY, 3}};

        mbcf_taskque(rig->nodes[1].mbcf, tasks[1], FIFO, MB_FIFO_HEADER + RING);
        EXPECT(rig_operate(rig, 2, tasks[2], &connect) == 0);
        made[i] = connect.ltn;
        rig_run(rig, SECOND);
    }
    for (unsigned i = 0; i < 40; i++) {
        write_from_1(rig, tasks, ltns, DATA, 0);
        EXPECT(rig_ack(rig, 1, 0, slot_address(ACKS, 0), SECOND) == MB_OK);
        EXPECT(rig_operate(rig, 2, tasks[2], &reply) == 0);
        rig_run(rig, 100000);
        write_from_1(rig, tasks, ltns, DATA, 0);
        EXPECT(rig_ack(rig, 1, 0, slot_address(ACKS, 0), SECOND) == MB_OK);
        EXPECT(mbcf_close(rig->nodes[2].mbcf, tasks[2], made[i], rig->now_ns) == 0);
        rig_run(rig, i % 2 != 0 ? SECOND : 1000);
    }
    rig_run(rig, SECOND);
    EXPECT(closes == 40);
    EXPECT(rig_free(rig));
}

int main(void)
{
    static const struct test tests[] = {
        {"certainty_clean", test_certainty_clean},
        {"certainty_5_percent", test_certainty_5},
        {"certainty_30_percent", test_certainty_30},
        {"error_lost", test_error_lost},
        {"errors_meet", test_errors_meet},
        {"error_given_up", test_error_given_up},
        {"lazy", test_lazy},
        {"close_with_noted_ack", test_close_with_noted_ack},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
