/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every state that two nodes can reach: frames are delivered in any order, lost, doubled and
 * delayed for as long as one likes, timers expire at any moment, and nodes restart, all within the
 * bounds of the command line. The protocol is compiled as it is, with small limits.
 *
 *   mbcf_explore [--ops A[,B]] [--restarts A,B] [--loss N] [--copies N] [--timeouts N] [--most N]
 *
 * --ops: what each incarnation of the two nodes asks for, in this order: w WRITE, a FETCH_ADD, e a
 * WRITE that is refused; each waits for its end. --restarts: of the two nodes. --timeouts: those
 * that send again; a delayed ACK may go at any moment. In each state:
 *
 * - no operation was executed twice, counting all incarnations of its receiver;
 * - one that ended well was executed once, one that ended with an error and without MB_MAYBE never;
 * - who has believed an incarnation of the peer executes nothing of an earlier one, and believes
 *   none again;
 * - nothing for a former incarnation of the receiver is executed;
 * - if from now on the wire is faithful, all operations end, and the nodes come to rest.
 *
 * -DPLANT=1 makes all nonces of candidates alike, -DPLANT=2 drops UNSURE, -DPLANT=3 takes
 * duplicates for frames in their turn: the search must fail then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sss/abi.h"

#include "core.h"

#ifndef PLANT
#define PLANT 0
#endif

#define SSS_NODES               2
#define MB_CONNECTIONS          2
#define MB_OPERATIONS           4
#define MBCF_LIMIT(name, value) SMALL_##name
#define SMALL_WINDOW            4
#define SMALL_REQUEST_PLACES    2
#define SMALL_TAGS              2
#define SMALL_QUICK_ACKS        2
#define SMALL_GAP_ACKS          1
#define SMALL_DEAD_FAILURES     2
#define SMALL_LEAST_ALLOWED     2
#define SMALL_ACK_PATIENCE      4
#define SMALL_ACK_EVERY         2
#define SMALL_TASK_SLOTS        2
#define SMALL_WELL_KNOWN        1
#define SMALL_SEGMENTS          1
#define SMALL_LOOP              2

#include "acks.c"
#if PLANT == 2
#define MBW_UNSURE 0
#endif
#include "channel.c"
#undef MBW_UNSURE
#include "connection.c"
#include "fifo.c"
#include "inspect.c"
#include "operation.c"
#include "pool.c"
#include "tasks.c"
#if PLANT == 1
#define mbcf_channel_new_nonce(channel) ((channel)->nonces = 1)
#endif
#include "epochs.c"
#include "execute.c"
#if PLANT == 3
#define seq_next(seq) ((seq) == 0 ? 1 : (seq))
#endif
#include "receive.c"
#undef seq_next
#include "mbcf.c"
#include "operate.c"

enum {
    BUFFERS = 16,
    BUFFER_BYTES = 128,
    FLYING = 24, /* frames on the wire at once */
    KINDS = 3,
    INCARNATIONS = 3,
    OPS = KINDS * INCARNATIONS,
    DEPTH = 400,
    FAIR_STEPS = 600,
    ADDRESS = 0x100000, /* of the page that can be written; the next one is read only */
    ACK_AT = 0,
    DATA_AT = 256,
    WORDS_AT = 512,
};
#define NOW 1000000000ull
#define KEY 7

struct flying {
    uint8_t to, length;
    uint8_t bytes[BUFFER_BYTES];
};

/* All of a state, without pointers to anything outside: it is copied as it is. */
static struct world {
    struct mbcf node[3];
    struct sss_frame frames[3][BUFFERS];
    uint8_t buffers[3][BUFFERS][BUFFER_BYTES];
    struct sss_frame *free[3];
    uint8_t memory[3][1024];
    uint16_t task[3];
    int ltn[3];
    uint8_t incarnation[3], begun[3];
    uint8_t believed[3];      /* incarnation of the peer + 1 */
    uint8_t executed[3][OPS]; /* by node that asked, and its operation */
    uint8_t ended[3][OPS];    /* status + 1 */
    uint8_t restarts[3], loss, copies, timeouts;
    uint8_t count;
    struct flying flying[FLYING];
} world;

static char kinds[3][KINDS + 1]; /* by node */
static const char *broken;
static unsigned executing; /* node, 0: none */

static void fail(const char *what)
{
    if (broken == NULL)
        broken = what;
}

static unsigned of(const void *context)
{
    return (unsigned)((const struct mbcf *)context - world.node);
}

