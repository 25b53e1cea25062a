/* SPDX-License-Identifier: Apache-2.0 */

/* One test for each rule of what operations do, and each status of them. */
#include "expect.h"
#include "mbcf_bed.h"

/* ---- keys and permissions ---- */

static void test_keys(void)
{
    static const struct {
        uint16_t op;
        uint64_t remote;
        int by_read, by_write;
    } table[] = {
        {MB_OP_WRITE, DATA, MB_PERM, MB_OK},       {MB_OP_READ, DATA, MB_OK, MB_PERM},
        {MB_OP_FIFO, FIFO, MB_PERM, MB_OK},        {MB_OP_SIGNAL, HANDLER, MB_PERM, MB_OK},
        {MB_OP_SWAP, DATA, MB_PERM, MB_PERM},      {MB_OP_CAS, DATA, MB_PERM, MB_PERM},
        {MB_OP_FETCH_ADD, DATA, MB_PERM, MB_PERM},
    };

    begin();
    for (unsigned i = 0; i < sizeof(table) / sizeof(*table); i++) {
        EXPECT(with_key(table[i].op, KEY, table[i].remote) == MB_OK);
        EXPECT(with_key(table[i].op, READ_KEY, table[i].remote) == table[i].by_read);
        EXPECT(with_key(table[i].op, WRITE_KEY, table[i].remote) == table[i].by_write);
        EXPECT(with_key(table[i].op, KEY + 1, table[i].remote) == MB_KEY);
        /* the empty fourth slot is not a key */
        EXPECT(with_key(table[i].op, 0, table[i].remote) == MB_KEY);
    }
    mbcf_key(core(2), server, 0, 0, 3);
    EXPECT(with_key(MB_OP_WRITE, KEY, DATA) == MB_KEY);
    EXPECT(mbcf_key(core(2), server, MB_KEYS, 1, 1) == -SSS_EINVAL);
    EXPECT(mbcf_key(core(2), server, 0, 1, 4) == -SSS_EINVAL);
    end();
}

/* ---- expected frames ---- */

/* After a few equal requests the next one is expected: what a task declares counts for it, too. */
static void test_expected(void)
{
    begin();
    for (unsigned i = 0; i < 3; i++)
        EXPECT(write_at(DATA, 8) == MB_OK);
    rig_map(rig, 2, 0, (DATA - RIG_BASE) / 4096, SSS_READ);
    EXPECT(write_at(DATA, 8) == MB_READONLY);
    rig_map(rig, 2, 0, (DATA - RIG_BASE) / 4096, SSS_READ | SSS_WRITE);
    for (unsigned i = 0; i < 3; i++)
        EXPECT(write_at(DATA, 8) == MB_OK);
    mbcf_key(core(2), server, 0, KEY + 1, MB_READ_ALLOWED | MB_WRITE_ALLOWED);
    EXPECT(write_at(DATA, 8) == MB_KEY);
    mbcf_key(core(2), server, 0, KEY, MB_READ_ALLOWED);
    EXPECT(write_at(DATA, 8) == MB_PERM);
    mbcf_key(core(2), server, 0, KEY, MB_READ_ALLOWED | MB_WRITE_ALLOWED);
    for (unsigned i = 0; i < 3; i++)
        EXPECT(write_at(DATA, 8) == MB_OK);
    /* The same of who sends: a connection that it closes is none. */
    EXPECT(mbcf_close(core(1), client, ltn, rig->now_ns) == 0);
    EXPECT(write_at(DATA, 8) == -(MB_CLOSED + MB_STATUS_BASE));
    end();
}

/* ---- pages ---- */

