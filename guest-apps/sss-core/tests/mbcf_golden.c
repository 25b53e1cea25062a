/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes captures of everything that MBCF puts on a wire, always the same bytes: for the dissector
 * and its tests.
 *
 *   mbcf_golden FOLDER    writes operations.pcap, statuses.pcap, faults.pcap, restart.pcap
 */
#include "mbcf_rig.h"

enum { KEY = 0x1234, READ_ONLY_KEY = 0x5678 };
#define ACK     RIG_BASE
#define DATA    (RIG_BASE + 4096)
#define FIFO    (RIG_BASE + 16 * 4096ull)
#define TASKQUE (RIG_BASE + 48 * 4096ull)
#define QUEUE   (RIG_BASE + 52 * 4096ull)
#define HANDLER 0x401000ull
#define SECOND  1000000000ull

static struct rig *rig;
static uint16_t client, server;
static int ltn;

static void *address(uint64_t at)
{
    return (void *)(uintptr_t)at;
} /* of a fake task */

/* Two nodes; the second one serves everything. */
static void begin(const char *folder, const char *name)
{
    char path[4096];
    uint64_t handler = HANDLER;
    struct mbcf *mbcf;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    rig = rig_new(2, 1, NULL);
    rig->capture = rig_capture(path);
    if (rig->capture == NULL) {
        fprintf(stderr, "%s: cannot be written\n", path);
        exit(1);
    }
    client = rig_task(rig, 1, 0, 32);
    server = rig_task(rig, 2, 0, 64);
    mbcf = rig->nodes[2].mbcf;
    mbcf_key(mbcf, server, 0, KEY, MB_READ_ALLOWED | MB_WRITE_ALLOWED);
    mbcf_key(mbcf, server, 1, READ_ONLY_KEY, MB_READ_ALLOWED);
    mbcf_fifo(mbcf, server, FIFO, MB_FIFO_HEADER + 65536);
    mbcf_taskque(mbcf, server, TASKQUE, MB_FIFO_HEADER + 4096);
    mbcf_signal(mbcf, server, &handler, 1, QUEUE, MB_FIFO_HEADER + 4096);
    ltn = mbcf_connect(rig->nodes[1].mbcf, client, 2, server, KEY);
    for (unsigned i = 0; i < 8192; i++)
        rig_write(rig, 1, 0, DATA + i, &(uint8_t){(uint8_t)(i * 7)}, 1);
}

static void end(void)
{
    rig_run(rig, SECOND);
    if (!rig_free(rig))
        exit(1);
}

/* One operation, with and without an ack; then quiet. */
static int operate(struct mb_operation operation, bool ack)
{
    int result;

    if (operation.op != MB_OP_TASKQUE && operation.ltn == 0)
        operation.ltn = ltn;
    operation.data = operation.length != 0 ? address(DATA) : NULL;
    operation.ack = ack ? address(ACK) : NULL;
    result = rig_operate(rig, 1, client, &operation);
    if (ack && result == 0)
        rig_ack(rig, 1, 0, ACK, 60 * SECOND);
    rig_run(rig, 20000000);
    return operation.op == MB_OP_TASKQUE ? operation.ltn : result;
}

static void write_operations(const char *folder)
{
    static const uint64_t sizes[] = {0, 4, 1408, 1409, 5000};
    int connection;

    begin(folder, "operations.pcap");
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        operate((struct mb_operation){.op = MB_OP_WRITE, .remote = DATA, .length = sizes[i]}, true);
        operate((struct mb_operation){.op = MB_OP_WRITE, .remote = DATA, .length = sizes[i]},
                false);
        operate((struct mb_operation){.op = MB_OP_READ, .remote = DATA, .length = sizes[i]}, true);
        operate((struct mb_operation){.op = MB_OP_FIFO, .remote = FIFO, .length = sizes[i]}, true);
        operate((struct mb_operation){.op = MB_OP_FIFO, .remote = FIFO, .length = sizes[i]}, false);
    }
    for (unsigned wide = 0; wide < 2; wide++)
        for (uint16_t op = MB_OP_SWAP; op <= MB_OP_FETCH_ADD; op++)
            operate(
                (struct mb_operation){
                    .op = op, .flags = wide ? MB_WIDE : 0, .remote = DATA, .argument = {3, 5}},
                true);
    operate((struct mb_operation){.op = MB_OP_FETCH_ADD, .remote = DATA, .argument = {1}}, false);
    operate((struct mb_operation){.op = MB_OP_SIGNAL,
                                  .remote = HANDLER,
                                  .length = 100,
                                  .argument = {1, 2, 3, 4},
                                  .arguments = 4},
            true);
    operate(
        (struct mb_operation){
            .op = MB_OP_SIGNAL, .remote = HANDLER, .argument = {1, 2, 3, 4}, .arguments = 4},
        false);
    operate(
        (struct mb_operation){
            .op = MB_OP_SIGNAL, .remote = HANDLER, .length = 8, .argument = {1}, .arguments = 1},
        true);
    operate((struct mb_operation){.op = MB_OP_SIGNAL, .remote = HANDLER}, false);
    connection =
        operate((struct mb_operation){.op = MB_OP_TASKQUE,
                                      .node = 2,
                                      .task = server,
                                      .length = 40,
                                      .argument = {0xc0ffee, MB_READ_ALLOWED | MB_WRITE_ALLOWED}},
                true);
    mbcf_close(rig->nodes[1].mbcf, client, connection, rig->now_ns);
    operate((struct mb_operation){.op = MB_OP_TASKQUE,
                                  .node = 2,
                                  .task = server,
                                  .argument = {0xc0ffee, MB_WRITE_ALLOWED}},
            false);
    /* A stream: acknowledged now and then only. */
    for (unsigned i = 0; i < 40; i++) {
        struct mb_operation operation = {
            .op = MB_OP_WRITE, .ltn = ltn, .remote = DATA, .data = address(DATA), .length = 1408};

        rig_operate(rig, 1, client, &operation);
    }
    rig_run(rig, SECOND);
    mbcf_task_close(rig->nodes[2].mbcf, server, rig->now_ns);
    end();
}

