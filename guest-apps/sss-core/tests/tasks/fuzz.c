/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random system calls: fuzz "SEED CALLS". They are made by one child after the other, for a child
 * may end at any call; the calls are counted in a page that parent and child share. Arguments are
 * bad addresses, results of earlier calls, and what a sensible call of that kind could have.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sss/mbcf.h"
#include "sss/system.h"

#define SHARED 0x300000000ull
#define WINDOW 0x200000000ull
enum {
    PAGE = 4096,
    OF_A_CHILD = 2000,    /* calls */
    CHILD_NS = 200000000, /* then it is killed: it waits for ever, or has lost its memory */
    RESULTS = 16,
    TEXT_MOST = 65536,
};

static uint64_t state;

static uint64_t next(void) /* xorshift64*, Vigna 2014 */
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dull;
}

static unsigned below(unsigned limit)
{
    return (unsigned)((next() >> 33) % limit);
}

static const uint64_t bad[] = {
    1,
    0xfff,
    0x3ff000, /* the information page */
    SSS_TEXT,
    SSS_STACK_TOP - SSS_STACK_BYTES - PAGE,
    SSS_STACK_TOP - 1,
    SSS_STACK_TOP,
    0x7fffffffefff,
    0x7fffffffffff,
    0x800000000000,
    0xffff7fffffffffff,
    0xffff800000000000,
    0xffff808000000000,
    0xffffffff80100000,
    0xfffffffffffff000,
    0xffffffffffffffff,
};
enum { BAD = sizeof bad / sizeof bad[0] };

/* Data and bss of the child that calls may read, write and wait for. */
static union {
    uint8_t bytes[4 * PAGE];
    uint64_t words[4 * PAGE / 8];
    struct mb_operation operation;
    struct mb_signal_setup signal;
} scratch __attribute__((aligned(4096)));
static uint64_t results[RESULTS]; /* of calls that went well: ids, addresses, sockets */
static unsigned result_count;

static uint64_t result(void)
{
    return results[below(RESULTS)];
}

static uint64_t address(void)
{
    switch (below(8)) {
    case 0:
        return bad[below(BAD)];
    case 1:
        return result();
    case 2:
        return (uint64_t)scratch.bytes + below(sizeof scratch);
    case 3:
        return next() << below(64) >> below(64);
    case 4:
        return WINDOW + (uint64_t)below(1u << 20) * PAGE;
    default:
        return WINDOW + (uint64_t)below(32) * PAGE;
    }
}

static uint64_t bytes(void)
{
    return below(8) == 0 ? next() >> below(64) : (uint64_t)below(5) * PAGE;
}

static uint64_t number(void)
{
    switch (below(4)) {
    case 0:
        return bad[below(BAD)];
    case 1:
        return below(70);
    default:
        return result();
    }
}

static uint64_t anything(void)
{
    return below(2) == 0 ? address() : number();
}

static void random_operation(void)
{
    scratch.operation = (struct mb_operation){.op = (uint16_t)(MB_OP_TASKQUE + below(9)),
                                              .flags = (uint16_t)below(10),
                                              .ltn = (int32_t)number(),
                                              .remote = address(),
                                              .data = (void *)address(),
                                              .length = below(2) == 0 ? below(2000) : bytes(),
                                              .ack = (void *)address(),
                                              .argument = {next(), number()},
                                              .node = (uint16_t)below(4),
                                              .task = (uint16_t)number(),
                                              .arguments = below(6)};
}

/* Calls of one kind in a row would be rare by chance: this chooses the next, and what is sensible
 * for it. */
