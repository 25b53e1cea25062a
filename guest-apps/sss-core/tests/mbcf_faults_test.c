/* SPDX-License-Identifier: Apache-2.0 */

/* Exactly once, in order, byte for byte, whatever the wire, the nodes and the tasks do meanwhile.
 */
#include "expect.h"
#include "mbcf_pair.h"

enum { TALLY_CALLS = 3000, SEGMENTS = 300, SEGMENT_MOST = 9000, WRITES = 300, CRASHES = 60 };

/* ---- fetch and add, both ways at once: each old value is seen once, in order ---- */

static void add_up(uint64_t seed, unsigned faults, const struct mbcf_config *config)
{
    uint16_t tasks[3];
    int ltns[3];
    struct rig *rig = pair(seed, faults, config, tasks, ltns);
    uint64_t total;

    for (unsigned i = 0; i < TALLY_CALLS; i++)
        for (unsigned node = 1; node <= 2; node++) {
            struct mb_operation operation = {.op = MB_OP_FETCH_ADD,
                                             .flags = MB_WIDE,
                                             .ltn = ltns[node],
                                             .remote = WORD,
                                             .argument = {1}};

            /* Most without a result, some with one, which says how many have been executed before
             * it. */
            if (i % 16 == 15)
                operation.ack = at(ACK);
            EXPECT(rig_operate(rig, node, tasks[node], &operation) == 0);
            if (i % 16 == 15) {
                EXPECT(rig_ack(rig, node, 0, ACK, 60 * SECOND) == MB_OK);
                EXPECT(rig_ack_value(rig, node, 0, ACK) == i);
            }
        }
    rig_run(rig, 60 * SECOND);
    for (unsigned node = 1; node <= 2; node++) {
        rig_read(rig, node, 0, WORD, &total, sizeof(total));
        EXPECT(total == TALLY_CALLS);
        EXPECT(mbcf_counters(rig->nodes[node].mbcf)->operations_executed == TALLY_CALLS);
    }
    EXPECT(rig_free(rig));
}

static void test_add_clean(void)
{
    add_up(1, 0, NULL);
}
static void test_add_5(void)
{
    add_up(2, 50, NULL);
}
static void test_add_30(void)
{
    add_up(3, 300, NULL);
}

/* The numbers wrap in the middle, and 0 is none of them. */
static void test_seq_wrap(void)
{
    struct mbcf_config config = {.first_seq = 0xffffffffu - 1000};

    add_up(4, 0, &config);
    add_up(5, 100, &config);
}

/* At zero loss nothing is sent twice, though acknowledgements are delayed. */
static void test_no_needless_retransmission(void)
{
    uint16_t tasks[3];
    int ltns[3];
    struct rig *rig = pair(6, 0, NULL, tasks, ltns);
    const struct mbcf_counters *sender = mbcf_counters(rig->nodes[1].mbcf),
                               *receiver = mbcf_counters(rig->nodes[2].mbcf);

    for (unsigned i = 0; i < 3200; i++) {
        struct mb_operation operation = {
            .op = MB_OP_WRITE, .ltn = ltns[1], .remote = DATA, .data = at(DATA), .length = 1408};

        EXPECT(rig_operate(rig, 1, tasks[1], &operation) == 0);
    }
    rig_run(rig, SECOND);
    /* One at a time, slower than the delay: each is acknowledged by itself, in time. */
    for (unsigned i = 0; i < 20; i++) {
        struct mb_operation operation = {
            .op = MB_OP_WRITE, .ltn = ltns[1], .remote = DATA, .data = at(DATA), .length = 8};

        EXPECT(rig_operate(rig, 1, tasks[1], &operation) == 0);
        rig_run(rig, i % 2 == 0 ? 1900000 : 30000000);
    }
    EXPECT(sender->retransmitted == 0 && sender->timeouts == 0);
    EXPECT(receiver->acks_sent <= 3200 / 16 + 20);
    EXPECT(rig_free(rig));
}

/* ---- FIFO segments: several writers, several packets, interleaved ---- */

