/* SPDX-License-Identifier: Apache-2.0 */

/* One test for each way in which operations, nodes and connections end other than well. */
#include "expect.h"
#include "mbcf_bed.h"

/* Errors of operations without an ack: the connection has the first one, the task is notified. */
static void test_silent_errors(void)
{
    struct mb_operation operation = {
        .op = MB_OP_WRITE, .remote = READONLY, .data = at(DATA), .length = 8};
    struct mb_connection info;

    begin();
    operation.ltn = ltn;
    EXPECT(rig_operate(rig, 1, client, &operation) == 0);
    operation.remote = UNMAPPED;
    EXPECT(rig_operate(rig, 1, client, &operation) == 0);
    operation.remote = DATA;
    EXPECT(rig_operate(rig, 1, client, &operation) == 0);
    EXPECT(info_of(1, client, ltn).unfinished == 3);
    rig_run(rig, SECOND);
    EXPECT(rig->nodes[1].spaces[0].failed == 2);
    info = info_of(1, client, ltn);
    EXPECT(info.error == MB_READONLY && info.unfinished == 0 && info.state == MB_CONNECTION_OPEN);
    end();
}

/* ---- nodes ---- */

static void test_node_dead(void)
{
    struct mb_connection info;

    begin();
    /* Never reached: provably not executed. */
    rig->nodes[2].deaf = true;
    EXPECT(write_at(DATA, 8) == MB_NODE_DEAD);
    EXPECT(write_at(DATA, 8) == -(MB_NODE_DEAD + MB_STATUS_BASE));
    info = info_of(1, client, ltn);
    EXPECT(info.state == MB_CONNECTION_BROKEN && info.unfinished == 0);
    rig->nodes[2].deaf = false;
    ltn = mbcf_connect(core(1), client, 2, server, KEY);
    EXPECT(write_at(DATA, 8) == MB_OK);
    /* Reached before: unknown. */
    rig->nodes[2].deaf = true;
    EXPECT(write_at(DATA, 8) == (MB_NODE_DEAD | MB_MAYBE));
    /* A FIFO segment of which the last part never went out was not executed. */
    rig->nodes[2].deaf = false;
    ltn = mbcf_connect(core(1), client, 2, server, KEY);
    EXPECT(write_at(DATA, 8) == MB_OK);
    rig->nodes[2].deaf = true;
    {
        struct mb_operation operation = {.op = MB_OP_FIFO,
                                         .ltn = ltn,
                                         .remote = FIFO,
                                         .data = at(DATA),
                                         .length = 100000,
                                         .ack = at(ACK)};
        unsigned before = rig->nodes[1].window_opens;

        EXPECT(rig_operate(rig, 1, client, &operation) == -(MB_NODE_DEAD + MB_STATUS_BASE));
        EXPECT(rig->nodes[1].window_opens > before); /* who sleeps until it can go on is woken */
        EXPECT(rig_word(rig, 1, 0, ACK) == MB_ACK_DONE &&
               rig_word(rig, 1, 0, ACK + 4) == MB_NODE_DEAD);
    }
    /* The same incarnations meet again: what was given up is never executed later. */
    rig->nodes[2].deaf = false;
    ltn = mbcf_connect(core(1), client, 2, server, KEY);
    EXPECT(status_of((struct mb_operation){
               .op = MB_OP_FETCH_ADD, .remote = DATA + 64, .argument = {1}}) == MB_OK);
    EXPECT(rig_word(rig, 2, 0, DATA + 64) == 1);
    end();
}

static void test_node_restart(void)
{
    begin();
    EXPECT(write_at(DATA, 8) == MB_OK);
    rig_restart(rig, 2, 0x9999);
    EXPECT(write_at(DATA, 8) == (MB_NODE_RESTART | MB_MAYBE));
    EXPECT(info_of(1, client, ltn).state == MB_CONNECTION_BROKEN);
    server = rig_task(rig, 2, 0, 60);
    mbcf_key(core(2), server, 0, KEY, 3);
    ltn = mbcf_connect(core(1), client, 2, server, KEY);
    EXPECT(write_at(DATA, 8) == MB_OK);
    end();
}