static void test_pages(void)
{
    static const uint8_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    uint8_t seen[8];

    begin();
    rig_write(rig, 1, 0, DATA, ones, sizeof(ones));
    EXPECT(write_at(UNMAPPED, 8) == MB_FAULT);
    EXPECT(write_at(0, 8) == MB_FAULT);
    EXPECT(write_at(UINT64_MAX - 3, 8) == MB_FAULT);
    EXPECT(write_at(READONLY, 8) == MB_READONLY);
    /* Across pages: nothing of it, if not all of it. */
    EXPECT(write_at(READONLY - 4, 8) == MB_READONLY);
    rig_read(rig, 2, 0, READONLY - 4, seen, 4);
    EXPECT(memcmp(seen, "\0\0\0\0", 4) == 0);
    EXPECT(write_at(RIG_BASE - 4, 8) == MB_FAULT);
    EXPECT(rig_word(rig, 2, 0, RIG_BASE) == 0);
    EXPECT(write_at(DATA + 4092, 8) == MB_OK);
    EXPECT(rig_word(rig, 2, 0, DATA + 4092) == 0x01010101 &&
           rig_word(rig, 2, 0, DATA + 4096) == 0x01010101);
    EXPECT(status_of((struct mb_operation){.op = MB_OP_READ, .remote = READONLY, .length = 8}) ==
           MB_OK);
    EXPECT(status_of((struct mb_operation){
               .op = MB_OP_READ, .remote = READONLY + 4092, .length = 8}) == MB_FAULT);
    EXPECT(status_of((struct mb_operation){.op = MB_OP_SWAP, .remote = READONLY}) == MB_READONLY);
    /* A segment of several packets: those before the hole have been written, so it is a maybe. */
    rig_write(rig, 1, 0, DATA, ones, sizeof(ones));
    EXPECT(write_at(READONLY - 2000, 4000) == (MB_READONLY | MB_MAYBE));
    EXPECT(rig_word(rig, 2, 0, READONLY - 2000) == 0x01010101);
    EXPECT(write_at(DATA, 0) == MB_OK);
    end();
}

/* ---- atomic operations ---- */

static void put_word(uint64_t value)
{
    rig_write(rig, 2, 0, DATA, &value, 8);
}

static uint64_t word(void)
{
    uint64_t value;

    rig_read(rig, 2, 0, DATA, &value, 8);
    return value;
}

static uint64_t old_after(uint16_t op, unsigned flags, uint64_t first, uint64_t second)
{
    EXPECT(status_of((struct mb_operation){
               .op = op, .flags = (uint16_t)flags, .remote = DATA, .argument = {first, second}}) ==
           MB_OK);
    return rig_ack_value(rig, 1, 0, ACK);
}

static void test_atomics(void)
{
    begin();
    put_word(0x1111111122222222);
    EXPECT(old_after(MB_OP_SWAP, 0, 0x33, 0) == 0x22222222 && word() == 0x1111111100000033);
    EXPECT(old_after(MB_OP_SWAP, MB_WIDE, 0x44, 0) == 0x1111111100000033 && word() == 0x44);
    EXPECT(old_after(MB_OP_CAS, MB_WIDE, 0x45, 1) == 0x44 && word() == 0x44);
    EXPECT(old_after(MB_OP_CAS, MB_WIDE, 0x44, 1) == 0x44 && word() == 1);
    put_word(0x5500000007);
    EXPECT(old_after(MB_OP_CAS, 0, 8, 9) == 7 && word() == 0x5500000007);
    EXPECT(old_after(MB_OP_CAS, 0, 7, 9) == 7 && word() == 0x5500000009);
    put_word(0x55ffffffff);
    EXPECT(old_after(MB_OP_FETCH_ADD, 0, 2, 0) == 0xffffffff && word() == 0x5500000001);
    EXPECT(old_after(MB_OP_FETCH_ADD, MB_WIDE, UINT64_MAX, 0) == 0x5500000001 &&
           word() == 0x5500000000);
    EXPECT(status_of((struct mb_operation){.op = MB_OP_SWAP, .remote = DATA + 2}) == MB_ALIGN);
    EXPECT(status_of((struct mb_operation){
               .op = MB_OP_SWAP, .flags = MB_WIDE, .remote = DATA + 4}) == MB_ALIGN);
    end();
}

/* ---- tasks ---- */