static void fill(struct rig *rig, unsigned node, unsigned space, uint64_t address, uint32_t number,
                 uint32_t length)
{
    for (uint32_t i = 0; i < length; i++)
        *(uint8_t *)rig_at(rig, node, space,
                           address + i) = (uint8_t)(number * 131 + i * 7 + (i >> 8));
}

static bool is_filled(const uint8_t *data, uint32_t number, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++)
        if (data[i] != (uint8_t)(number * 131 + i * 7 + (i >> 8)))
            return false;
    return true;
}

/* A writer of segments; its operation may be half taken while the other writer goes on. */
struct writer {
    uint16_t task;
    unsigned node;
    int ltn;
    uint32_t number;
    uint64_t progress;
    struct mb_operation operation;
    bool active;
};

static void writer_step(struct rig *rig, struct writer *writer)
{
    int result;

    if (!writer->active) {
        uint32_t length = (uint32_t)(rig_random(rig) % SEGMENT_MOST);

        if (writer->number == SEGMENTS)
            return;
        fill(rig, writer->node, 0, DATA, writer->number, length);
        writer->operation = (struct mb_operation){.op = MB_OP_FIFO,
                                                  .ltn = writer->ltn,
                                                  .remote = FIFO,
                                                  .data = at(DATA),
                                                  .length = length};
        writer->progress = 0;
        writer->active = true;
    }
    result = mbcf_operate(rig->nodes[writer->node].mbcf, writer->task, &writer->operation,
                          &writer->progress, rig->now_ns);
    if (result == -SSS_EAGAIN)
        return;
    EXPECT(result == 0);
    writer->active = false;
    writer->number++;
}

static void segments(uint64_t seed, unsigned faults)
{
    struct rig *rig = rig_new(3, seed, NULL);
    struct writer writers[2] = {{.node = 1}, {.node = 2}};
    uint32_t taken[4] = {0};
    uint16_t reader = rig_task(rig, 3, 0, 160);
    static uint8_t data[SEGMENT_MOST];
    struct mb_record record;
    uint64_t patience = 0;
    int length;

    rig->loss = rig->duplication = rig->reordering = faults;
    mbcf_key(rig->nodes[3].mbcf, reader, 0, KEY, MB_WRITE_ALLOWED);
    EXPECT(mbcf_fifo(rig->nodes[3].mbcf, reader, FIFO, MB_FIFO_HEADER + RING) == 0);
    for (unsigned i = 0; i < 2; i++) {
        writers[i].task = rig_task(rig, writers[i].node, 0, 16);
        writers[i].ltn = mbcf_connect(rig->nodes[writers[i].node].mbcf, writers[i].task, 3, reader,
                                      KEY);
    }
    while (taken[1] + taken[2] < 2 * SEGMENTS && patience++ < 10000000) {
        /* Never more than the ring holds: a full one is another test. */
        for (unsigned i = 0; i < 2; i++)
            if (writers[i].active || writers[i].number - taken[i + 1] < 3)
                writer_step(rig, &writers[i]);
        rig_step(rig, UINT64_MAX);
        while ((length = rig_take(rig, 3, 0, FIFO, &record, data, sizeof(data))) >= 0) {
            EXPECT(record.node == 1 || record.node == 2);
            EXPECT(is_filled(data, taken[record.node]++, (uint32_t)length));
        }
    }
    EXPECT(taken[1] == SEGMENTS && taken[2] == SEGMENTS);
    EXPECT(rig_free(rig));
}

static void test_segments_clean(void)
{
    segments(7, 0);
}
static void test_segments_5(void)
{
    segments(8, 50);
}
static void test_segments_30(void)
{
    segments(9, 300);
}

/* ---- WRITE and READ of random sizes and places ---- */

