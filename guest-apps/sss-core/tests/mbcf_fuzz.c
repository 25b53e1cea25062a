/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Frames that no peer would send, at a node with tasks of every kind. After each one: memory that
 * no key opens is as it was, heads and tails of rings are in range, no buffer is lost.
 *
 *   mbcf_fuzz [--frames N] [--seed S]
 *
 * With -DMBCF_LIBFUZZER the same checks run under libFuzzer: its input is a row of frames, each
 * with a length in front.
 */
#include "mbcf_rig.h"

enum {
    PAGES = 16,
    FIFO_PAGE = 4, /* 4096 + header, over two pages */
    TASKQUE_PAGE = 6,
    QUEUE_PAGE = 8,
    READONLY_PAGE = 12,
    CLOSED_PAGE = 13, /* mapped in the fake, but not for the task */
    SECRET = 0xa5,
    OWN_EPOCH = 0x1007, /* the rig's */
    PEER_EPOCH = 0x2007,
    RENEW = 5000, /* frames after which the node is made again */
};
#define KEY           0x1122334455667788ull
#define READ_KEY      0x99aabbccddeeff00ull
#define HANDLER       0x401000ull
#define PAGE_AT(page) (RIG_BASE + (page)*4096ull)

static struct rig *rig;
static uint16_t open_task, closed_task;
/* the last frame the peer was sent: what to learn epochs from */
static uint8_t last[MBW_FRAME_MOST];
static size_t last_length;
static uint32_t next_seq;

static void die(const char *what)
{
    fprintf(stderr, "broken: %s\n", what);
    abort();
}

static bool learn(struct rig *of, uint16_t node, const uint8_t *frame, size_t length)
{
    (void)of;
    if (node == 1) {
        memcpy(last, frame, length);
        last_length = length;
    }
    return false; /* only the fuzzer answers */
}

static size_t padded(uint8_t *frame, uint32_t behind_header)
{
    size_t end = MBW_ETHERNET + MBW_HEADER + (size_t)behind_header;

    if (end < MBW_FRAME_LEAST)
        memset(frame + end, 0, MBW_FRAME_LEAST - end);
    return mbw_frame_bytes(behind_header);
}

/* A right frame from node 2 to node 1, of which the caller changes what it likes. */
static size_t frame_from_peer(uint8_t *frame, uint8_t op, uint8_t flags, uint32_t seq,
                              uint16_t length)
{
    uint8_t *header = frame + MBW_ETHERNET;
    uint32_t ack = 0;
    struct mbcf_channel_info info;

    memset(frame, 0, MBW_ETHERNET + MBW_HEADER + MBW_DEFINITION);
    memcpy(frame, rig->nodes[1].mac, 6);
    memcpy(frame + 6, rig->nodes[2].mac, 6);
    put_be16(frame + 12, MBW_ETHERTYPE);
    if (mbcf_channel_at(rig->nodes[1].mbcf, 1, &info))
        ack = info.next_seq - 1;
    mbw_set_first_word(header, MBW_FIRST_WORD(op, flags, 0, 0));
    mbw_set_epoch(header, PEER_EPOCH);
    mbw_set_target_epoch(header, OWN_EPOCH);
    mbw_set_seq_and_ack(header, seq, ack);
    mbw_set_length_to_end(header, length, 7, (uint32_t)PAGE_AT(0));
    if (!mbw_is_keyed(op))
        mbw_set_target_task(header, open_task);
    if (flags & MBW_DEFINES) {
        mbw_set_tag_source_task(header, 0x120);
        mbw_set_tag_target_task(header, open_task);
        mbw_set_tag_key(header, KEY);
    }
    return padded(frame, (uint32_t)mbw_definition_bytes(flags) + length);
}