/* The peer has acknowledged the request and dies before its result comes: probing finds out. */
static bool lose_results(struct rig *of, uint16_t node, const uint8_t *frame, size_t length)
{
    (void)of;
    (void)length;
    return node != 2 || frame[MBW_ETHERNET] != MBW_RESULT;
}

static void test_result_never_comes(void)
{
    struct mb_operation operation = {
        .op = MB_OP_FETCH_ADD, .remote = DATA, .argument = {1}, .ack = at(ACK)};

    begin();
    EXPECT(write_at(DATA, 8) == MB_OK);
    rig->tap = lose_results;
    operation.ltn = ltn;
    EXPECT(rig_operate(rig, 1, client, &operation) == 0);
    rig_run(rig, 13000000); /* its retransmission is acknowledged */
    EXPECT(rig_word(rig, 1, 0, ACK) == MB_ACK_PENDING && rig_word(rig, 2, 0, DATA) == 1);
    rig->tap = NULL;
    rig_restart(rig, 2, 0x777);
    EXPECT(rig_ack(rig, 1, 0, ACK, 10 * SECOND) == (MB_NODE_RESTART | MB_MAYBE));
    end();
}

/* ---- frames that no node should have sent ---- */

static uint8_t recorded[64][MBW_FRAME_MOST];
static size_t recorded_length[64];
static unsigned recorded_count;

static bool record_frames(struct rig *of, uint16_t node, const uint8_t *frame, size_t length)
{
    (void)of;
    if (node == 1 && recorded_count < 64) {
        memcpy(recorded[recorded_count], frame, length);
        recorded_length[recorded_count++] = length;
    }
    return true;
}

static void replay_all(void)
{
    for (unsigned i = 0; i < recorded_count; i++)
        rig_inject(rig, 2, recorded[i], recorded_length[i]);
}

static void test_replay(void)
{
    begin();
    recorded_count = 0;
    rig->tap = record_frames;
    for (unsigned i = 0; i < 10; i++)
        EXPECT(status_of((struct mb_operation){
                   .op = MB_OP_FETCH_ADD, .remote = DATA, .argument = {1}}) == MB_OK);
    rig_run(rig, SECOND);
    rig->tap = NULL;
    replay_all();
    EXPECT(rig_word(rig, 2, 0, DATA) == 10);
    EXPECT(status_of((struct mb_operation){
               .op = MB_OP_FETCH_ADD, .remote = DATA, .argument = {1}}) == MB_OK);
    EXPECT(rig_word(rig, 2, 0, DATA) == 11);
    /* After a restart of the receiver, the old frames name another incarnation of it. */
    rig_restart(rig, 2, 0x5555);
    server = rig_task(rig, 2, 0, 60);
    mbcf_key(core(2), server, 0, KEY, 3);
    rig_run(rig, SECOND);
    replay_all();
    rig_run(rig, SECOND);
    EXPECT(rig_word(rig, 2, 0, DATA) == 11);
    /* After one of the sender, they come from a past one, and change nothing. */
    ltn = mbcf_connect(core(1), client, 2, server, KEY);
    EXPECT(write_at(DATA + 64, 4) == MB_OK);
    rig_restart(rig, 1, 0x6666);
    client = rig_task(rig, 1, 0, 48);
    ltn = mbcf_connect(core(1), client, 2, server, KEY);
    EXPECT(status_of((struct mb_operation){
               .op = MB_OP_FETCH_ADD, .remote = DATA, .argument = {1}}) == MB_OK);
    replay_all();
    EXPECT(status_of((struct mb_operation){
               .op = MB_OP_FETCH_ADD, .remote = DATA, .argument = {1}}) == MB_OK);
    EXPECT(rig_word(rig, 2, 0, DATA) == 13);
    end();
}

static void inject_changed(unsigned offset, uint8_t value)
{
    uint8_t frame[MBW_FRAME_MOST];

    /* The last data frame, as a new one: in sequence, if it were right. */
    memcpy(frame, recorded[recorded_count - 1], recorded_length[recorded_count - 1]);
    mbw_set_seq(frame + MBW_ETHERNET, mbw_seq(frame + MBW_ETHERNET) + 1);
    frame[offset] = value;
    rig_inject(rig, 2, frame, recorded_length[recorded_count - 1]);
}