static void write_statuses(const char *folder)
{
    struct mbcf *mbcf;
    int other;

    begin(folder, "statuses.pcap");
    mbcf = rig->nodes[1].mbcf;
    rig_map(rig, 2, 0, 60, SSS_READ);
    operate((struct mb_operation){.op = MB_OP_WRITE, .remote = 0x10, .length = 8},
            true); /* FAULT */
    operate((struct mb_operation){.op = MB_OP_WRITE, .remote = RIG_BASE + 60 * 4096, .length = 8},
            true); /* READONLY */
    operate((struct mb_operation){.op = MB_OP_FIFO, .remote = FIFO + 64, .length = 8},
            true);                                                                   /* NOFIFO */
    operate((struct mb_operation){.op = MB_OP_SIGNAL, .remote = HANDLER + 1}, true); /* NOHANDLER */
    operate((struct mb_operation){.op = MB_OP_SWAP, .flags = MB_WIDE, .remote = DATA + 4},
            true); /* ALIGN */
    operate((struct mb_operation){.op = MB_OP_FIFO, .remote = FIFO, .length = 40000},
            true); /* RANGE */
    operate((struct mb_operation){.op = MB_OP_WRITE, .remote = 0x10, .length = 8},
            false); /* FAULT, not asked for */
    for (unsigned i = 0; i < 4; i++)
        operate((struct mb_operation){.op = MB_OP_SIGNAL, .remote = HANDLER, .length = 1376},
                true); /* FULL */
    other = mbcf_connect(mbcf, client, 2, server, KEY + 1);
    operate((struct mb_operation){.op = MB_OP_WRITE, .ltn = other, .remote = DATA, .length = 8},
            true); /* KEY */
    other = mbcf_connect(mbcf, client, 2, server, READ_ONLY_KEY);
    operate((struct mb_operation){.op = MB_OP_WRITE, .ltn = other, .remote = DATA, .length = 8},
            true); /* PERM */
    other = mbcf_connect(mbcf, client, 2, 0x7777, KEY);
    operate((struct mb_operation){.op = MB_OP_READ, .ltn = other, .remote = DATA, .length = 8},
            true); /* NOTASK */
    mbcf_taskque(rig->nodes[2].mbcf, server, 0, 0);
    operate(
        (struct mb_operation){.op = MB_OP_TASKQUE, .node = 2, .task = server, .argument = {1, 1}},
        true); /* NOQUE */
    mbcf_taskque(rig->nodes[2].mbcf, server, TASKQUE, MB_FIFO_HEADER + 4096);
    while (mbcf_connect(rig->nodes[2].mbcf, server, 1, client, KEY) > 0)
        ;
    operate(
        (struct mb_operation){.op = MB_OP_TASKQUE, .node = 2, .task = server, .argument = {1, 1}},
        true); /* BUSY */
    end();
}

/* ---- faults: some frames vanish, some come twice ---- */

static bool lose_some(struct rig *of, uint16_t node, const uint8_t *frame, size_t length)
{
    (void)node;
    (void)frame;
    (void)length;
    return of->sent % 7 != 3;
}

static void write_faults(const char *folder)
{
    begin(folder, "faults.pcap");
    rig->tap = lose_some;
    rig->duplication = 100;
    for (unsigned i = 0; i < 30; i++)
        operate(
            (struct mb_operation){
                .op = MB_OP_FETCH_ADD, .flags = MB_WIDE, .remote = DATA, .argument = {1}},
            true);
    operate((struct mb_operation){.op = MB_OP_FIFO, .remote = FIFO, .length = 8000}, true);
    end();
}

static void write_restart(const char *folder)
{
    begin(folder, "restart.pcap");
    operate((struct mb_operation){.op = MB_OP_WRITE, .remote = DATA, .length = 8}, true);
    rig_restart(rig, 2, 0xbeef0001);
    operate((struct mb_operation){.op = MB_OP_WRITE, .remote = DATA, .length = 8}, true);
    server = rig_task(rig, 2, 0, 64);
    mbcf_key(rig->nodes[2].mbcf, server, 0, KEY, MB_READ_ALLOWED | MB_WRITE_ALLOWED);
    ltn = mbcf_connect(rig->nodes[1].mbcf, client, 2, server, KEY);
    operate((struct mb_operation){.op = MB_OP_WRITE, .remote = DATA, .length = 8}, true);
    /* The node goes away and stays away. */
    rig->nodes[2].deaf = true;
    operate((struct mb_operation){.op = MB_OP_WRITE, .remote = DATA, .length = 8}, true);
    end();
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: mbcf_golden FOLDER\n");
        return 2;
    }
    write_operations(argv[1]);
    write_statuses(argv[1]);
    write_faults(argv[1]);
    write_restart(argv[1]);
    return 0;
}
