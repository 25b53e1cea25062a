/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What compiled stubs really do: each store into a bound buffer, which is caught as a fault, and
 * the instructions of both ends, step by step. Prints lines: "store CALL OFFSET WIDTH VALUE", the
 * offset from the buffer's end; "instructions CALL CLIENT SERVER".
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "echo_shrimp.h"

enum { BUFFER = ECHO_SHRIMP_PAGES * SHRIMP_PAGE, TRAP = 0x100, STORES = 100000, WRITE_FAULT = 2 };

static uint8_t *buffers[2]; /* call, reply */
static uint8_t payload[ECHO_LIMIT];
static struct shrimp_client client;
static struct shrimp_server server;
static uint16_t status;
static uint32_t size;

static struct {
    int buffer;
    long offset;
    unsigned width;
    uint64_t value;
} stores[STORES];
static unsigned stored, width;
static uint8_t *address;
static volatile unsigned long steps;
static volatile bool watching;

static int buffer_of(const uint8_t *where)
{
    for (int i = 0; i < 2; i++)
        if (where >= buffers[i] && where < buffers[i] + BUFFER)
            return i;
    return -1;
}

/* mov from a register, or an immediate, to memory: 8 bytes with REX.W, else 4. Others are not
 * expected. */
static unsigned width_of(const uint8_t *code)
{
    bool rex = (code[0] & 0xf0) == 0x40;
    uint8_t operation = code[rex];
    if (operation != 0x89 && operation != 0xc7)
        return 0;
    return rex && code[0] & 8 ? 8 : 4;
}

static void fault(int number, siginfo_t *info, void *context)
{
    ucontext_t *at = context;
    int buffer = buffer_of(info->si_addr);
    (void)number;
    if (buffer < 0 || stored == STORES || !(at->uc_mcontext.gregs[REG_ERR] & WRITE_FAULT))
        _Exit(2);
    address = info->si_addr;
    width = width_of((const uint8_t *)at->uc_mcontext.gregs[REG_RIP]);
    mprotect(buffers[buffer], BUFFER, PROT_READ | PROT_WRITE);
    at->uc_mcontext.gregs[REG_EFL] |= TRAP;
}

static void step(int number, siginfo_t *info, void *context)
{
    ucontext_t *at = context;
    (void)number;
    (void)info;
    if (!watching) {
        steps++;
        return;
    }
    int buffer = buffer_of(address);
    stores[stored].buffer = buffer;
    stores[stored].offset = buffers[buffer] + BUFFER - address;
    stores[stored].width = width;
    memcpy(&stores[stored++].value, address, 8);
    mprotect(buffers[buffer], BUFFER, PROT_READ);
    at->uc_mcontext.gregs[REG_EFL] &= ~(long long)TRAP;
}

uint16_t echo_null_serve(struct shrimp_server *self)
{
    (void)self;
    return SHRIMP_OK;
}

uint16_t echo_in_serve(struct shrimp_server *self, const uint8_t *data, uint32_t length)
{
    (void)self;
    (void)data;
    (void)length;
    return SHRIMP_OK;
}

uint16_t echo_out_serve(struct shrimp_server *self, uint32_t sequence, uint32_t wanted)
{
    (void)sequence;
    return echo_out_reply(self, payload, wanted);
}

uint16_t echo_inout_serve(struct shrimp_server *self, const uint8_t *data, uint32_t length)
{
    return echo_inout_reply(self, data, length);
}

uint16_t echo_in_64_serve(struct shrimp_server *self, const uint8_t *data)
{
    (void)self;
    (void)data;
    return SHRIMP_OK;
}

uint16_t echo_out_64_serve(struct shrimp_server *self)
{
    return echo_out_64_reply(self, payload);
}

uint16_t echo_inout_64_serve(struct shrimp_server *self, const uint8_t *data)
{
    return echo_inout_64_reply(self, data);
}

static uint16_t idle(struct shrimp_client *self)
{
    (void)self;
    return shrimp_serve(&server) ? SHRIMP_OK : SHRIMP_GONE;
}

static const uint8_t *back;
static uint32_t back_length;