enum { AT = MBW_ETHERNET };

static void test_forged(void)
{
    const struct mbcf_counters *counters;
    uint8_t frame[MBW_FRAME_MOST];
    uint64_t executed;

    begin();
    recorded_count = 0;
    rig->tap = record_frames;
    EXPECT(status_of((struct mb_operation){
               .op = MB_OP_FETCH_ADD, .remote = DATA, .argument = {1}}) == MB_OK);
    rig->tap = NULL;
    counters = mbcf_counters(core(2));
    executed = counters->operations_executed;
    inject_changed(11, 2); /* the node's own address */
    inject_changed(11, 9); /* that of no node */
    inject_changed(6, 4);
    inject_changed(5, 3); /* to another node */
    inject_changed(0, 0xff);
    inject_changed(13, 0xb5); /* EtherType */
    EXPECT(counters->foreign == 6);
    inject_changed(AT + MBW_AT(version_status), 1 << MBW_VERSION_SHIFT);
    inject_changed(AT + MBW_AT(version_status), MBW_VERSION << MBW_VERSION_SHIFT | 1); /* status */
    inject_changed(AT + MBW_AT(op), 6);
    inject_changed(AT + MBW_AT(flags), 0x80);
    inject_changed(AT + MBW_AT(flags), MBW_PART | MBW_DEFINES);
    inject_changed(AT + MBW_AT(flags), 0); /* shorter than a definition makes it */
    inject_changed(AT + MBW_AT(tag), 0xff);
    inject_changed(AT + MBW_AT(length) + 1, 9);
    inject_changed(AT + MBW_AT(length) + 1, 7);
    inject_changed(AT + MBW_AT(length), 0xff);
    EXPECT(counters->malformed == 10);
    inject_changed(AT + MBW_AT(seq) + 3, 0xff);
    EXPECT(counters->gaps == 1);
    for (size_t length = 0; length < recorded_length[recorded_count - 1]; length++)
        rig_inject(rig, 2, recorded[recorded_count - 1], length);
    EXPECT(counters->operations_executed == executed);
    inject_changed(AT + MBW_AT(epoch), 0x55);
    inject_changed(AT + MBW_AT(epoch) + 3, 0x55);
    inject_changed(AT + MBW_AT(target_epoch), 0x55); /* also where only the upper half differs */
    inject_changed(AT + MBW_AT(target_epoch) + 3, 0x55);
    EXPECT(counters->stale_epoch == 4 && counters->operations_executed == executed);
    /* A forged SYN does not end the channel that there is. */
    memcpy(frame, recorded[0], recorded_length[0]);
    EXPECT(mbw_op(frame + AT) == MBW_SYN);
    frame[AT + MBW_AT(epoch)] = 0x66;
    rig_inject(rig, 2, frame, recorded_length[0]);
    rig_run(rig, 10000000);
    EXPECT(status_of((struct mb_operation){
               .op = MB_OP_FETCH_ADD, .remote = DATA, .argument = {1}}) == MB_OK);
    EXPECT(rig_word(rig, 2, 0, DATA) == 2);
    /* Nor does one from the peer that has given up more than it can ever have sent. */
    memcpy(frame, recorded[0], recorded_length[0]);
    mbw_set_seq(frame + AT, 0x7fffffff);
    rig_inject(rig, 2, frame, recorded_length[0]);
    EXPECT(status_of((struct mb_operation){
               .op = MB_OP_FETCH_ADD, .remote = DATA, .argument = {1}}) == MB_OK);
    EXPECT(rig_word(rig, 2, 0, DATA) == 3);
    /* An operation of a later version, and a tag that is not defined: refused in their place,
     * and the sequence goes on. */
    memcpy(frame, recorded[recorded_count - 1], recorded_length[recorded_count - 1]);
    mbw_set_op(frame + AT, 0x70);
    mbw_set_tag(frame + AT, 0);
    mbw_set_seq(frame + AT, 4);
    mbw_set_flags(frame + AT, 0);
    mbw_set_length(frame + AT, mbw_length(frame + AT) + MBW_DEFINITION);
    mbw_set_target_task(frame + AT, server);
    rig_inject(rig, 2, frame, recorded_length[recorded_count - 1]);
    EXPECT(counters->refused[MB_BADOP] == 1);
    memcpy(frame, recorded[recorded_count - 1], recorded_length[recorded_count - 1]);
    mbw_set_tag(frame + AT, 5);
    mbw_set_seq(frame + AT, 5);
    mbw_set_flags(frame + AT, 0);
    rig_inject(rig, 2, frame, MBW_FRAME_LEAST);
    EXPECT(counters->refused[MB_NOTASK] == 1);
    end();
}

