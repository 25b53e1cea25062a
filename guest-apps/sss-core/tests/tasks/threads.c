/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, waiting for words, time, and the CPU taken away from a thread that does not give it. */
#include <stdio.h>
#include <string.h>

#include "sss/system.h"

static volatile uint32_t started, word, spinning, finished;

static void child(void *argument)
{
    started++;
    while (sss_wait_word(&word, 0, SSS_FOREVER) == 0 && word == 0)
        ;
    printf("child %lu woke\n", (uint64_t)argument);
    finished++;
}

static void spinner(void *argument)
{
    uint32_t mine = (uint32_t)(uint64_t)argument;

    while (spinning < 20)
        if (spinning % 2 == mine)
            spinning++; /* the other one must get the CPU before this continues */
    finished++;
}

static void floats(void *argument)
{
    volatile uint32_t *done = argument;
    uint64_t seed = (uint64_t)argument, kept;

    for (unsigned i = 0; i < 50; i++, seed++) {
        __asm__ volatile("movq %0, %%xmm5" : : "r"(seed));
        sss_yield();
        __asm__ volatile("movq %%xmm5, %0" : "=r"(kept));
        if (kept != seed)
            printf("xmm5 was lost\n");
    }
    (*done)++;
    finished++;
}

static void wait_for_finished(uint32_t count)
{
    uint32_t seen;

    while ((seen = finished) < count)
        sss_wait_word(&finished, seen, SSS_FOREVER);
}

int main(void)
{
    uint64_t before = sss_now_ns();
    static volatile uint32_t done[2];
    struct sss_wait two[2] = {{&word, 0, 0}, {&started, 0, 0}};

    printf("timeout %d\n", sss_wait_word(&word, 0, 5000000));
    printf("slept %lu ms\n", (sss_now_ns() - before) / 1000000);
    sss_thread(child, (void *)1, 8192);
    sss_thread(child, (void *)2, 8192);
    printf("second word %d\n", sss_wait(two, 2, SSS_FOREVER));
    while (started < 2)
        sss_yield();
    word = 1;
    wait_for_finished(2);

    before = sss_now_ns();
    sss_thread(spinner, (void *)0, 8192);
    sss_thread(spinner, (void *)1, 8192);
    wait_for_finished(4);
    printf("spinners took %lu slices\n", (sss_now_ns() - before) / 10000000);

    sss_thread(floats, (void *)&done[0], 8192);
    sss_thread(floats, (void *)&done[1], 8192);
    wait_for_finished(6);
    printf("floats %u %u\n", done[0], done[1]);
    return 0;
}