/* ---- surroundings ---- */

struct sss_frame *surroundings_frame_get(void *context)
{
    struct sss_frame *frame = sss_frame_take(&world.free[of(context)]);

    if (frame == NULL)
        fail("buffers are lost");
    return frame;
}

void surroundings_frame_put(void *context, struct sss_frame *frame)
{
    sss_frame_release(&world.free[of(context)], frame);
}

bool surroundings_transmit(void *context, struct sss_frame *frame)
{
    struct flying *flying = &world.flying[world.count];

    if (world.count == FLYING || frame->length > BUFFER_BYTES) {
        fail("more frames under way than are provided for");
        return false;
    }
    world.count++;
    memset(flying, 0, sizeof(*flying));
    flying->to = (uint8_t)(3 - of(context));
    flying->length = (uint8_t)frame->length;
    memcpy(flying->bytes, frame->bytes, frame->length);
    return true;
}

static void executed(unsigned node, unsigned op)
{
    unsigned by = op / KINDS;

    if (op >= OPS)
        return;
    if (world.executed[3 - node][op]++ != 0)
        fail("an operation was executed twice");
    if (by + 1u < world.believed[node])
        fail("something of an incarnation was executed after a later one had been believed");
    if (kinds[3 - node][op % KINDS] == 'e')
        fail("a refused operation was executed");
}

void *surroundings_page(void *context, void *space, uint64_t address, bool write, int *why)
{
    unsigned node = of(context);

    (void)space;
    *why = address / 4096 == ADDRESS / 4096 + 1 ? MB_READONLY : MB_FAULT;
    if (address < ADDRESS || address >= ADDRESS + sizeof(world.memory[0]))
        return NULL;
    if (write && executing == node && address >= ADDRESS + WORDS_AT)
        executed(node, (unsigned)(address - ADDRESS - WORDS_AT) / 8);
    return &world.memory[node][address - ADDRESS];
}

void surroundings_changed(void *context, void *space)
{
    (void)context;
    (void)space;
}
void surroundings_signalled(void *context, void *space, uint64_t handler)
{
    (void)handler;
    surroundings_changed(context, space);
}
void surroundings_window_open(void *context)
{
    (void)context;
}
void surroundings_failed(void *context, void *space)
{
    surroundings_changed(context, space);
}

/* ---- nodes ---- */

static uint32_t epoch_of(unsigned node, unsigned incarnation)
{
    return 0x10000 * node + incarnation + 1;
}

static void start(unsigned node)
{
    struct mbcf_config config = {.node = (uint16_t)node,
                                 .epoch = epoch_of(node, world.incarnation[node]),
                                 .mac = {2, 0, 0, 0, 0, (uint8_t)node}};
    const uint8_t mac[6] = {2, 0, 0, 0, 0, (uint8_t)(3 - node)};

    world.free[node] = NULL;
    for (unsigned i = 0; i < BUFFERS; i++) {
        world.frames[node][i] = (struct sss_frame){.next = world.free[node],
                                                   .bytes = world.buffers[node][i]};
        world.free[node] = &world.frames[node][i];
    }
    memset(world.memory[node], 0, sizeof(world.memory[node]));
    world.begun[node] = 0;
    world.believed[node] = 0;
    mbcf_init(&world.node[node], &config, &world.node[node]);
    mbcf_add_node(&world.node[node], (uint16_t)(3 - node), mac);
    world.task[node] = (uint16_t)mbcf_task_open(&world.node[node], &world.node[node]);
    mbcf_key(&world.node[node], world.task[node], 0, KEY, MB_READ_ALLOWED | MB_WRITE_ALLOWED);
    world.ltn[node] = mbcf_connect(&world.node[node], world.task[node], (uint16_t)(3 - node), 0x101,
                                   KEY);
}

static struct mb_ack *ack_of(unsigned node, unsigned number)
{
    return (struct mb_ack *)(void *)&world.memory[node][ACK_AT + 16 * number];
}