static void transfers(uint64_t seed, unsigned faults)
{
    uint16_t tasks[3];
    int ltns[3];
    struct rig *rig = pair(seed, faults, NULL, tasks, ltns);
    static uint8_t data[20000];

    for (uint32_t i = 0; i < WRITES; i++) {
        uint32_t length = (uint32_t)(rig_random(rig) % (i % 10 == 0 ? 20000 : 3000)),
                 from = (uint32_t)(rig_random(rig) % 5000);
        uint64_t to = DATA + rig_random(rig) % 30000;
        struct mb_operation operation = {.op = MB_OP_WRITE,
                                         .ltn = ltns[1],
                                         .remote = to,
                                         .data = at(DATA + from),
                                         .length = length,
                                         .ack = at(ACK)};

        fill(rig, 1, 0, DATA + from, i, length);
        EXPECT(rig_operate(rig, 1, tasks[1], &operation) == 0 &&
               rig_ack(rig, 1, 0, ACK, 60 * SECOND) == MB_OK);
        rig_read(rig, 2, 0, to, data, length);
        EXPECT(is_filled(data, i, length));
        operation.op = MB_OP_READ;
        operation.data = at(DATA + 50000);
        EXPECT(rig_operate(rig, 1, tasks[1], &operation) == 0 &&
               rig_ack(rig, 1, 0, ACK, 60 * SECOND) == MB_OK);
        rig_read(rig, 1, 0, DATA + 50000, data, length);
        EXPECT(is_filled(data, i, length));
    }
    EXPECT(rig_free(rig));
}

static void test_transfers_clean(void)
{
    transfers(10, 0);
}
static void test_transfers_30(void)
{
    transfers(11, 300);
}

/* ---- two nodes with windows full of requests that all want results ---- */

static void test_full_windows(void)
{
    for (unsigned faults = 0; faults <= 200; faults += 100) {
        uint16_t tasks[3];
        int ltns[3];
        struct rig *rig = pair(12, faults, NULL, tasks, ltns);
        unsigned taken[3] = {0}, done = 0;
        uint64_t patience = 0;

        while ((taken[1] < 100 || taken[2] < 100) && patience++ < 1000000) {
            for (unsigned node = 1; node <= 2; node++)
                while (taken[node] < 100) {
                    struct mb_operation operation = {.op = MB_OP_READ,
                                                     .ltn = ltns[node],
                                                     .remote = DATA,
                                                     .data = at(DATA + 8192),
                                                     .length = 1408,
                                                     .ack = at(ACKS + taken[node] * 16u)};
                    uint64_t progress = 0;

                    if (mbcf_operate(rig->nodes[node].mbcf, tasks[node], &operation, &progress,
                                     rig->now_ns) != 0)
                        break;
                    taken[node]++;
                }
            rig_step(rig, UINT64_MAX);
        }
        rig_run(rig, 60 * SECOND);
        for (unsigned node = 1; node <= 2; node++)
            for (unsigned i = 0; i < 100; i++)
                done += rig_word(rig, node, 0, ACKS + i * 16u) == MB_ACK_DONE &&
                        rig_word(rig, node, 0, ACKS + i * 16u + 4) == MB_OK;
        EXPECT(done == 200);
        if (faults == 0)
            EXPECT(mbcf_counters(rig->nodes[1].mbcf)->timeouts < 10);
        EXPECT(rig_free(rig));
    }
}

/* ---- a node restarts at any moment: what the client learns agrees with what was done ---- */

/* The n-th call leaves n in the word, by WRITE or by FETCH_ADD. */
static struct mb_operation count_up(struct rig *rig, uint16_t op, int ltn, uint64_t number)
{
    rig_write(rig, 1, 0, DATA, &number, sizeof(number));
    return (struct mb_operation){.op = op,
                                 .flags = op == MB_OP_WRITE ? 0 : MB_WIDE,
                                 .ltn = ltn,
                                 .remote = WORD,
                                 .data = at(DATA),
                                 .length = op == MB_OP_WRITE ? 8 : 0,
                                 .argument = {1},
                                 .ack = at(ACK)};
}

