/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions, with -icount shift=0: the time-stamp counter then counts them. Prints name and
 * count of each, less the loop. */
#include <stdio.h>

#include "sss/system.h"

enum { CALLS = 1000, SETUP = SSS_MB_KEY, SIGNAL = SSS_MB_TASKQUE };

static uint64_t entered, left;
static volatile uint32_t word;

static uint64_t count(void)
{
    uint32_t low, high;

    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}

static void trampoline(void)
{
    entered = count();
    left = count();
    sss_call(SSS_MB_SIGNAL_RETURN, 0, 0, 0, 0, 0, 0);
}

static void yielder(void *argument)
{
    (void)argument;
    for (;;)
        sss_yield();
}

static uint64_t repeat(long call)
{
    uint64_t before = count();

    for (unsigned i = 0; i < CALLS; i++)
        __asm__ volatile("syscall" : : "a"(call), "D"(0), "S"(0), "d"(0) : "rcx", "r11", "memory");
    return (count() - before) / CALLS;
}

int main(void)
{
    static uint8_t stack[4096] __attribute__((aligned(16)));
    struct sss_wait wait = {.address = &word};
    uint64_t before, out;

    printf("null_call %lu\n", repeat(15)); /* not given out: the table, and back */
    printf("yield_alone %lu\n", repeat(SSS_YIELD));
    sss_wait(&wait, 1, 0); /* from now on its pages are in the translations */
    before = count();
    sss_wait(&wait, 1, 0);
    printf("wait_poll %lu\n", count() - before);
    sss_call(SETUP, (uint64_t)trampoline, (uint64_t)(stack + sizeof stack), 0, 0, 0, 0);
    sss_call(SIGNAL, 0, 1, 0, 0, 0, 0);
    before = count();
    sss_call(SIGNAL, 0, 1, 0, 0, 0, 0);
    out = count();
    printf("upcall_in %lu\n", entered - before); /* the system call that sends it, too */
    printf("upcall_out %lu\n", out - left);
    before = count();
    sss_task("hello", NULL, SSS_EMPTY);
    printf("dummy_create %lu\n", count() - before);
    before = count();
    sss_task("hello", NULL, 0);
    printf("task_create %lu\n", count() - before);
    sss_wait_word(&word, 0, 10000000); /* hello is over */
    sss_thread(yielder, NULL, 4096);
    sss_yield();
    printf("yield_to_thread %lu\n", repeat(SSS_YIELD) / 2);
    return 0;
}