static bool begin_one(unsigned node)
{
    unsigned number = world.begun[node], op = world.incarnation[node] * KINDS + number;
    char kind = kinds[node][number];
    struct mb_operation operation = {.op = kind == 'a' ? MB_OP_FETCH_ADD : MB_OP_WRITE,
                                     .ltn = world.ltn[node],
                                     .data = (void *)(uintptr_t)(ADDRESS + DATA_AT),
                                     .length = kind == 'a' ? 0 : 4,
                                     .remote = kind == 'e' ? ADDRESS + 4096
                                                           : ADDRESS + WORDS_AT + 8u * op,
                                     .argument = {1},
                                     .ack = (void *)(uintptr_t)(ADDRESS + ACK_AT + 16 * number)};
    struct mb_connection info;
    uint64_t progress = 0;

    /* One that is broken is discarded; another one begins. */
    if (mbcf_connection(&world.node[node], world.task[node], world.ltn[node], &info) == 0 &&
        info.state != MB_CONNECTION_OPEN) {
        mbcf_close(&world.node[node], world.task[node], world.ltn[node], NOW);
        world.ltn[node] = mbcf_connect(&world.node[node], world.task[node], (uint16_t)(3 - node),
                                       0x101, KEY);
        operation.ltn = world.ltn[node];
    }
    if (mbcf_operate(&world.node[node], world.task[node], &operation, &progress, NOW) != 0)
        return false;
    world.begun[node]++;
    return true;
}

/* Whom a node believes, and how its operations have ended. */
static void look(unsigned node)
{
    const struct channel *channel = &world.node[node].channels[3 - node];
    unsigned peer = channel->peer_epoch & 0xffff;

    if (peer < world.believed[node])
        fail("an earlier incarnation was believed again");
    world.believed[node] = (uint8_t)peer;
    for (unsigned number = 0; number < world.begun[node]; number++) {
        const struct mb_ack *ack = ack_of(node, number);
        unsigned op = world.incarnation[node] * KINDS + number;

        if (ack->state == MB_ACK_DONE)
            world.ended[node][op] = (uint8_t)(ack->status + 1);
        if (ack->state == MB_ACK_DONE && ack->status == MB_OK && ack->value != 0)
            fail("an old value that was not there");
    }
}

static void check_ends(void)
{
    for (unsigned node = 1; node <= 2; node++)
        for (unsigned op = 0; op < OPS; op++) {
            unsigned ended = world.ended[node][op], times = world.executed[node][op];

            if (ended == MB_OK + 1 && times != 1)
                fail("success of what was not executed");
            if (ended > MB_OK + 1 && !((ended - 1) & MB_MAYBE) && times != 0)
                fail("an error without MAYBE of what was executed");
        }
}

/*
 * Times are not part of a state: any timer may expire next, and what has been measured changes
 * nothing but times. Counters change nothing at all.
 */
static void forget_time(unsigned node)
{
    struct mbcf *mbcf = &world.node[node];
    struct channel *channel = &mbcf->channels[3 - node];

    memset(&mbcf->counters, 0, sizeof(mbcf->counters));
    channel->timed_seq = 0;
    channel->timed_at_ns = channel->quick_at_ns = 0;
    channel->timer_from_ns = channel->owed_from_ns = channel->noted_at_ns = NOW;
    channel->srtt_ns = channel->deviation_ns = 0;
    channel->rto_ns = RTO_FIRST_NS;
    if (channel->ack_due_ns != NEVER)
        channel->ack_due_ns = NOW + ACK_DELAY_NS;
    mbcf->due_ns = mbcf_channel_due(mbcf, channel);
    if (mbcf->scarce)
        fail("buffers are lost");
}

static void settle_world(unsigned node)
{
    look(node);
    forget_time(node);
    check_ends();
}

static void deliver(unsigned which)
{
    struct flying flying = world.flying[which];

    world.flying[which] = world.flying[--world.count];
    memset(&world.flying[world.count], 0, sizeof(flying));
    executing = flying.to;
    mbcf_receive(&world.node[flying.to], NOW, flying.bytes, flying.length);
    executing = 0;
    settle_world(flying.to);
}

static void expire(unsigned node)
{
    struct mbcf *mbcf = &world.node[node];

    mbcf_timeout(mbcf, mbcf->due_ns);
    settle_world(node);
}

/* ---- hashing ---- */

struct hash {
    uint64_t a, b;
};

static void mix(struct hash *hash, const void *from, size_t length)
{
    const uint8_t *at = from;
    uint64_t word;

    for (; length >= 8; length -= 8, at += 8) {
        memcpy(&word, at, 8);
        hash->a = (hash->a ^ word) * 0x9e3779b97f4a7c15u;
        hash->a ^= hash->a >> 32;
        hash->b = (hash->b + word) * 0xc2b2ae3d27d4eb4fu;
        hash->b ^= hash->b >> 29;
    }
    for (; length > 0; length--, at++)
        mix(hash, &(uint64_t){*at + 256u}, 8);
}

