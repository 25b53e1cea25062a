/* SPDX-License-Identifier: Apache-2.0 */
/* Upcalls, by the two calls that boot_main.c gives in place of MBCF: into a wait, into running
 * code, one at a time. */
#include <stdio.h>

#include "sss/system.h"

enum { SETUP = SSS_MB_KEY, SIGNAL = SSS_MB_TASKQUE };

static volatile uint32_t handled, nested, depth, word, other;
static uint64_t arguments[8];

static void trampoline(uint64_t handler)
{
    depth++;
    if (depth > 1)
        nested++;
    arguments[handled % 8] = handler;
    handled++;
    if (handler == 3) { /* comes once more when this one has returned */
        sss_call(SIGNAL, 0, 4, 0, 0, 0, 0);
        sss_yield();
    }
    if (handler == 5)
        word = 1; /* what the interrupted wait waits for */
    if (handler == 6)
        sss_wait_word(&other, 0, 1000000); /* a handler may wait, too */
    __asm__ volatile("movq %0, %%xmm5" : : "r"(handler));
    depth--;
    sss_call(SSS_MB_SIGNAL_RETURN, 0, 0, 0, 0, 0, 0);
    printf("came back\n");
}

static void sender(void *argument)
{
    sss_wait(NULL, 0, 2000000);
    sss_call(SIGNAL, 0, (uint64_t)argument, 0, 0, 0, 0);
}

int main(void)
{
    static uint8_t stack[8192] __attribute__((aligned(16)));
    uint64_t kept, before;

    printf("bad setup %ld %ld %ld\n",
           sss_call(SETUP, 0xffffffff80100000, (uint64_t)(stack + sizeof stack), 0, 0, 0, 0),
           sss_call(SETUP, (uint64_t)trampoline, 8, 0, 0, 0, 0),
           sss_call(SETUP, (uint64_t)trampoline, 0x401000, 0, 0, 0, 0));
    printf("return without a handler %ld\n", sss_call(SSS_MB_SIGNAL_RETURN, 0, 0, 0, 0, 0, 0));
    printf("setup %ld\n",
           sss_call(SETUP, (uint64_t)trampoline, (uint64_t)(stack + sizeof stack), 0, 0, 0, 0));
    __asm__ volatile("movq %0, %%xmm5" : : "r"(77ull));
    printf("signal returns %ld", sss_call(SIGNAL, 0, 1, 0, 0, 0, 0));
    printf(", handled %u\n", handled);
    __asm__ volatile("movq %%xmm5, %0" : "=r"(kept));
    printf("xmm5 %lu\n", kept);
    sss_call(SIGNAL, 0, 3, 0, 0, 0, 0);
    printf("handled %u nested %u\n", handled, nested);
    sss_thread(sender, (void *)2, 8192);
    before = sss_now_ns();
    printf("wait continues to its time %d", sss_wait_word(&word, 0, 10000000));
    printf(", %lu ms, handled %u\n", (sss_now_ns() - before) / 1000000, handled);
    sss_thread(sender, (void *)5, 8192);
    printf("wait sees what the handler wrote %d\n", sss_wait_word(&word, 0, SSS_FOREVER));
    sss_thread(sender, (void *)6, 8192);
    printf("wait outlived by its handler %d\n", sss_wait_word(&other, 0, 2500000));
    before = handled;
    sss_thread(sender, (void *)7, 8192);
    while (handled == before) /* at user level, without a system call */
        ;
    for (unsigned i = 0; i < handled; i++)
        printf("%lu ", arguments[i]);
    printf("\n");
    return 0;
}