static void test_tasks(void)
{
    int other, id;

    begin();
    other = mbcf_connect(core(1), client, 2, 0x7f7f, KEY);
    EXPECT(status_of((struct mb_operation){
               .op = MB_OP_WRITE, .ltn = other, .remote = DATA, .length = 4}) == MB_NOTASK);
    /* A connection to a task that does not exist is not a connection. */
    EXPECT(info_of(1, client, other).state == MB_CONNECTION_BROKEN);
    EXPECT(status_of((struct mb_operation){
               .op = MB_OP_WRITE, .ltn = other, .remote = DATA, .length = 4}) ==
           -(MB_NOTASK + MB_STATUS_BASE));
    /* Ids: the well-known ones are given on demand only, and a dead task's id is not the next
     * one's. */
    EXPECT(mbcf_task_open_as(core(2), 1, &rig->nodes[2].spaces[1]) == 1);
    EXPECT(mbcf_task_open_as(core(2), 1, &rig->nodes[2].spaces[1]) == -SSS_EEXIST);
    EXPECT(mbcf_task_open_as(core(2), 0, NULL) == -SSS_EINVAL);
    EXPECT(mbcf_task_open_as(core(2), 200, NULL) == -SSS_EINVAL);
    id = mbcf_task_open(core(2), &rig->nodes[2].spaces[2]);
    EXPECT(id > 255 && (id & 0xff) >= 16);
    mbcf_task_close(core(2), (uint16_t)id, rig->now_ns);
    other = mbcf_task_open(core(2), &rig->nodes[2].spaces[2]);
    EXPECT((other & 0xff) == (id & 0xff) && other != id);
    while ((id = mbcf_task_open(core(2), NULL)) > 0)
        ;
    EXPECT(id == -SSS_EAGAIN);
    end();
}

static void test_task_gone_is_told(void)
{
    begin();
    EXPECT(write_at(DATA, 4) == MB_OK);
    mbcf_task_close(core(2), server, rig->now_ns);
    rig_run(rig, SECOND);
    EXPECT(rig->nodes[1].spaces[0].failed == 1);
    EXPECT(info_of(1, client, ltn).state == MB_CONNECTION_BROKEN);
    EXPECT(info_of(1, client, ltn).error == 0); /* reading has cleared it */
    EXPECT(write_at(DATA, 4) == -(MB_CLOSED + MB_STATUS_BASE));
    EXPECT(mbcf_close(core(1), client, ltn, rig->now_ns) == 0);
    EXPECT(write_at(DATA, 4) == -(MB_CLOSED + MB_STATUS_BASE));
    EXPECT(mbcf_close(core(1), client, ltn, rig->now_ns) == -(MB_CLOSED + MB_STATUS_BASE));
    end();
}

/* ---- FIFOs ---- */

static int fifo_write(uint64_t length)
{
    return status_of((struct mb_operation){.op = MB_OP_FIFO, .remote = FIFO, .length = length});
}

