/* SPDX-License-Identifier: Apache-2.0 */

/* Each kind of frame, byte for byte, written by hand from mbcf/wire.def. */
#include "expect.h"
#include "mbcf_rig.h"

enum { FRAMES = 64 };
#define ACK     RIG_BASE
#define DATA    (RIG_BASE + 4096)
#define TASKQUE (RIG_BASE + 8192)

static struct {
    uint8_t bytes[MBW_FRAME_MOST];
    size_t length;
} sent[FRAMES];
static unsigned count;

static bool keep(struct rig *rig, uint16_t node, const uint8_t *frame, size_t length)
{
    (void)rig;
    (void)node;
    if (count < FRAMES) {
        memcpy(sent[count].bytes, frame, length);
        sent[count++].length = length;
    }
    return true;
}

/* "01 02 .." against the frame behind its Ethernet header. */
static void expect_frame(const char *what, unsigned number, const char *hexadecimal)
{
    uint8_t wanted[MBW_FRAME_MOST];
    size_t length = 0;
    unsigned byte;
    int used;

    for (const char *at = hexadecimal; sscanf(at, " %2x%n", &byte, &used) == 1; at += used)
        wanted[length++] = (uint8_t)byte;
    if (number < count && sent[number].length == MBW_ETHERNET + length &&
        memcmp(sent[number].bytes + MBW_ETHERNET, wanted, length) == 0)
        return;
    printf("%s: wanted %s\n     got   ", what, hexadecimal);
    for (size_t i = MBW_ETHERNET; number < count && i < sent[number].length; i++)
        printf("%02x ", sent[number].bytes[i]);
    printf("\n");
    EXPECT(!"the frame is as written");
}

static struct rig *rig;
static uint16_t client;
static int ltn;

/* The number of the first frame that it sends. */
static unsigned operate(struct mb_operation operation)
{
    unsigned first = count;

    operation.ltn = ltn;
    if (operation.ack == NULL)
        operation.ack = (void *)(uintptr_t)ACK;
    operation.data = (void *)(uintptr_t)DATA;
    EXPECT(rig_operate(rig, 1, client, &operation) == 0);
    rig_ack(rig, 1, 0, ACK, 1000000000);
    return first;
}

