/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes that restart again and again, while frames of all their former incarnations come late. */
#include "expect.h"
#include "mbcf_pair.h"

enum {
    KEPT_MOST = 40000, /* frames of former incarnations */
    TURNS = 12,        /* of so many restarts nothing is skipped */
    HANDLER = 0x401000,
};
#define QUEUE   (RIG_BASE + 100 * 4096ull)
#define TASKQUE (RIG_BASE + 104 * 4096ull)

static struct kept {
    uint8_t *bytes;
    size_t length;
    uint16_t from;
} * kept;
static unsigned kept_count;
static unsigned kinds_seen[MBW_RESULT + 1];

static bool keep(struct rig *rig, uint16_t node, const uint8_t *frame, size_t length)
{
    (void)rig;
    if (kept_count == KEPT_MOST)
        abort();
    kept[kept_count] = (struct kept){malloc(length), length, node};
    memcpy(kept[kept_count++].bytes, frame, length);
    kinds_seen[frame[MBW_ETHERNET]]++;
    return true;
}

static uint16_t tasks[3];
static int ltns[3];

/* Only who serves has a TASKQUE: it may not discard connections of its own. */
static void declare(struct rig *rig, unsigned node, bool serves)
{
    struct mbcf *mbcf = rig->nodes[node].mbcf;
    uint64_t handler = HANDLER;

    tasks[node] = rig_task(rig, node, 0, 160);
    mbcf_key(mbcf, tasks[node], 0, KEY, MB_READ_ALLOWED | MB_WRITE_ALLOWED);
    EXPECT(mbcf_fifo(mbcf, tasks[node], FIFO, MB_FIFO_HEADER + 4096) == 0);
    if (serves)
        EXPECT(mbcf_taskque(mbcf, tasks[node], TASKQUE, MB_FIFO_HEADER + 4096) == 0);
    EXPECT(mbcf_signal(mbcf, tasks[node], &handler, 1, QUEUE, MB_FIFO_HEADER + 4096) == 0);
    ltns[node] = mbcf_connect(mbcf, tasks[node], (uint16_t)(3 - node), 0x110, KEY);
}

static uint64_t done_by(struct rig *rig, unsigned node)
{
    const struct mbcf_counters *counters = mbcf_counters(rig->nodes[node].mbcf);
    uint64_t done = counters->operations_executed;

    for (unsigned i = 0; i <= MB_LAST_REMOTE; i++)
        done += counters->refused[i];
    return done;
}

/* One operation of each kind, and one that fails; each ends well, or as it must. */
static void use(struct rig *rig, unsigned node)
{
    static const struct {
        uint16_t op;
        uint64_t remote;
        int wanted;
    } uses[] = {{MB_OP_WRITE, WORD, MB_OK},      {MB_OP_FETCH_ADD, WORD, MB_OK},
                {MB_OP_READ, WORD, MB_OK},       {MB_OP_SWAP, WORD, MB_OK},
                {MB_OP_CAS, WORD, MB_OK},        {MB_OP_FIFO, FIFO, MB_OK},
                {MB_OP_SIGNAL, HANDLER, MB_OK},  {MB_OP_TASKQUE, 0, MB_OK},
                {MB_OP_WRITE, 0x77000, MB_FAULT}};
    static const uint64_t rings[] = {FIFO, QUEUE, TASKQUE};
    uint8_t data[64];
    struct mb_record record;

    for (unsigned i = 0; i < sizeof(uses) / sizeof(*uses); i++) {
        struct mb_operation operation = {.op = uses[i].op,
                                         .ltn = ltns[node],
                                         .remote = uses[i].remote,
                                         .data = at(DATA),
                                         .length = uses[i].op < MB_OP_SWAP ? 8 : 0,
                                         .argument = {1},
                                         .node = (uint16_t)(3 - node),
                                         .task = tasks[3 - node],
                                         .ack = at(ACK)};

        int result = rig_operate(rig, node, tasks[node], &operation);

        EXPECT_OF(result == 0, "operation %u: %d", i, result);
        result = rig_ack(rig, node, 0, ACK, 60 * SECOND);
        EXPECT_OF(result == uses[i].wanted, "operation %u: %d", i, result);
        if (operation.op == MB_OP_TASKQUE)
            EXPECT(mbcf_close(rig->nodes[node].mbcf, tasks[node], operation.ltn, rig->now_ns) == 0);
    }
    rig_run(rig, SECOND);
    for (unsigned i = 0; i < sizeof(rings) / sizeof(*rings); i++)
        while (rig_take(rig, 3 - node, 0, rings[i], &record, data, sizeof(data)) >= 0)
            ;
}

