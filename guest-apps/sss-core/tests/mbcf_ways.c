/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One long script of operations, drawn from a seed. It is compiled with the short ways of the
 * protocol and without (MBCF_SHORT_WAYS): both programs must write the same frames at the same
 * times, and print the same results.
 *
 *   mbcf_ways CAPTURE
 */
#include "mbcf_rig.h"

enum {
    NODES = 2,
    TASKS = 2, /* of each node */
    PAGES = 24,
    STEPS = 1500,
    ACKS = 48,
    FIFO_BYTES = 4096,
    FIFO_PAGE = 16,
    QUEUE_PAGE = 18,
    TASKQUE_PAGE = 20,
    LTNS = 6, /* of each task */
};
#define KEY           0x5eed
#define OTHER_KEY     0xbad
#define HANDLER       0x401000ull
#define PAGE_AT(page) (RIG_BASE + 4096ull * (page))

static struct rig *rig;
static uint16_t tasks[NODES + 1][TASKS];
static int ltns[NODES + 1][TASKS][LTNS];

static unsigned pick(unsigned of)
{
    return (unsigned)(rig_random(rig) % of);
}

static void set_up(unsigned node, unsigned space)
{
    struct mbcf *mbcf = rig->nodes[node].mbcf;
    uint16_t task = rig_task(rig, node, space, PAGES);
    const uint64_t handler = HANDLER;
    uint8_t bytes[256];

    tasks[node][space] = task;
    mbcf_key(mbcf, task, 0, KEY, MB_READ_ALLOWED | MB_WRITE_ALLOWED);
    mbcf_fifo(mbcf, task, PAGE_AT(FIFO_PAGE), MB_FIFO_HEADER + FIFO_BYTES);
    mbcf_signal(mbcf, task, &handler, 1, PAGE_AT(QUEUE_PAGE), MB_FIFO_HEADER + FIFO_BYTES);
    mbcf_taskque(mbcf, task, PAGE_AT(TASKQUE_PAGE), MB_FIFO_HEADER + FIFO_BYTES);
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 7 + node * 31 + space);
    for (unsigned at = 0; at < 8 * 4096; at += sizeof(bytes))
        rig_write(rig, node, space, RIG_BASE + at, bytes, sizeof(bytes));
}

/* To each task of the other node, with a good key and with a bad one, and to one's own node. */
static void connect_all(unsigned node, unsigned space)
{
    struct mbcf *mbcf = rig->nodes[node].mbcf;
    unsigned count = 0;

    for (uint16_t to = 1; to <= NODES; to++)
        for (unsigned i = 0; i < TASKS; i++)
            ltns[node][space][count++] = mbcf_connect(mbcf, tasks[node][space], to, tasks[to][i],
                                                      KEY);
    ltns[node][space][count++] = mbcf_connect(mbcf, tasks[node][space],
                                              (uint16_t)(NODES + 1 - node), tasks[1][0], OTHER_KEY);
    ltns[node][space][count] = mbcf_connect(mbcf, tasks[node][space], (uint16_t)(NODES + 1 - node),
                                            0x177, KEY);
}

static struct mb_operation draw(unsigned node, unsigned space)
{
    static const uint16_t ops[] = {MB_OP_WRITE,  MB_OP_WRITE,     MB_OP_FIFO,   MB_OP_FIFO,
                                   MB_OP_SIGNAL, MB_OP_SIGNAL,    MB_OP_READ,   MB_OP_SWAP,
                                   MB_OP_CAS,    MB_OP_FETCH_ADD, MB_OP_TASKQUE};
    static const uint16_t sizes[] = {0, 1, 4, 8, 16, 24, 64, 255, 256, 1000, 1024, 1376, 1408};
    struct mb_operation operation = {.op = ops[pick(sizeof(ops) / sizeof(*ops))],
                                     .length = sizes[pick(sizeof(sizes) / sizeof(*sizes))]};
    unsigned ltn = pick(20);

    operation.ltn = ltns[node][space][ltn < LTNS ? ltn : (4 - 2 * node) + ltn % TASKS];
    operation.data = (void *)(uintptr_t)(PAGE_AT(1 + pick(6)) + pick(4096));
    operation.remote = PAGE_AT(8 + pick(6)) + (pick(2) ? 4ull * pick(64) : pick(4096));
    if (pick(2))
        operation.ack = (void *)(uintptr_t)(RIG_BASE + 4096 - 16 * ACKS / 2 - 8 + 16 * pick(ACKS));
    if (pick(100) == 0)
        operation.remote = 0x77000; /* not mapped */
    operation.flags = (uint16_t)((pick(4) == 0 ? MB_LAZY : 0));
    switch (operation.op) {
    case MB_OP_FIFO:
        operation.remote = pick(200) == 0 ? PAGE_AT(2) : PAGE_AT(FIFO_PAGE);
        break;
    case MB_OP_SIGNAL:
        operation.remote = pick(200) == 0 ? 0x402000 : HANDLER;
        operation.arguments = pick(5);
        operation.length %= 1377;
        break;
    case MB_OP_READ:
        operation.ack = operation.ack != NULL ? operation.ack : (void *)(uintptr_t)RIG_BASE;
        break;
    case MB_OP_TASKQUE:
        operation.node = (uint16_t)(NODES + 1 - node);
        operation.task = tasks[operation.node][pick(TASKS)];
        operation.length %= 500;
        break;
    default:
        break;
    }
    if (operation.op == MB_OP_WRITE || operation.op == MB_OP_FIFO)
        operation.length += pick(12) == 0 ? 1400u + pick(500) : 0;
    if (operation.op >= MB_OP_SWAP) {
        operation.flags |= pick(2) ? MB_WIDE : 0;
        operation.length = 0;
        operation.remote &= pick(50) == 0 ? ~0ull : ~7ull;
    }
    for (unsigned i = 0; i < 4; i++)
        operation.argument[i] = rig_random(rig);
    return operation;
}