static void test_frames(void)
{
    static const uint8_t ethernet[14] = {2,    0x53, 0x44, 0, 0, 2,    2,
                                         0x53, 0x44, 0,    0, 1, 0x88, 0xb6};
    uint16_t server;
    unsigned at;

    rig = rig_new(2, 1, NULL); /* epochs 1007 and 2007 */
    rig->tap = keep;
    client = rig_task(rig, 1, 0, 4);
    server = rig_task(rig, 2, 0, 4);
    EXPECT(client == 0x110 && server == 0x110);
    mbcf_key(rig->nodes[2].mbcf, server, 0, 0x1122334455667788, 3);
    mbcf_taskque(rig->nodes[2].mbcf, server, TASKQUE, MB_FIFO_HEADER + 512);
    rig_write(rig, 1, 0, DATA, "\xaa\xbb\xcc\xdd", 4);
    ltn = mbcf_connect(rig->nodes[1].mbcf, client, 2, server, 0x1122334455667788);

    at = operate((struct mb_operation){.op = MB_OP_WRITE, .remote = 0x101000, .length = 4});
    EXPECT(memcmp(sent[at].bytes, ethernet, sizeof(ethernet)) == 0);
    expect_frame("SYN", at,
                 "01 00 40 00 00001007 00000000 00000000 00000000 0008 0000 00000000 "
                 "00000001 00000000 00000000 00000000 0000");
    expect_frame("SYNACK", at + 1,
                 "02 00 40 00 00002007 00001007 00000000 00000000 0008 0000 00000000 "
                 "00000001 00000001 00000000 00000000 0000");
    expect_frame("OPENED", at + 2,
                 "05 00 40 00 00001007 00002007 00000000 00000000 0008 0000 00000000 "
                 "00000000 00000001 00000000 00000000 0000");
    expect_frame("WRITE that defines its tag", at + 3,
                 "11 42 40 00 00001007 00002007 00000001 00000000 0004 0401 00101000 "
                 "0110 0110 00000000 1122334455667788 aabbccdd");
    expect_frame("ACK", at + 4,
                 "00 00 40 00 00002007 00001007 00000000 00000001 0000 0000 00000000 "
                 "0000000000000000 0000000000000000 0000");
    at = operate((struct mb_operation){.op = MB_OP_READ, .remote = 0x101002, .length = 2});
    EXPECT(at == 5);
    expect_frame("READ", at,
                 "12 00 40 00 00001007 00002007 00000002 00000000 0008 0402 00101002 "
                 "00000002 00000000 0000000000000000 0000");
    expect_frame("its RESULT", at + 1,
                 "20 00 40 00 00002007 00001007 00000001 00000002 0002 0402 00000002 "
                 "ccdd 00000000000000000000000000000000");
    rig_run(rig, 2000000);
    expect_frame("delayed ACK", at + 2,
                 "00 00 40 00 00001007 00002007 00000000 00000001 0000 0000 00000000 "
                 "0000000000000000 0000000000000000 0000");
    /* What was read is where later operations send from: cc dd cc dd. */
    at = operate((struct mb_operation){.op = MB_OP_FETCH_ADD, .remote = 0x101000, .argument = {1}});
    expect_frame("FETCH_ADD", at,
                 "17 00 40 00 00001007 00002007 00000003 00000001 0008 0403 00101000 "
                 "0000000000000001 0000000000000000 0000");
    expect_frame("its RESULT", at + 1,
                 "20 00 40 00 00002007 00001007 00000002 00000003 0008 0403 00000003 "
                 "00000000ddccbbaa 0000000000000000 0000");
    at = operate((struct mb_operation){
        .op = MB_OP_CAS, .flags = MB_WIDE, .remote = 0x101008, .argument = {0, 5}});
    expect_frame("CAS", at,
                 "16 10 40 00 00001007 00002007 00000004 00000002 0010 0404 00101008 "
                 "0000000000000000 0000000000000005 0000");
    at = operate((struct mb_operation){
        .op = MB_OP_SWAP, .flags = MB_WIDE, .remote = 0x101008, .argument = {6}});
    expect_frame("SWAP", at,
                 "15 10 40 00 00001007 00002007 00000005 00000003 0008 0405 00101008 "
                 "0000000000000006 0000000000000000 0000");
    at = operate((struct mb_operation){.op = MB_OP_FIFO, .remote = 0x103000, .length = 1});
    expect_frame("FIFO", at,
                 "13 02 40 00 00001007 00002007 00000006 00000004 0001 0406 00103000 "
                 "cc 0000000000000000000000000000000000");
    expect_frame("NOFIFO", at + 1,
                 "20 02 48 00 00002007 00001007 00000005 00000006 0000 0406 00000006 "
                 "000000000000000000000000000000000000");
    expect_frame("ACK of an error", at + 2,
                 "00 00 40 00 00001007 00002007 00000000 00000005 0000 0000 00000000 "
                 "0000000000000000 0000000000000000 0000");
    /* A thread waits, but not in a hurry. */
    at = operate((struct mb_operation){.op = MB_OP_SIGNAL,
                                       .flags = MB_LAZY,
                                       .remote = 0x401000,
                                       .length = 1,
                                       .argument = {1, 2, 3, 4},
                                       .arguments = 2});
    expect_frame("SIGNAL", at,
                 "14 00 42 00 00001007 00002007 00000007 00000005 0011 0407 00401000 "
                 "0000000000000001 0000000000000002 cc 00");
    at = operate((struct mb_operation){
        .op = MB_OP_TASKQUE, .node = 2, .task = server, .length = 2, .argument = {9, 2}});
    expect_frame("TASKQUE", at,
                 "10 02 40 00 00001007 00002007 00000008 00000006 0012 0408 01100110"
                 "0000000000000009 00000002 80000402 ccdd");
    at = operate((struct mb_operation){.op = MB_OP_FIFO, .remote = 0x103000, .length = 1401 + 8});
    EXPECT(sent[at].length == MBW_FRAME_MOST - MBW_DEFINITION &&
           sent[at + 1].length == MBW_FRAME_LEAST);
    EXPECT(sent[at].bytes[MBW_ETHERNET + 1] == (MBW_MORE | MBW_PART) &&
           sent[at + 1].bytes[MBW_ETHERNET + 1] == (MBW_ACK_NOW | MBW_PART));
    EXPECT(memcmp(sent[at].bytes + MBW_ETHERNET + MBW_HEADER, "\0\0\x05\x81\0\0\0\0", 8) == 0);
    EXPECT(memcmp(sent[at + 1].bytes + MBW_ETHERNET + MBW_HEADER, "\0\0\x05\x81\0\0\x05\x78", 8) ==
           0);
    /* The upper half of an address is not what the tag says: it is defined again, and once more. */
    at = operate((struct mb_operation){.op = MB_OP_WRITE, .remote = 0x700101000, .length = 4});
    expect_frame("WRITE far away", at,
                 "11 42 40 00 00001007 00002007 0000000b 00000007 0004 040a 00101000 "
                 "0110 0110 00000007 1122334455667788 ccddccdd");
    at = operate((struct mb_operation){.op = MB_OP_WRITE, .remote = 0x101000, .length = 4});
    expect_frame("WRITE nearby", at,
                 "11 42 40 00 00001007 00002007 0000000c 00000009 0004 040b 00101000 "
                 "0110 0110 00000000 1122334455667788 ccddccdd");
    /* Another connection, another tag. */
    ltn = mbcf_connect(rig->nodes[1].mbcf, client, 2, server, 5);
    at = operate((struct mb_operation){.op = MB_OP_WRITE, .remote = 0x101000});
    expect_frame("WRITE of nothing", at,
                 "11 42 40 01 00001007 00002007 0000000d 00000009 0000 040c 00101000 "
                 "0110 0110 00000000 0000000000000005 0000");
    rig_run(rig, 100000000);
    at = count;
    mbcf_task_close(rig->nodes[1].mbcf, client, rig->now_ns);
    expect_frame("CLOSE", at,
                 "18 00 40 00 00001007 00002007 0000000e 0000000a 0000 0000 01100000 "
                 "0000000000000000 0000000000000000 0000");
    EXPECT(rig_free(rig));
}

int main(void)
{
    static const struct test tests[] = {{"frames", test_frames}};

    return run_tests(tests, 1);
}