static void test_fifo(void)
{
    struct mb_record record;
    uint8_t data[4096];
    unsigned sizes[100], put = 0, taken = 0;
    int length;

    begin();
    EXPECT(status_of((struct mb_operation){.op = MB_OP_FIFO, .remote = FIFO + 64, .length = 8}) ==
           MB_NOFIFO);
    EXPECT(status_of((struct mb_operation){.op = MB_OP_FIFO, .remote = 0, .length = 8}) ==
           MB_NOFIFO);
    EXPECT(fifo_write(4096 - 16) == MB_OK && fifo_write(4096 - 16) == MB_OK);
    EXPECT(fifo_write(0) == MB_FULL); /* a segment is refused as a whole, visibly */
    EXPECT(rig_word(rig, 2, 0, FIFO + offsetof(struct mb_fifo, refused)) == 1);
    EXPECT(fifo_write(4096 - 15) == MB_RANGE);
    EXPECT(rig_take(rig, 2, 0, FIFO, &record, data, sizeof(data)) == 4096 - 16 &&
           record.node == 1 && record.task == client);
    EXPECT(fifo_write(0) == MB_OK);
    EXPECT(rig_take(rig, 2, 0, FIFO, &record, data, sizeof(data)) == 4096 - 16);
    EXPECT(rig_take(rig, 2, 0, FIFO, &record, data, sizeof(data)) == 0);
    EXPECT(rig_take(rig, 2, 0, FIFO, &record, data, sizeof(data)) == -1);
    /* Around the end, many times: never across it. */
    for (unsigned i = 0; i < 100; i++) {
        sizes[put++] = i * 37 % 1900;
        EXPECT(fifo_write(sizes[put - 1]) == MB_OK);
        if (i % 3 == 2)
            while ((length = rig_take(rig, 2, 0, FIFO, &record, data, sizeof(data))) >= 0)
                EXPECT(taken < put && (unsigned)length == sizes[taken++]);
    }
    EXPECT(taken == 99);
    EXPECT(mbcf_fifo(core(2), server, FIFO, MB_FIFO_HEADER + 8192) == -SSS_EEXIST);
    EXPECT(mbcf_fifo(core(2), server, FIFO + 32, MB_FIFO_HEADER + 8192) == -SSS_EINVAL);
    EXPECT(mbcf_fifo(core(2), server, DATA, MB_FIFO_HEADER + 300) == -SSS_EINVAL);
    EXPECT(mbcf_fifo(core(2), server, DATA, MB_FIFO_HEADER + 128) == -SSS_EINVAL);
    EXPECT(mbcf_fifo(core(2), server, DATA, 60) == -SSS_EINVAL);
    EXPECT(mbcf_fifo(core(2), server, READONLY, MB_FIFO_HEADER + 256) == -SSS_EFAULT);
    EXPECT(mbcf_fifo_remove(core(2), server, FIFO) == 0 &&
           mbcf_fifo_remove(core(2), server, FIFO) == -SSS_ENOENT);
    EXPECT(fifo_write(8) == MB_NOFIFO);
    for (unsigned i = 0; i < MB_FIFOS; i++)
        EXPECT(mbcf_fifo(core(2), server, DATA + i * 512, MB_FIFO_HEADER + 256) == 0);
    EXPECT(mbcf_fifo(core(2), server, DATA + MB_FIFOS * 512, MB_FIFO_HEADER + 256) == -SSS_ENOMEM);
    end();
}

/* The owner's words are hints: nonsense in them cannot move the ring. */
static void test_fifo_owner_lies(void)
{
    static const uint32_t tails[] = {1, 16, 0x7ffffff0, 0xfffffff0, 8192};
    struct mb_record record;
    uint8_t data[64];
    uint32_t word_of;

    begin();
    for (unsigned i = 0; i < sizeof(tails) / sizeof(*tails); i++)
        for (unsigned at_word = 0; at_word < 4; at_word++) {
            rig_write(rig, 2, 0, FIFO + at_word * 4, &tails[i], 4);
            EXPECT(fifo_write(16) == MB_OK);
        }
    mbcf_fifo_remove(core(2), server, FIFO);
    EXPECT(mbcf_fifo(core(2), server, FIFO, MB_FIFO_HEADER + 8192) == 0);
    EXPECT(fifo_write(16) == MB_OK);
    word_of = 0x80000010; /* beyond the head: not believed */
    rig_write(rig, 2, 0, FIFO + offsetof(struct mb_fifo, tail), &word_of, 4);
    for (unsigned i = 0; i < 255; i++)
        EXPECT(fifo_write(16) == MB_OK);
    EXPECT(fifo_write(16) == MB_FULL);
    word_of = 0;
    rig_write(rig, 2, 0, FIFO + offsetof(struct mb_fifo, tail), &word_of, 4);
    EXPECT(rig_take(rig, 2, 0, FIFO, &record, data, sizeof(data)) == 16);
    /* Its page goes away. */
    rig_map(rig, 2, 0, 16, SSS_READ);
    EXPECT(fifo_write(16) == MB_READONLY);
    rig_map(rig, 2, 0, 16, 0);
    EXPECT(fifo_write(16) == MB_FAULT);
    end();
}