/* What readers of queues do; connections that TASKQUE writes have made are closed. */
static void take_some(unsigned node, unsigned space)
{
    static const unsigned pages[] = {FIFO_PAGE, QUEUE_PAGE, TASKQUE_PAGE};
    uint8_t data[FIFO_BYTES];
    struct mb_record record;

    for (unsigned i = 0; i < sizeof(pages) / sizeof(*pages); i++)
        for (unsigned n = pick(12); n > 0; n--) {
            int length = rig_take(rig, node, space, PAGE_AT(pages[i]), &record, data, sizeof(data));

            if (length < 0)
                break;
            printf("took %u.%u %u: %d kind %u state %u from %u.%u\n", node, space, i, length,
                   record.kind, record.state, record.node, record.task);
            if (pages[i] == TASKQUE_PAGE)
                mbcf_close(rig->nodes[node].mbcf, tasks[node][space], record.ltn, rig->now_ns);
        }
}

static void show_state(unsigned node, unsigned space)
{
    const struct rig_space *own = &rig->nodes[node].spaces[space];
    uint64_t sum = 1469598103934665603ull;
    struct mb_connection info;

    for (unsigned page = 0; page < PAGES; page++)
        for (unsigned i = 0; i < 4096; i++)
            sum = (sum ^ own->pages[page][i]) * 1099511628211ull;
    printf("memory %u.%u %016llx failed %u signals %u\n", node, space, (unsigned long long)sum,
           own->failed, own->signals);
    for (unsigned i = 0; i < LTNS; i++)
        if (mbcf_connection(rig->nodes[node].mbcf, tasks[node][space], ltns[node][space][i],
                            &info) == 0)
            printf("connection %u state %u error %u unfinished %u\n", i, info.state, info.error,
                   info.unfinished);
}

static void show_counters(unsigned node)
{
    const struct mbcf_counters *counters = mbcf_counters(rig->nodes[node].mbcf);
    const uint64_t *values = (const void *)counters;

    printf("counters %u:", node);
    for (unsigned i = 0; i < sizeof(*counters) / sizeof(*values); i++)
        printf(" %llu", (unsigned long long)values[i]);
    printf("\n");
}

static void write_silently(unsigned node)
{
    struct mb_operation operation = {.op = MB_OP_WRITE,
                                     .ltn = ltns[node][0][4 - 2 * node],
                                     .remote = PAGE_AT(8),
                                     .data = (void *)(uintptr_t)PAGE_AT(1),
                                     .length = 4};

    printf("silent write %d\n", rig_operate(rig, node, tasks[node][0], &operation));
}

/* All places but the last one are in use, then reverse traffic acknowledges them. */
static void fill_window(unsigned node)
{
    rig_run(rig, 500000000);
    for (unsigned i = 0; i < 63; i++)
        write_silently(node);
    rig_run(rig, 200000);
    write_silently(NODES + 1 - node);
    rig_run(rig, 200000);
    write_silently(node);
}

static void step(void)
{
    unsigned node = 1 + pick(NODES), space = pick(TASKS);

    /* Some of them have no waiter, so that only reverse traffic acknowledges them. */
    bool silent = pick(3) == 0;

    /* A burst: nothing arrives meanwhile, so the window fills now and then. */
    for (unsigned n = pick(12) == 0 ? 60 + pick(30) : 1 + pick(4); n > 0; n--) {
        struct mb_operation operation = draw(node, space);
        int result;

        if (silent && operation.op <= MB_OP_SIGNAL && operation.op != MB_OP_READ)
            operation.ack = NULL;
        result = rig_operate(rig, node, tasks[node][space], &operation);

        printf("%llu %u.%u op %x length %llu: %d\n", (unsigned long long)rig->now_ns, node, space,
               operation.op, (unsigned long long)operation.length, result);
        if (operation.op == MB_OP_TASKQUE && result == 0 && pick(2))
            mbcf_close(rig->nodes[node].mbcf, tasks[node][space], operation.ltn, rig->now_ns);
    }
    rig_run(rig, pick(8) == 0 ? 20000000 : pick(120000));
    take_some(1 + pick(NODES), pick(TASKS));
    if (pick(100) == 0)
        fill_window(1 + pick(NODES));
    if (pick(50) == 0)
        show_state(1 + pick(NODES), pick(TASKS));
}

static void play(FILE *capture, unsigned seed, unsigned loss, unsigned duplication,
                 unsigned reordering)
{
    rig = rig_new(NODES, seed, NULL);
    rig->capture = capture;
    rig->loss = loss;
    rig->duplication = duplication;
    rig->reordering = reordering;
    for (unsigned node = 1; node <= NODES; node++)
        for (unsigned space = 0; space < TASKS; space++)
            set_up(node, space);
    for (unsigned node = 1; node <= NODES; node++)
        for (unsigned space = 0; space < TASKS; space++)
            connect_all(node, space);
    for (unsigned i = 0; i < STEPS; i++)
        step();
    rig_run(rig, 5000000000ull);
    for (unsigned node = 1; node <= NODES; node++) {
        for (unsigned space = 0; space < TASKS; space++)
            show_state(node, space);
        show_counters(node);
    }
    rig->capture = NULL;
    rig_free(rig);
}

int main(int argc, char **argv)
{
    FILE *capture = argc == 2 ? rig_capture(argv[1]) : NULL;

    if (capture == NULL)
        return 2;
    play(capture, 1, 0, 0, 0);
    play(capture, 2, 20, 0, 0);
    play(capture, 3, 0, 50, 100);
    play(capture, 4, 50, 50, 50);
    return fclose(capture);
}