static void crash(uint64_t seed, uint64_t at_ns, uint16_t op)
{
    uint16_t tasks[3];
    int ltns[3], status = -1;
    struct rig *rig = pair(seed, 100, NULL, tasks, ltns);
    uint64_t before = 0, known = 0, maybe = 0, crash_ns = rig->now_ns + at_ns;
    bool crashed = false;
    struct mb_connection info;

    for (unsigned i = 0; i < 1000 && status <= 0; i++) {
        struct mb_operation operation = count_up(rig, op, ltns[1], i + 1);

        if (rig_operate(rig, 1, tasks[1], &operation) != 0)
            break;
        while (rig_word(rig, 1, 0, ACK) != MB_ACK_DONE) {
            if (!crashed && rig->now_ns >= crash_ns) {
                rig_read(rig, 2, 0, WORD, &before, sizeof(before));
                rig_restart(rig, 2, 0xabcd);
                crashed = true;
            }
            if (!rig_step(rig, UINT64_MAX))
                break;
        }
        EXPECT(rig_word(rig, 1, 0, ACK) == MB_ACK_DONE); /* nothing hangs */
        status = (int)rig_word(rig, 1, 0, ACK + 4);
        known += status == MB_OK;
        maybe += (status & MB_MAYBE) != 0;
    }
    /* A node that had not been met before it crashed is only a node without that task. */
    EXPECT(crashed && ((status & ~MB_MAYBE) == MB_NODE_RESTART ||
                       (status == MB_NOTASK && known + before == 0)));
    EXPECT(known <= before && before <= known + maybe);
    EXPECT(mbcf_connection(rig->nodes[1].mbcf, tasks[1], ltns[1], &info) == 0 &&
           info.state == MB_CONNECTION_BROKEN);
    EXPECT(info.unfinished == 0);
    EXPECT(rig_free(rig));
}

static void test_crashes(void)
{
    for (unsigned i = 0; i < CRASHES; i++)
        crash(100 + i, 300000 + i * 777777ull, i % 2 != 0 ? MB_OP_WRITE : MB_OP_FETCH_ADD);
}

/* A task of the peer ends at any moment. */
static void test_task_ends(void)
{
    for (unsigned i = 0; i < CRASHES; i++) {
        uint16_t tasks[3];
        int ltns[3], status = 0;
        struct rig *rig = pair(200 + i, 100, NULL, tasks, ltns);
        uint64_t end_ns = rig->now_ns + 200000 + i * 333333ull, known = 0, before = 0;
        bool ended = false;

        while (status == 0) {
            struct mb_operation operation =
                count_up(rig, i % 2 != 0 ? MB_OP_WRITE : MB_OP_FETCH_ADD, ltns[1], known + 1);
            int result = rig_operate(rig, 1, tasks[1], &operation);

            if (result != 0) {
                EXPECT(result == -(MB_CLOSED + MB_STATUS_BASE));
                break;
            }
            while (rig_word(rig, 1, 0, ACK) != MB_ACK_DONE && rig_step(rig, UINT64_MAX))
                if (!ended && rig->now_ns >= end_ns) {
                    rig_read(rig, 2, 0, WORD, &before, sizeof(before));
                    mbcf_task_close(rig->nodes[2].mbcf, tasks[2], rig->now_ns);
                    ended = true;
                }
            status = rig_word(rig, 1, 0, ACK) == MB_ACK_DONE ? (int)rig_word(rig, 1, 0, ACK + 4)
                                                             : -1;
            known += status == MB_OK;
        }
        EXPECT(ended && (status == MB_NOTASK || status == 0));
        EXPECT(known == before); /* nothing of it is uncertain */
        EXPECT(rig_free(rig));
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"add_clean", test_add_clean},
        {"add_5_percent", test_add_5},
        {"add_30_percent", test_add_30},
        {"seq_wrap", test_seq_wrap},
        {"no_needless_retransmission", test_no_needless_retransmission},
        {"segments_clean", test_segments_clean},
        {"segments_5_percent", test_segments_5},
        {"segments_30_percent", test_segments_30},
        {"transfers_clean", test_transfers_clean},
        {"transfers_30_percent", test_transfers_30},
        {"full_windows", test_full_windows},
        {"crashes", test_crashes},
        {"task_ends", test_task_ends},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