static void renew(uint64_t seed)
{
    uint8_t frame[MBW_FRAME_MOST];
    uint64_t handler = HANDLER;
    struct mbcf *mbcf;
    uint32_t nonce;

    if (rig != NULL && !rig_free(rig))
        die("buffers are lost");
    rig = rig_new(2, seed, NULL);
    rig->tap = learn;
    mbcf = rig->nodes[1].mbcf;
    open_task = rig_task(rig, 1, 0, PAGES);
    rig_map(rig, 1, 0, READONLY_PAGE, SSS_READ);
    rig_map(rig, 1, 0, CLOSED_PAGE, 0);
    memset(rig_at(rig, 1, 0, PAGE_AT(READONLY_PAGE)), SECRET, 4096);
    memset(rig_at(rig, 1, 0, PAGE_AT(CLOSED_PAGE)), SECRET, 4096);
    closed_task = rig_task(rig, 1, 1, 1);
    memset(rig_at(rig, 1, 1, RIG_BASE), SECRET, 4096);
    mbcf_key(mbcf, open_task, 0, KEY, MB_READ_ALLOWED | MB_WRITE_ALLOWED);
    mbcf_key(mbcf, open_task, 1, READ_KEY, MB_READ_ALLOWED);
    if (mbcf_fifo(mbcf, open_task, PAGE_AT(FIFO_PAGE), MB_FIFO_HEADER + 4096) != 0 ||
        mbcf_taskque(mbcf, open_task, PAGE_AT(TASKQUE_PAGE), MB_FIFO_HEADER + 4096) != 0 ||
        mbcf_signal(mbcf, open_task, &handler, 1, PAGE_AT(QUEUE_PAGE), MB_FIFO_HEADER + 4096) != 0)
        die("the rings cannot be set up");
    /* The peer opens the channel, returns the nonce, and defines two tags. */
    rig_inject(rig, 1, frame, frame_from_peer(frame, MBW_SYN, 0, 0, MBW_NONCES));
    nonce = mbw_nonce(last + MBW_ETHERNET + MBW_HEADER);
    frame_from_peer(frame, MBW_OPENED, 0, 0, MBW_NONCES);
    mbw_set_echo(frame + MBW_ETHERNET + MBW_HEADER, nonce);
    rig_inject(rig, 1, frame, MBW_FRAME_LEAST);
    for (next_seq = 1; next_seq <= 2; next_seq++) {
        size_t length = frame_from_peer(frame, MBW_WRITE, MBW_DEFINES, next_seq, 4);

        if (next_seq == 2) {
            mbw_set_tag(frame + MBW_ETHERNET, 1);
            mbw_set_tag_key(frame + MBW_ETHERNET, READ_KEY);
        }
        rig_inject(rig, 1, frame, length);
    }
    if (mbcf_counters(mbcf)->operations_executed != 1)
        die("the channel is not open");
}

/* ---- frames ---- */

static const uint8_t ops[] = {MBW_ACK,     MBW_SYN,    MBW_SYNACK, MBW_RST,   MBW_PROBE,
                              MBW_TASKQUE, MBW_WRITE,  MBW_READ,   MBW_FIFO,  MBW_FIFO,
                              MBW_FIFO,    MBW_SIGNAL, MBW_SWAP,   MBW_CAS,   MBW_FETCH_ADD,
                              MBW_CLOSE,   MBW_RESULT, MBW_WRITE,  MBW_OPENED};

static uint16_t length_for(uint8_t op)
{
    switch (op) {
    case MBW_SWAP:
    case MBW_FETCH_ADD:
    case MBW_READ:
        return 8;
    case MBW_CAS:
        return 16;
    case MBW_TASKQUE:
        return (uint16_t)(MBW_TASKQUE_HEAD + rig_random(rig) % 300);
    case MBW_SIGNAL:
        return (uint16_t)(rig_random(rig) % 300);
    case MBW_WRITE:
    case MBW_FIFO:
    case MBW_RESULT:
        return (uint16_t)(rig_chance(rig, 100) ? rig_random(rig) % (MBW_PAYLOAD + 1)
                                               : rig_random(rig) % 64);
    case MBW_SYN:
    case MBW_SYNACK:
    case MBW_OPENED:
        return MBW_NONCES;
    case MBW_CLOSE:
        return MBW_CLOSE_PAYLOAD;
    default:
        return 0;
    }
}

static uint8_t flags_for(uint8_t op)
{
    switch (op) {
    case MBW_FIFO:
        return rig_chance(rig, 500) ? MBW_ACK_NOW : MBW_ACK_NOW | MBW_MORE | MBW_PART;
    case MBW_WRITE:
        return MBW_ACK_NOW | MBW_MORE | MBW_RETX;
    case MBW_TASKQUE:
    case MBW_SIGNAL:
        return MBW_ACK_NOW;
    case MBW_SWAP:
    case MBW_CAS:
    case MBW_FETCH_ADD:
        return MBW_ACK_NOW | MBW_WIDE;
    default:
        return 0;
    }
}