static long call_one(void)
{
    long call = below(4) == 0 ? (long)below(SSS_CALLS + 2) : SSS_MEMORY_MAP + (long)below(5);
    uint64_t a[6];

    for (unsigned i = 0; i < 6; i++)
        a[i] = anything();
    switch (call) {
    case SSS_TASK_CREATE: /* costs as much as a hundred others; the program ends at once */
        if (below(8) != 0)
            return 0;
        a[0] = (uint64_t) "hello";
        a[1] = below(2) == 0 ? 0 : address();
        a[2] = below(3);
        break;
    case SSS_EXIT:
    case SSS_THREAD_EXIT:
    case SSS_THREAD_CREATE: /* ends the task, mostly: there is no code at random addresses */
        if (below(64) != 0)
            return 0;
        break;
    case SSS_WAIT:
        a[1] = below(4);
        a[2] = below(64) == 0 ? next() : below(1000);
        break;
    case SSS_RECORD:
    case SSS_LOG: /* nothing is to be printed */
        if (a[1] != 0 && a[1] <= TEXT_MOST)
            a[0] = 0xffff800000000000;
        break;
    case SSS_MEMORY_MAP:
    case SSS_MEMORY_UNMAP:
    case SSS_MEMORY_PROTECT:
        a[0] = below(8) == 0 ? 0 : address() & ~(uint64_t)(PAGE - 1);
        if (a[0] - SSS_TEXT < SSS_HEAP - SSS_TEXT && below(32) != 0)
            a[0] = WINDOW; /* the program's own memory: soon its end */
        a[1] = bytes();
        a[2] = below(9);
        break;
    case SSS_CSM_SHARE:
        a[0] = address() & ~(uint64_t)(PAGE - 1);
        a[1] = bytes();
        break;
    case SSS_CSM_MAP:
        a[0] = below(2) == 0 ? 0 : number();
        a[1] = below(65);
        a[2] = address() & ~(uint64_t)(PAGE - 1);
        a[3] = below(9);
        break;
    case SSS_MB_OPERATE:
        random_operation();
        a[0] = (uint64_t)&scratch;
        break;
    case SSS_MB_OPERATE_SHORT:
        random_operation();
        memcpy(a, &scratch, sizeof(a));
        break;
    case SSS_SOCKET:
        a[0] = below(2) == 0 ? SSS_UDP : SSS_TCP;
        a[1] = (uint64_t)&scratch + 4ull * below(64);
        break;
    default:
        break;
    }
    return sss_call(call, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* "child SEED CSM" */
static int child(char *options)
{
    volatile uint64_t *count = (volatile uint64_t *)SHARED;
    int csm;

    state = strtoul(options + 6, &options, 10);
    csm = (int)strtol(options, NULL, 10);
    if (sss_csm_map(0, csm, SHARED, SSS_READ | SSS_WRITE) != 0)
        return 1;
    results[0] = SSS_INFO->task;
    results[1] = (uint64_t)&scratch;
    for (unsigned i = 0; i < OF_A_CHILD; i++) {
        long got;

        ++*count;
        got = call_one();
        if (got > 0)
            results[++result_count % RESULTS] = (uint64_t)got;
    }
    return 0;
}

static void await_end(int task)
{
    uint64_t deadline_ns = sss_now_ns() + CHILD_NS;
    struct sss_task_status status;

    for (;;) {
        uint32_t seen = SSS_INFO->tasks;
        uint64_t now_ns = sss_now_ns();

        if (sss_task_status(task, &status) != 0 || status.state == SSS_GONE)
            return;
        if (now_ns >= deadline_ns)
            break;
        sss_wait_word(&SSS_INFO->tasks, seen, deadline_ns - now_ns);
    }
    sss_kill(task);
}

int main(int argc, char **argv)
{
    volatile uint64_t *count;
    uint64_t calls;
    unsigned children = 0;
    char *end;
    int csm;

    (void)argc;
    if (strncmp(argv[1], "child ", 6) == 0)
        return child(argv[1]);
    state = strtoul(argv[1], &end, 10);
    calls = strtoul(end, NULL, 10);
    count = sss_map((void *)SHARED, PAGE, SSS_READ | SSS_WRITE);
    csm = sss_csm_share((void *)SHARED, PAGE);
    while (*count < calls) {
        char options[64];
        int task;

        snprintf(options, sizeof options, "child %lu %d", next() >> 1 | 1, csm);
        task = sss_task("fuzz", options, 0);
        if (task < 0) {
            printf("fuzz: no child: %d\n", task);
            return 1;
        }
        await_end(task);
        children++;
    }
    printf("fuzz: %lu calls by %u children\n", *count, children);
    return 0;
}