/* ---- resources ---- */

static void test_adapter_and_buffers(void)
{
    begin();
    EXPECT(write_at(DATA, 8) == MB_OK);
    rig->nodes[1].refuses = true;
    {
        struct mb_operation operation = {.op = MB_OP_WRITE,
                                         .ltn = ltn,
                                         .remote = DATA,
                                         .data = at(DATA),
                                         .length = 8,
                                         .ack = at(ACK)};

        EXPECT(rig_operate(rig, 1, client, &operation) == 0);
        rig_run(rig, 5000000);
        rig->nodes[1].refuses = false;
        EXPECT(rig_ack(rig, 1, 0, ACK, SECOND) == MB_OK);
    }
    /* No buffer for the result: not executed, and nothing is lost. */
    rig->nodes[2].frame_limit = 0;
    {
        struct mb_operation operation = {.op = MB_OP_FETCH_ADD,
                                         .ltn = ltn,
                                         .remote = DATA + 64,
                                         .argument = {1},
                                         .ack = at(ACK)};

        EXPECT(rig_operate(rig, 1, client, &operation) == 0);
        rig_run(rig, 50000000);
        EXPECT(rig_word(rig, 2, 0, DATA + 64) == 0);
        rig->nodes[2].frame_limit = RIG_FRAMES;
        EXPECT(rig_ack(rig, 1, 0, ACK, 10 * SECOND) == MB_OK &&
               rig_word(rig, 2, 0, DATA + 64) == 1);
    }
    /* No buffer here: EAGAIN, and a call of window_open later. */
    rig->nodes[1].frame_limit = 0;
    {
        struct mb_operation operation = {
            .op = MB_OP_WRITE, .ltn = ltn, .remote = DATA, .data = at(DATA), .length = 8};
        uint64_t progress = 0;
        unsigned before = rig->nodes[1].window_opens;

        EXPECT(mbcf_operate(core(1), client, &operation, &progress, rig->now_ns) == -SSS_EAGAIN &&
               progress == 0);
        rig->nodes[1].frame_limit = RIG_FRAMES;
        rig_run(rig, 10000000);
        EXPECT(rig->nodes[1].window_opens > before);
        EXPECT(mbcf_operate(core(1), client, &operation, &progress, rig->now_ns) == 0);
    }
    rig_run(rig, SECOND);
    end();
}

/* Operations on the own node never see the wire. */
static void test_own_node(void)
{
    uint16_t other;
    uint64_t sent;

    begin();
    other = rig_task(rig, 1, 1, 8);
    mbcf_key(core(1), other, 0, KEY, 3);
    ltn = mbcf_connect(core(1), client, 1, other, KEY);
    EXPECT(write_at(DATA, 8) == MB_OK);
    sent = rig->sent;
    rig_write(rig, 1, 0, DATA, "own node", 8);
    EXPECT(write_at(DATA, 8) == MB_OK);
    EXPECT(rig_word(rig, 1, 1, DATA) == rig_word(rig, 1, 0, DATA) && rig->sent == sent);
    EXPECT(write_at(UNMAPPED, 8) == MB_FAULT);
    mbcf_task_close(core(1), other, rig->now_ns);
    EXPECT(info_of(1, client, ltn).state == MB_CONNECTION_BROKEN);
    rig_run(rig, SECOND);
    EXPECT(rig->sent == 0);
    end();
}

int main(void)
{
    static const struct test tests[] = {
        {"silent_errors", test_silent_errors},
        {"node_dead", test_node_dead},
        {"node_restart", test_node_restart},
        {"result_never_comes", test_result_never_comes},
        {"replay", test_replay},
        {"forged", test_forged},
        {"adapter_and_buffers", test_adapter_and_buffers},
        {"own_node", test_own_node},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