static uint64_t some_address(uint8_t op)
{
    static const uint64_t edges[] = {
        0, 1, 0xfff, UINT64_MAX, UINT64_MAX - 4095, 0x8000000000000000u, HANDLER, RIG_BASE - 1};

    if (rig_chance(rig, 100))
        return edges[rig_random(rig) % (sizeof(edges) / sizeof(*edges))];
    if (op == MBW_FIFO && !rig_chance(rig, 50))
        return PAGE_AT(FIFO_PAGE);
    if (op == MBW_SIGNAL && !rig_chance(rig, 50))
        return HANDLER;
    return PAGE_AT(0) + rig_random(rig) % (17 * 4096);
}

static void fill_payload(uint8_t *payload, uint8_t op, uint8_t flags, uint16_t length)
{
    for (uint16_t i = 0; i < length; i++)
        payload[i] = (uint8_t)(i * 31);
    if (op == MBW_READ) {
        put_be32(payload, (uint32_t)(rig_random(rig) % 1500));
        put_be32(payload + 4, 0);
    } else if (op == MBW_FIFO && (flags & MBW_PART) && length >= MBW_PART_HEAD) {
        put_be32(payload, (uint32_t)(rig_chance(rig, 300) ? (uint64_t)length - MBW_PART_HEAD
                                                          : rig_random(rig) % 3000));
        put_be32(payload + 4, rig_chance(rig, 600) ? 0 : (uint32_t)(rig_random(rig) % 3000));
    }
}

/* Each field may be wrong, most are right: what is wrong in many ways does not come far. */
static size_t make_frame(uint8_t *frame)
{
    uint8_t op = rig_chance(rig, 10) ? (uint8_t)rig_random(rig)
                                     : ops[rig_random(rig) % sizeof(ops)];
    uint8_t flags = (uint8_t)(rig_random(rig) & (rig_chance(rig, 20) ? 0xff
                                                 : mbw_is_keyed(op) && rig_chance(rig, 200)
                                                     ? flags_for(op) | MBW_DEFINES
                                                     : flags_for(op)));
    uint16_t definition = mbw_definition_bytes(flags), length = length_for(op);
    bool sequenced = op >= MBW_TASKQUE;
    size_t bytes = frame_from_peer(frame, op, flags, sequenced ? next_seq : 0, length);
    uint8_t *header = frame + MBW_ETHERNET;
    uint64_t address;

    fill_payload(header + MBW_HEADER + definition, op, flags, length);
    if (op == MBW_SIGNAL) /* one argument more than there is room for, now and then */
        header[MBW_AT(version_status)] |=
            (uint8_t)(rig_random(rig) % (length / MBW_SIGNAL_ARGUMENT < MBW_SIGNAL_ARGUMENTS
                                             ? length / MBW_SIGNAL_ARGUMENT + 2u
                                             : 6u));
    if (mbw_is_keyed(op)) {
        address = some_address(op);
        mbw_set_offset(header, (uint32_t)address);
        if (flags & MBW_DEFINES)
            mbw_set_tag_address_high(header, (uint32_t)(address >> 32));
        mbw_set_tag(header, (uint8_t)(rig_chance(rig, 50) ? rig_random(rig) : rig_chance(rig, 50)));
    } else if (op == MBW_RESULT) {
        mbw_set_request(header, (uint32_t)(rig_random(rig) % 8));
    } else if (op < MBW_TASKQUE) {
        mbw_set_nonce(header + MBW_HEADER, (uint32_t)(rig_random(rig) % 4));
        mbw_set_echo(header + MBW_HEADER, (uint32_t)(rig_random(rig) % 4));
    }
    if (!mbw_is_keyed(op) && length == 0 && bytes == MBW_FRAME_LEAST)
        memset(header + MBW_HEADER, 0, MBW_FRAME_LEAST - MBW_ETHERNET - MBW_HEADER);
    mbw_set_op_id(header, (uint16_t)(rig_chance(rig, 300) ? rig_random(rig) : rig_random(rig) % 4));
    if (!mbw_is_keyed(op) && rig_chance(rig, 30))
        mbw_set_target_task(header, rig_chance(rig, 500) ? closed_task : (uint16_t)rig_random(rig));
    if (flags & MBW_DEFINES && rig_chance(rig, 100))
        mbw_set_tag_target_task(header,
                                rig_chance(rig, 500) ? closed_task : (uint16_t)rig_random(rig));
    if (flags & MBW_DEFINES && rig_chance(rig, 100))
        mbw_set_tag_key(header, rig_chance(rig, 500) ? READ_KEY : rig_random(rig) % 2 * KEY + 1);
    if (rig_chance(rig, 30))
        mbw_set_seq(header, rig_chance(rig, 500) ? next_seq + (uint32_t)(rig_random(rig) % 9) - 4
                                                 : (uint32_t)rig_random(rig));
    if (rig_chance(rig, 20))
        mbw_set_epoch(header, rig_chance(rig, 500) ? PEER_EPOCH + 1 : (uint32_t)rig_random(rig));
    if (rig_chance(rig, 10))
        mbw_set_target_epoch(header, (uint32_t)rig_random(rig));
    if (rig_chance(rig, 50))
        mbw_set_ack(header, mbw_ack(header) + (uint32_t)(rig_random(rig) % 64) - 40);
    if (op == MBW_RESULT && rig_chance(rig, 500))
        header[MBW_AT(version_status)] |= (uint8_t)(rig_random(rig) % 16);
    if (rig_chance(rig, 20))
        mbw_set_length(header, (uint16_t)rig_random(rig));
    if (rig_chance(rig, 20))
        bytes = rig_random(rig) % MBW_FRAME_MOST;
    for (uint64_t wrong = rig_chance(rig, 100) ? rig_random(rig) % 4 : 0; wrong != 0; wrong--)
        frame[rig_random(rig) % (bytes != 0 ? bytes : 1)] ^= (uint8_t)(1u << rig_random(rig) % 8);
    return bytes;
}