static int compare(const void *one, const void *other)
{
    return memcmp(one, other, sizeof(struct flying));
}

/* Which buffer a frame is in, and in which place of the wire, makes no difference. */
static struct hash hash_world(void)
{
    static struct mbcf copy_of_node;
    struct hash hash = {1, 2};

    qsort(world.flying, world.count, sizeof(struct flying), compare);
    for (unsigned node = 1; node <= 2; node++) {
        struct channel *channel = &copy_of_node.channels[3 - node];

        memcpy(&copy_of_node, &world.node[node], sizeof(copy_of_node));
        for (uint32_t i = 0; i < SMALL_WINDOW; i++) {
            struct place *place = &channel->places[i];

            if (place->frame != NULL)
                mix(&hash, place->frame->bytes, place->frame->length);
            else
                memset(place, 0, sizeof(*place));
            place->frame = NULL;
        }
        mix(&hash, &copy_of_node, sizeof(copy_of_node));
        mix(&hash, world.memory[node], ACK_AT + 16 * KINDS);
        mix(&hash, world.executed[node], OPS);
        mix(&hash, world.ended[node], OPS);
    }
    mix(&hash, world.ltn, sizeof(world.ltn));
    mix(&hash, world.incarnation, (size_t)((uint8_t *)world.executed - world.incarnation));
    mix(&hash, world.restarts, (size_t)((uint8_t *)world.flying - world.restarts));
    mix(&hash, world.flying, sizeof(struct flying) * world.count);
    return hash;
}

static struct hash *seen;
static uint64_t seen_size = 1 << 20, seen_count;

static bool insert(struct hash *table, uint64_t size, struct hash hash)
{
    uint64_t at = hash.a & (size - 1);

    for (; table[at].a | table[at].b; at = (at + 1) & (size - 1))
        if (table[at].a == hash.a && table[at].b == hash.b)
            return false;
    table[at] = hash;
    return true;
}

static bool is_new(struct hash hash)
{
    if (seen == NULL)
        seen = calloc(seen_size, sizeof(*seen));
    if (2 * seen_count > seen_size) {
        struct hash *larger = calloc(2 * seen_size, sizeof(*seen));

        if (larger == NULL) {
            fprintf(stderr, "no memory for %llu states\n", (unsigned long long)(2 * seen_size));
            exit(2);
        }
        for (uint64_t i = 0; i < seen_size; i++)
            if (seen[i].a | seen[i].b)
                insert(larger, 2 * seen_size, seen[i]);
        free(seen);
        seen = larger;
        seen_size *= 2;
    }
    if (!insert(seen, seen_size, hash))
        return false;
    seen_count++;
    return true;
}

/* ---- the search ---- */

/* From here on the wire is faithful: everything ends. */
static void run_fairly(void)
{
    unsigned steps, idle = 0;

    for (steps = 0; steps < FAIR_STEPS && broken == NULL; steps++) {
        if (world.count != 0) {
            deliver(0);
            idle = 0;
        } else if (idle < 2) {
            unsigned node = 1 + steps % 2;

            if (world.node[node].due_ns != NEVER) {
                expire(node);
                idle = 0;
            } else {
                idle++;
            }
        } else {
            break;
        }
    }
    if (steps == FAIR_STEPS)
        fail("the nodes do not come to rest");
    for (unsigned node = 1; node <= 2; node++)
        for (unsigned number = 0; number < world.begun[node]; number++)
            if (ack_of(node, number)->state != MB_ACK_DONE)
                fail("an operation never ends");
}

static struct world *stack;
static uint64_t transitions, fair, most = UINT64_MAX;
static unsigned deepest, fair_every = 1;
static uint8_t steps_taken[DEPTH][2];

static bool apply(unsigned action, unsigned argument)
{
    switch (action) {
    case 0: /* deliver */
        deliver(argument);
        return true;
    case 1: /* lose */
        if (world.loss == 0)
            return false;
        world.loss--;
        world.flying[argument] = world.flying[--world.count];
        memset(&world.flying[world.count], 0, sizeof(struct flying));
        return true;
    case 2: /* deliver, and once more later */
        if (world.copies == 0 || world.count == FLYING)
            return false;
        world.copies--;
        world.flying[world.count++] = world.flying[argument];
        deliver(argument);
        return true;
    case 3: /* a timer */
        if (world.timeouts == 0 || world.node[argument].due_ns == NEVER)
            return false;
        /* That of an ACK is always the first; it repeats nothing. */
        if (world.node[argument].channels[3 - argument].ack_due_ns == NEVER)
            world.timeouts--;
        expire(argument);
        return true;
    case 4: /* an operation */
        if (kinds[argument][world.begun[argument]] == '\0' || !begin_one(argument))
            return false;
        settle_world(argument);
        return true;
    default: /* a restart */
        if (world.restarts[argument] == 0)
            return false;
        world.restarts[argument]--;
        world.incarnation[argument]++;
        start(argument);
        settle_world(argument);
        return true;
    }
}