/* Segments in parts: a reserved record holds up the reader, and becomes void when its writer is no
 * more. */
static void half_a_segment(struct mb_operation *operation, uint64_t *progress)
{
    *operation = (struct mb_operation){.op = MB_OP_FIFO,
                                       .ltn = ltn,
                                       .remote = FIFO,
                                       .data = at(RIG_BASE + 46 * 4096ull - 3000),
                                       .length = 4000,
                                       .ack = at(ACK)};
    *progress = 0;
    rig->nodes[1].frame_limit = 2; /* so that it is taken in two steps */
    EXPECT(mbcf_operate(core(1), client, operation, progress, rig->now_ns) == -SSS_EAGAIN &&
           *progress != 0);
    rig_run(rig, 20000000);
    rig->nodes[1].frame_limit = RIG_FRAMES;
}

static uint8_t record_state(uint64_t position)
{
    struct mb_record record;

    rig_read(rig, 2, 0, FIFO + MB_FIFO_HEADER + position, &record, sizeof(record));
    return record.state;
}

static void test_segment_void(void)
{
    struct mb_operation operation;
    uint64_t progress;

    /* The writer's own memory ends in the middle. */
    begin();
    EXPECT(write_at(DATA, 4) == MB_OK);
    half_a_segment(&operation, &progress);
    EXPECT(record_state(0) == MB_RESERVED);
    rig_map(rig, 1, 0, 46, 0);
    EXPECT(mbcf_operate(core(1), client, &operation, &progress, rig->now_ns) == -SSS_EFAULT);
    rig_run(rig, SECOND);
    EXPECT(record_state(0) == MB_VOID);
    /* no MAYBE */
    EXPECT(rig_word(rig, 1, 0, ACK) == MB_ACK_DONE && rig_word(rig, 1, 0, ACK + 4) == MB_FAULT);
    end();
    /* The writer's task ends. */
    begin();
    EXPECT(write_at(DATA, 4) == MB_OK);
    half_a_segment(&operation, &progress);
    mbcf_task_close(core(1), client, rig->now_ns);
    rig_run(rig, SECOND);
    EXPECT(record_state(0) == MB_VOID);
    end();
    /* The writer closes the connection. */
    begin();
    EXPECT(write_at(DATA, 4) == MB_OK);
    half_a_segment(&operation, &progress);
    EXPECT(mbcf_close(core(1), client, ltn, rig->now_ns) == 0);
    EXPECT(mbcf_operate(core(1), client, &operation, &progress, rig->now_ns) ==
           -(MB_CLOSED + MB_STATUS_BASE));
    rig_run(rig, SECOND);
    EXPECT(record_state(0) == MB_VOID && rig_word(rig, 1, 0, ACK + 4) == MB_CLOSED);
    end();
    /* The writer's node restarts. */
    begin();
    EXPECT(write_at(DATA, 4) == MB_OK);
    half_a_segment(&operation, &progress);
    rig_restart(rig, 1, 0xabc);
    client = rig_task(rig, 1, 0, 48);
    ltn = mbcf_connect(core(1), client, 2, server, KEY);
    EXPECT(write_at(DATA, 4) == MB_OK);
    EXPECT(record_state(0) == MB_VOID);
    end();
}

/* ---- TASKQUE and connections ---- */

static int taskque_write(struct mb_operation *operation)
{
    *operation = (struct mb_operation){.op = MB_OP_TASKQUE,
                                       .node = 2,
                                       .task = server,
                                       .data = at(DATA),
                                       .length = 10,
                                       .ack = at(ACK),
                                       .argument = {0xc0ffee, MB_WRITE_ALLOWED}};
    EXPECT(rig_operate(rig, 1, client, operation) == 0);
    return rig_ack(rig, 1, 0, ACK, 60 * SECOND);
}

static int take_taskque(struct mb_record *record, uint8_t *data)
{
    return rig_take(rig, 2, 0, TASKQUE, record, data, 64);
}