/* ---- what must hold ---- */

static void check_secret(unsigned space, uint64_t address)
{
    const uint8_t *page = rig_at(rig, 1, space, address);

    /* All bytes are the same as the one before, and the first is right. */
    if (page[0] != SECRET || memcmp(page, page + 1, 4095) != 0)
        die("memory that no key opens was written");
}

static void check_ring(unsigned page)
{
    struct mbcf_fifo_at at;

    for (unsigned i = 0; mbcf_fifo_at(rig->nodes[1].mbcf, i, &at); i++)
        if (at.address == PAGE_AT(page) && (at.used > at.size || at.used % 16 != 0))
            die("a ring is out of range");
}

static void check(void)
{
    struct mbcf_channel_info info;

    check_secret(0, PAGE_AT(READONLY_PAGE));
    check_secret(0, PAGE_AT(CLOSED_PAGE));
    check_secret(1, RIG_BASE);
    check_ring(FIFO_PAGE);
    check_ring(TASKQUE_PAGE);
    check_ring(QUEUE_PAGE);
    if (mbcf_channel_at(rig->nodes[1].mbcf, 1, &info) && info.in_flight > 128)
        die("the window is too large");
    if (rig->nodes[1].frames_out > 2 * 128)
        die("buffers pile up");
}

/* The owner does something, too: takes records, tries operations, lets time pass, or spoils its own
 * words. */
static void own_step(void)
{
    static const uint64_t rings[] = {PAGE_AT(FIFO_PAGE), PAGE_AT(TASKQUE_PAGE),
                                     PAGE_AT(QUEUE_PAGE)};
    uint64_t ring = rings[rig_random(rig) % 3];
    uint32_t head = rig_word(rig, 1, 0, ring + offsetof(struct mb_fifo, head));
    uint32_t wrong = (uint32_t)rig_random(rig);
    struct mb_operation operation = {.op = (uint16_t)(MB_OP_TASKQUE + rig_random(rig) % 8),
                                     .ltn = (int)(rig_random(rig) % 4096),
                                     .remote = PAGE_AT(0),
                                     .data = (void *)(uintptr_t)PAGE_AT(1),
                                     .length = rig_random(rig) % 4000,
                                     .ack = (void *)(uintptr_t)PAGE_AT(2),
                                     .node = 2,
                                     .task = 0x120};
    uint64_t progress = 0;

    switch (rig_random(rig) % 4) {
    case 0:
        rig_write(rig, 1, 0, ring + offsetof(struct mb_fifo, tail),
                  rig_chance(rig, 100) ? &wrong : &head, 4);
        break;
    case 1:
        if (mbcf_operate(rig->nodes[1].mbcf, open_task, &operation, &progress, rig->now_ns) ==
                -SSS_EAGAIN &&
            progress != 0)
            mbcf_close(rig->nodes[1].mbcf, open_task, operation.ltn, rig->now_ns);
        break;
    case 2:
        rig->now_ns += rig_random(rig) % 3000000;
        mbcf_timeout(rig->nodes[1].mbcf, rig->now_ns);
        break;
    default:
        mbcf_connect(rig->nodes[1].mbcf, open_task, 2, 0x120, KEY);
        break;
    }
}