static void search(unsigned depth)
{
    static const char *const names[] = {"deliver", "lose", "double", "timer", "operate", "restart"};

    if (depth > deepest)
        deepest = depth;
    if (depth == DEPTH - 1)
        fail("deeper than is provided for");
    if (broken == NULL && seen_count % fair_every == 0) {
        memcpy(&stack[depth], &world, sizeof(world));
        fair++;
        run_fairly();
        memcpy(&world, &stack[depth], sizeof(world));
    }
    if (broken != NULL) {
        printf("%s after:\n", broken);
        for (unsigned i = 0; i < depth; i++)
            printf("  %s %u\n", names[steps_taken[i][0]], steps_taken[i][1]);
        return;
    }
    memcpy(&stack[depth], &world, sizeof(world));
    for (unsigned action = 0; action < 6; action++) {
        unsigned first = action < 3 ? 0 : 1, end = action < 3 ? stack[depth].count : 3;

        for (unsigned argument = first; argument < end; argument++) {
            /* One of several equal frames stands for all. */
            if (action < 3 && argument > 0 &&
                compare(&stack[depth].flying[argument], &stack[depth].flying[argument - 1]) == 0)
                continue;
            if (seen_count >= most)
                return;
            steps_taken[depth][0] = (uint8_t)action;
            steps_taken[depth][1] = (uint8_t)argument;
            if (apply(action, argument)) {
                transitions++;
                if (broken != NULL || is_new(hash_world()))
                    search(depth + 1);
                if (broken != NULL)
                    return;
            }
            memcpy(&world, &stack[depth], sizeof(world));
        }
    }
}

static unsigned number(const char *text, char **end)
{
    return (unsigned)strtoul(text, end, 10);
}

int main(int argc, char **argv)
{
    char *end = NULL;
    bool right = true;

    world.loss = world.copies = world.timeouts = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];

        if (strcmp(argv[i], "--ops") == 0)
            right &= sscanf(value, "%3[wae],%3[wae]", kinds[1], kinds[2]) >= 1;
        else if (strcmp(argv[i], "--restarts") == 0) {
            world.restarts[1] = (uint8_t)number(value, &end);
            world.restarts[2] = *end == ',' ? (uint8_t)number(end + 1, &end) : 0;
        } else if (strcmp(argv[i], "--loss") == 0)
            world.loss = (uint8_t)number(value, &end);
        else if (strcmp(argv[i], "--copies") == 0)
            world.copies = (uint8_t)number(value, &end);
        else if (strcmp(argv[i], "--timeouts") == 0)
            world.timeouts = (uint8_t)number(value, &end);
        else if (strcmp(argv[i], "--fair-every") == 0)
            fair_every = number(value, &end);
        else if (strcmp(argv[i], "--most") == 0)
            most = strtoull(value, &end, 10);
        else
            right = false;
    }
    if (!right || argc % 2 == 0 || world.restarts[1] >= INCARNATIONS ||
        world.restarts[2] >= INCARNATIONS || fair_every == 0 || (end != NULL && *end != '\0')) {
        fprintf(stderr, "usage: mbcf_explore [--ops A[,B]] [--restarts A,B] [--loss N] "
                        "[--copies N] [--timeouts N] [--fair-every N] [--most N]\n");
        return 2;
    }
    stack = malloc(sizeof(*stack) * DEPTH);
    start(1);
    start(2);
    settle_world(1);
    settle_world(2);
    is_new(hash_world());
    search(0);
    printf("@T explore %s: %llu states%s, %llu transitions, %u steps deep, %llu fair runs\n",
           broken == NULL ? "ok" : "fail", (unsigned long long)seen_count,
           seen_count >= most ? " (not all)" : "", (unsigned long long)transitions, deepest,
           (unsigned long long)fair);
    return broken == NULL ? 0 : 1;
}