/* All of them, in their own order: no node does anything for them. */
static void come_late(struct rig *rig, unsigned count, unsigned order)
{
    uint64_t before[3] = {0, done_by(rig, 1), done_by(rig, 2)};

    rig->tap = NULL;
    for (unsigned i = 0; i < count; i++) {
        const struct kept *late = &kept[order == 0   ? i
                                        : order == 1 ? count - 1 - i
                                                     : (unsigned)(rig_random(rig) % count)];

        rig_inject(rig, 3u - late->from, late->bytes, late->length);
        if (i % 5 == order)
            rig_run(rig, 3 * RIG_DELAY_NS);
    }
    rig_run(rig, SECOND);
    EXPECT(done_by(rig, 1) == before[1] && done_by(rig, 2) == before[2]);
    rig->tap = keep;
}

static void connect_again(struct rig *rig, unsigned node)
{
    mbcf_close(rig->nodes[node].mbcf, tasks[node], ltns[node], rig->now_ns);
    ltns[node] = mbcf_connect(rig->nodes[node].mbcf, tasks[node], (uint16_t)(3 - node),
                              tasks[3 - node], KEY);
}

/* Node `by` does things; those of `who` (bits 1 and 2) restart, with epochs so far apart. */
static void restart_often(unsigned restarts, unsigned who, unsigned by, uint32_t first_seq,
                          uint32_t stride)
{
    struct mbcf_config config = {.first_seq = first_seq};
    struct rig *rig = rig_new(2, restarts, &config);

    kept = malloc(sizeof(*kept) * KEPT_MOST);
    kept_count = 0;
    rig->tap = keep;
    declare(rig, 1, by == 2);
    declare(rig, 2, by == 1);
    use(rig, by);
    for (unsigned n = 1; n <= restarts; n++) {
        bool all = n <= TURNS || n == 100 || n == restarts;

        rig->tap = all || n % 16 == 0 ? keep : NULL;
        for (unsigned node = 1; node <= 2; node++)
            if (who & node) {
                rig_restart(rig, node, 0x1000 * node + 7 + n * stride);
                declare(rig, node, node != by);
            }
        connect_again(rig, by);
        if (all && n % 3 == 0) /* the living ones do not know each other yet */
            come_late(rig, kept_count, n % 2);
        rig->tap = all || n % 16 == 0 ? keep : NULL;
        /* Who went on learns of it by an operation that ends so. */
        if (!(who & by)) {
            struct mb_operation operation = {.op = MB_OP_READ,
                                             .ltn = ltns[by],
                                             .remote = WORD,
                                             .data = at(DATA),
                                             .length = 8,
                                             .ack = at(ACK)};

            int result = rig_operate(rig, by, tasks[by], &operation);

            /* What came late may have made it ask. */
            if (result == 0)
                EXPECT(rig_ack(rig, by, 0, ACK, 60 * SECOND) == (MB_NODE_RESTART | MB_MAYBE));
            else
                EXPECT(result == -(MB_NODE_RESTART + MB_STATUS_BASE) && all && n % 3 == 0);
            connect_again(rig, by);
        }
        use(rig, by);
        if (!all)
            continue;
        for (unsigned order = 0; order < 3; order++)
            come_late(rig, kept_count, order);
        use(rig, by);
    }
    EXPECT(rig_free(rig));
    for (unsigned i = 0; i < kept_count; i++)
        free(kept[i].bytes);
    free(kept);
}

static void test_sender(void)
{
    restart_often(6, 1, 1, 0, 1);
    restart_often(1000, 1, 1, 0, 1);
}
static void test_receiver(void)
{
    restart_often(6, 2, 1, 0, 1);
    restart_often(1000, 2, 1, 0, 1);
}
static void test_both(void)
{
    restart_often(1000, 3, 1, 0, 1);
}
/* Epochs whose lower halves are alike. */
static void test_halves(void)
{
    restart_often(20, 1, 1, 0, 0x10000);
    restart_often(20, 2, 1, 0, 0x10000);
    restart_often(20, 3, 2, 0, 0x10000);
}
/* Numbers go round in each incarnation. */
static void test_wrap(void)
{
    restart_often(20, 1, 1, 0xfffffff8, 1);
    restart_often(20, 2, 1, 0xfffffff8, 1);
    restart_often(20, 3, 1, 0xfffffff8, 1);
}
static void test_every_kind_came_late(void)
{
    static const uint8_t all[] = {MBW_ACK,   MBW_SYN,       MBW_SYNACK,  MBW_RST,    MBW_OPENED,
                                  MBW_WRITE, MBW_READ,      MBW_FIFO,    MBW_SIGNAL, MBW_SWAP,
                                  MBW_CAS,   MBW_FETCH_ADD, MBW_TASKQUE, MBW_CLOSE,  MBW_RESULT};

    for (unsigned i = 0; i < sizeof(all); i++)
        EXPECT_OF(kinds_seen[all[i]] != 0, "operation %02x", all[i]);
}

int main(void)
{
    static const struct test tests[] = {
        {"sender", test_sender}, {"receiver", test_receiver},
        {"both", test_both},     {"halves", test_halves},
        {"wrap", test_wrap},     {"every_kind_came_late", test_every_kind_came_late},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