static void feed(const uint8_t *frame, size_t length)
{
    struct mbcf_channel_info info;

    rig->now_ns += 1000;
    rig_inject(rig, 1, frame, length);
    if (mbcf_channel_at(rig->nodes[1].mbcf, 1, &info))
        next_seq = info.received + 1 == 0 ? 1 : info.received + 1;
    check();
}

#ifdef MBCF_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    renew(1);
    while (size >= 2) {
        uint8_t frame[MBW_FRAME_MOST];
        size_t wanted = (size_t)(data[0] << 8 | data[1]) % (MBW_PAYLOAD + 1), length;
        uint8_t op = size > 2 ? data[2] : 0, flags;
        uint16_t behind;

        data += 2;
        size -= 2;
        if (wanted > size)
            wanted = size;
        /* First flags and how the frame is overlaid, then its header from `length` on, then what is
         * behind the header. */
        flags = wanted > 1 ? data[0] : 0;
        behind = wanted > 28 ? (uint16_t)(wanted - 28) : 0;
        length = frame_from_peer(frame, op, flags, op >= MBW_TASKQUE ? next_seq : 0,
                                 (uint16_t)(behind > mbw_definition_bytes(flags)
                                                ? behind - mbw_definition_bytes(flags)
                                                : 0));
        if (wanted >= 4 && data[1] & 1)
            memcpy(frame + MBW_ETHERNET + MBW_AT(length), data + 4,
                   wanted - 4 < 8 ? wanted - 4 : 8);
        if (wanted >= 4 && data[1] & 2)
            memcpy(frame + MBW_ETHERNET + MBW_AT(version_status), data + 2, 2);
        if (wanted >= 28 && data[1] & 4)
            memcpy(frame + MBW_ETHERNET + MBW_AT(epoch), data + 12, 16);
        if (behind != 0)
            memcpy(frame + MBW_ETHERNET + MBW_HEADER, data + 28, behind);
        feed(frame, length);
        data += wanted;
        size -= wanted;
    }
    return 0;
}
#else
int main(int argc, char **argv)
{
    uint64_t frames = 200000, seed = 1;
    uint8_t frame[MBW_FRAME_MOST + 1];
    uint64_t executed = 0, malformed = 0, refused = 0;

    for (int i = 1; i < argc; i += 2) {
        char *end = NULL;
        uint64_t *to = strcmp(argv[i], "--frames") == 0 ? &frames
                       : strcmp(argv[i], "--seed") == 0 ? &seed
                                                        : NULL;

        if (to == NULL || i + 1 == argc ||
            (*to = strtoull(argv[i + 1], &end, 10), *end != '\0' || *argv[i + 1] == '\0')) {
            fprintf(stderr, "usage: mbcf_fuzz [--frames N] [--seed S]\n");
            return 2;
        }
    }
    for (uint64_t done = 0; done < frames; done++) {
        if (done % RENEW == 0)
            renew(seed * 1000003 + done);
        feed(frame, make_frame(frame));
        if (rig_chance(rig, 100))
            own_step();
        if (done % RENEW == RENEW - 1 || done == frames - 1) {
            const struct mbcf_counters *counters = mbcf_counters(rig->nodes[1].mbcf);

            executed += counters->operations_executed;
            malformed += counters->malformed;
            for (unsigned i = 1; i <= MB_LAST_REMOTE; i++)
                refused += counters->refused[i];
        }
    }
    if (rig != NULL && !rig_free(rig))
        die("buffers are lost");
    printf("@T fuzz ok %llu frames: %llu executed, %llu refused, %llu malformed\n",
           (unsigned long long)frames, (unsigned long long)executed, (unsigned long long)refused,
           (unsigned long long)malformed);
    return 0;
}
#endif