static void test_taskque(void)
{
    struct mb_operation operation;
    struct mb_record record;
    struct mb_taskque_head head;
    uint8_t data[64];
    int first;

    begin();
    rig_write(rig, 1, 0, DATA, "0123456789", 10);
    EXPECT(taskque_write(&operation) == MB_OK);
    EXPECT(take_taskque(&record, data) == (int)sizeof(head) + 10 && record.ltn != 0);
    memcpy(&head, data, sizeof(head));
    EXPECT(head.key == 0xc0ffee && head.permission == MB_WRITE_ALLOWED &&
           memcmp(data + sizeof(head), "0123456789", 10) == 0);
    EXPECT(info_of(2, server, record.ltn).taskque == 1 &&
           info_of(2, server, record.ltn).task == client);
    EXPECT(info_of(1, client, operation.ltn).taskque == 0);
    /* The server uses the key it was given. */
    mbcf_key(core(1), client, 0, 0xc0ffee, MB_WRITE_ALLOWED);
    {
        struct mb_operation reply = {.op = MB_OP_WRITE,
                                     .ltn = record.ltn,
                                     .remote = DATA + 100,
                                     .data = at(DATA),
                                     .length = 4,
                                     .ack = at(ACK)};

        EXPECT(rig_operate(rig, 2, server, &reply) == 0 &&
               rig_ack(rig, 2, 0, ACK, SECOND) == MB_OK);
        /* The client discards: the server's end goes by itself. */
        EXPECT(mbcf_close(core(1), client, operation.ltn, rig->now_ns) == 0);
        rig_run(rig, SECOND);
        EXPECT(rig_operate(rig, 2, server, &reply) == -(MB_CLOSED + MB_STATUS_BASE));
    }
    /* The server discards: the client's end is broken. */
    EXPECT(taskque_write(&operation) == MB_OK && take_taskque(&record, data) > 0);
    EXPECT(mbcf_close(core(2), server, record.ltn, rig->now_ns) == 0);
    rig_run(rig, SECOND);
    EXPECT(info_of(1, client, operation.ltn).error == MB_CLOSED);
    EXPECT(info_of(1, client, operation.ltn).state == MB_CONNECTION_BROKEN);
    /* Two connections of one client: only the right one ends. */
    EXPECT(taskque_write(&operation) == MB_OK && take_taskque(&record, data) > 0);
    first = operation.ltn;
    EXPECT(taskque_write(&operation) == MB_OK && take_taskque(&record, data) > 0);
    EXPECT(mbcf_close(core(2), server, record.ltn, rig->now_ns) == 0);
    rig_run(rig, SECOND);
    EXPECT(info_of(1, client, first).state == MB_CONNECTION_OPEN);
    EXPECT(info_of(1, client, operation.ltn).state == MB_CONNECTION_BROKEN);
    end();
}

static void test_taskque_refusals(void)
{
    struct mb_operation operation;
    unsigned made = 0;
    int status;

    begin();
    while ((status = taskque_write(&operation)) == MB_OK)
        made++;
    EXPECT(status == MB_FULL && made == 4096 / 48);
    EXPECT(info_of(1, client, operation.ltn).state == MB_CONNECTION_BROKEN);
    mbcf_taskque(core(2), server, 0, 0);
    EXPECT(taskque_write(&operation) == MB_NOQUE);
    EXPECT(info_of(1, client, operation.ltn).state == MB_CONNECTION_BROKEN);
    /* Without an ack the connection tells. */
    operation.ack = NULL;
    EXPECT(rig_operate(rig, 1, client, &operation) == 0);
    rig_run(rig, SECOND);
    EXPECT(info_of(1, client, operation.ltn).error == MB_NOQUE);
    mbcf_taskque(core(2), server, TASKQUE, MB_FIFO_HEADER + 4096);
    mbcf_taskque(core(2), server, 0, 0);
    while (mbcf_connect(core(2), server, 1, client, 1) > 0)
        ;
    mbcf_taskque(core(2), server, TASKQUE, MB_FIFO_HEADER + 4096);
    EXPECT(taskque_write(&operation) == MB_BUSY);
    operation.node = 9;
    EXPECT(rig_operate(rig, 1, client, &operation) == -(MB_NO_NODE + MB_STATUS_BASE));
    operation.node = 2;
    operation.length = MBW_TASKQUE_MOST + 1;
    EXPECT(rig_operate(rig, 1, client, &operation) == -SSS_EINVAL);
    end();
}