static __attribute__((noinline)) uint16_t nothing(void)
{
    return 0;
}
static __attribute__((noinline)) uint16_t call_null(void)
{
    return echo_null(&client);
}
static __attribute__((noinline)) uint16_t call_in(void)
{
    return echo_in(&client, payload, size);
}
static __attribute__((noinline)) uint16_t call_out(void)
{
    return echo_out(&client, 7, size, &back, &back_length);
}
static __attribute__((noinline)) uint16_t call_inout(void)
{
    return echo_inout(&client, payload, size, &back, &back_length);
}
static __attribute__((noinline)) uint16_t call_in_64(void)
{
    return echo_in_64(&client, payload);
}
static __attribute__((noinline)) uint16_t call_out_64(void)
{
    return echo_out_64(&client, &back);
}
static __attribute__((noinline)) uint16_t call_inout_64(void)
{
    return echo_inout_64(&client, payload, &back);
}
static __attribute__((noinline)) uint16_t serve(void)
{
    return !shrimp_serve(&server);
}

static const struct {
    const char *name;
    uint16_t (*call)(void);
} CALLS[] = {{"null", call_null},        {"in", call_in},       {"out", call_out},
             {"inout", call_inout},      {"in_64", call_in_64}, {"out_64", call_out_64},
             {"inout_64", call_inout_64}};

static void watch(const char *name, uint16_t (*call)(void), uint32_t bytes)
{
    size = bytes;
    stored = 0;
    watching = true;
    for (int i = 0; i < 2; i++)
        mprotect(buffers[i], BUFFER, PROT_READ);
    status = call();
    for (int i = 0; i < 2; i++)
        mprotect(buffers[i], BUFFER, PROT_READ | PROT_WRITE);
    watching = false;
    if (status)
        _Exit(3);
    for (unsigned i = 0; i < stored; i++)
        printf("store %s %u %s %ld %u %llu\n", name, bytes, stores[i].buffer ? "reply" : "call",
               stores[i].offset, stores[i].width, (unsigned long long)stores[i].value);
}

static unsigned long stepped(uint16_t (*call)(void))
{
    steps = 0;
    __asm__ volatile("pushf; orq $0x100, (%%rsp); popf" ::: "memory", "cc");
    status = call();
    __asm__ volatile("pushf; andq $~0x100, (%%rsp); popf" ::: "memory", "cc");
    return steps;
}

/* The reply is there when the client looks for the first time, as the server's flag is. */
static void count(const char *name, uint16_t (*call)(void), uint32_t bytes)
{
    /* Of `nothing` itself: clearing the result, and the return. */
    unsigned long around = stepped(nothing) - 2;
    size = bytes;
    if (call())
        _Exit(4);
    uint64_t *reply = (uint64_t *)(void *)(buffers[1] + BUFFER) - 1;
    *reply += SHRIMP_NEXT;
    unsigned long caller = stepped(call) - around;
    if (status)
        _Exit(4);
    *reply -= SHRIMP_NEXT;
    unsigned long called = stepped(serve) - around;
    if (status || *reply != client.sequence)
        _Exit(4);
    printf("instructions %s %u %lu %lu\n", name, bytes, caller, called);
}

int main(void)
{
    for (int i = 0; i < 2; i++)
        buffers[i] = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)(i * 7 + (i >> 8) + 1);
    struct sigaction on_fault = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
    struct sigaction on_step = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &on_fault, NULL);
    sigaction(SIGTRAP, &on_step, NULL);
    shrimp_server_init(&server, &echo_shrimp, buffers[0], buffers[1], NULL, NULL);
    shrimp_client_init(&client, ECHO_SHRIMP_PAGES, buffers[1], buffers[0], idle, NULL);

    static const uint32_t SIZES[] = {0, 1, 3, 4, 5, 11, 12, 13, 64, 1024, 4096, ECHO_LIMIT};
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++)
        for (size_t j = 0; j < sizeof SIZES / sizeof *SIZES; j++)
            watch(CALLS[i].name, CALLS[i].call, SIZES[j]);
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++)
        count(CALLS[i].name, CALLS[i].call, i ? 64 : 0);
    return 0;
}