/* Who serves may discard only what TASKQUE writes have made. */
static void test_discarding(void)
{
    int own;

    begin();
    own = mbcf_connect(core(2), server, 1, client, 1);
    EXPECT(mbcf_close(core(2), server, own, rig->now_ns) == -SSS_EPERM);
    EXPECT(mbcf_close(core(1), client, ltn, rig->now_ns) == 0);
    EXPECT(mbcf_close(core(1), client, 0, rig->now_ns) == -(MB_NO_LTN + MB_STATUS_BASE));
    EXPECT(mbcf_close(core(1), client, 70000, rig->now_ns) == -(MB_NO_LTN + MB_STATUS_BASE));
    EXPECT(mbcf_connect(core(1), client, 9, server, 1) == -(MB_NO_NODE + MB_STATUS_BASE));
    mbcf_taskque(core(2), server, 0, 0);
    EXPECT(mbcf_close(core(2), server, own, rig->now_ns) == 0);
    end();
}

/* ---- signals ---- */

static void test_signals(void)
{
    struct mb_record record;
    struct mb_signal_head head;
    uint8_t data[64];
    unsigned sent = 1;

    begin();
    rig_write(rig, 1, 0, DATA, "payload", 7);
    EXPECT(status_of((struct mb_operation){.op = MB_OP_SIGNAL,
                                           .remote = HANDLER,
                                           .length = 7,
                                           .argument = {1, 2, 3, UINT64_MAX},
                                           .arguments = 4}) == MB_OK);
    EXPECT(rig->nodes[2].spaces[0].signals == 1 && rig->nodes[2].spaces[0].signalled[0] == HANDLER);
    EXPECT(rig_take(rig, 2, 0, QUEUE, &record, data, sizeof(data)) == (int)sizeof(head) + 7);
    memcpy(&head, data, sizeof(head));
    EXPECT(head.handler == HANDLER && head.argument[0] == 1 && head.argument[3] == UINT64_MAX);
    EXPECT(memcmp(data + sizeof(head), "payload", 7) == 0);
    for (uint32_t arguments = 0; arguments <= 4; arguments++)
        for (uint64_t length = 0; length <= 7; length += 7) {
            EXPECT(status_of((struct mb_operation){.op = MB_OP_SIGNAL,
                                                   .remote = HANDLER,
                                                   .length = length,
                                                   .argument = {1, 2, 3, 4},
                                                   .arguments = arguments}) == MB_OK);
            EXPECT(rig_take(rig, 2, 0, QUEUE, &record, data, sizeof(data)) ==
                   (int)(sizeof(head) + length));
            memcpy(&head, data, sizeof(head));
            for (unsigned i = 0; i < 4; i++)
                EXPECT(head.handler == HANDLER && head.argument[i] == (i < arguments ? i + 1 : 0));
            EXPECT(memcmp(data + sizeof(head), "payload", length) == 0);
            sent++;
        }
    EXPECT(status_of((struct mb_operation){.op = MB_OP_SIGNAL, .remote = HANDLER + 8}) ==
           MB_NOHANDLER);
    while (status_of((struct mb_operation){
               .op = MB_OP_SIGNAL, .remote = HANDLER, .length = 1376}) == MB_OK)
        sent++;
    EXPECT(rig->nodes[2].spaces[0].signals == sent); /* none for the refused one */
    EXPECT(status_of((struct mb_operation){
               .op = MB_OP_SIGNAL, .remote = HANDLER, .length = 1376}) == MB_FULL);
    EXPECT(status_of((struct mb_operation){
               .op = MB_OP_SIGNAL, .remote = HANDLER, .length = 1377, .arguments = 4}) ==
           -SSS_EINVAL);
    EXPECT(status_of((struct mb_operation){
               .op = MB_OP_SIGNAL, .remote = HANDLER, .length = 1408}) == MB_FULL);
    EXPECT(status_of((struct mb_operation){
               .op = MB_OP_SIGNAL, .remote = HANDLER, .length = 1409}) == -SSS_EINVAL);
    EXPECT(status_of((struct mb_operation){
               .op = MB_OP_SIGNAL, .remote = HANDLER, .arguments = 5}) == -SSS_EINVAL);
    mbcf_signal(core(2), server, NULL, 0, 0, 0);
    EXPECT(status_of((struct mb_operation){.op = MB_OP_SIGNAL, .remote = HANDLER}) == MB_NOHANDLER);
    end();
}

/* ---- what is wrong at home ---- */

static void test_own_mistakes(void)
{
    struct mb_operation operation;

    begin();
    operation = (struct mb_operation){.op = MB_OP_WRITE,
                                      .ltn = ltn,
                                      .remote = DATA,
                                      .data = at(UNMAPPED),
                                      .length = 8,
                                      .ack = at(ACK)};
    EXPECT(rig_operate(rig, 1, client, &operation) == -SSS_EFAULT);
    EXPECT(rig_word(rig, 1, 0, ACK) == MB_ACK_IDLE);
    EXPECT(info_of(1, client, ltn).unfinished == 0);
    operation.data = at(DATA);
    operation.ack = at(UNMAPPED);
    EXPECT(rig_operate(rig, 1, client, &operation) == -SSS_EFAULT);
    operation.ack = at(ACK + 4);
    EXPECT(rig_operate(rig, 1, client, &operation) == -SSS_EINVAL);
    operation.ack = at(ACK);
    operation.length = MB_SEGMENT + 1;
    EXPECT(rig_operate(rig, 1, client, &operation) == -SSS_EINVAL);
    operation = (struct mb_operation){
        .op = MB_OP_READ, .ltn = ltn, .remote = DATA, .data = at(DATA), .length = 8};
    EXPECT(rig_operate(rig, 1, client, &operation) == -SSS_EINVAL); /* a READ wants an ack */
    operation.ack = at(ACK);
    operation.data = at(RIG_BASE + 48 * 4096ull - 4);
    EXPECT(rig_operate(rig, 1, client, &operation) == -SSS_EFAULT);
    operation.op = 0x55;
    EXPECT(rig_operate(rig, 1, client, &operation) == -SSS_EINVAL);
    EXPECT(status_of((struct mb_operation){.op = MB_OP_WRITE, .ltn = 5000, .remote = DATA}) ==
           -(MB_NO_LTN + MB_STATUS_BASE));
    /* The ack may lie across pages. */
    rig_write(rig, 1, 0, DATA, "abcd", 4);
    operation = (struct mb_operation){.op = MB_OP_FETCH_ADD,
                                      .flags = MB_WIDE,
                                      .ltn = ltn,
                                      .remote = DATA,
                                      .ack = at(RIG_BASE + 4096 * 3 - 8)};
    EXPECT(rig_operate(rig, 1, client, &operation) == 0 &&
           rig_ack(rig, 1, 0, RIG_BASE + 4096 * 3 - 8, SECOND) == MB_OK);
    end();
}

int main(void)
{
    static const struct test tests[] = {
        {"keys", test_keys},
        {"expected", test_expected},
        {"pages", test_pages},
        {"atomics", test_atomics},
        {"tasks", test_tasks},
        {"task_gone_is_told", test_task_gone_is_told},
        {"fifo", test_fifo},
        {"fifo_owner_lies", test_fifo_owner_lies},
        {"segment_void", test_segment_void},
        {"taskque", test_taskque},
        {"taskque_refusals", test_taskque_refusals},
        {"discarding", test_discarding},
        {"signals", test_signals},
        {"own_mistakes", test_own_mistakes},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
