/* SPDX-License-Identifier: Apache-2.0 */
/* Every system call with every kind of bad address in every argument: none may do more than return
 * an error. */
#include <stdio.h>

#include "sss/system.h"

static const uint64_t bad[] = {
    0,
    1,
    0xfff,
    0x3fe000,
    SSS_TEXT,
    SSS_STACK_TOP - SSS_STACK_BYTES - 4096,
    SSS_STACK_TOP - 1, /* crosses into nothing */
    SSS_STACK_TOP,
    0x7fffffffe000,
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

/* Those that end the task, the node, or the time that a test has. */
static int is_final(long call)
{
    return call == SSS_EXIT || call == SSS_THREAD_EXIT || call == SSS_THREAD_CREATE ||
           call == SSS_TASK_KILL || call == SSS_DONE || call == SSS_RESTART ||
           call == SSS_MB_KEY /* a signal's handler, in boot_main.c */;
}

/* Calls whose arguments are no addresses may succeed; the others have nothing to succeed with. */
static int may_succeed(long call)
{
    return call == SSS_YIELD || call == SSS_CLOCK || call == SSS_READY || call >= SSS_MB_KEY;
}

int main(void)
{
    unsigned calls = 0, holes = 0;

    for (long call = 0; call < SSS_CALLS + 3; call++) {
        if (is_final(call))
            continue;
        for (unsigned i = 0; i < BAD; i++) {
            for (unsigned k = 0; k < BAD; k++) {
                long result;

                if (call == SSS_WAIT && bad[k] == 0)
                    continue; /* to wait for nothing, but long, is not an error */
                if ((call == SSS_LOG || call == SSS_RECORD) && bad[i] == SSS_TEXT)
                    continue; /* may be printed */
                result = sss_call(call, bad[i], bad[k], bad[(i + k) % BAD], bad[(i * 7 + k) % BAD],
                                  bad[k], bad[i]);

                calls++;
                /* Mapping at a free address is what it says; a wait for nothing ends by its time, a
                 * text of 0 or 1 bytes is none. */
                if (result >= 0 && !may_succeed(call) && call != SSS_MEMORY_MAP &&
                    call != SSS_LOG && call != SSS_RECORD) {
                    holes++;
                    printf("call %ld with 0x%lx 0x%lx 0x%lx returned %ld\n", call, bad[i], bad[k],
                           bad[(i + k) % BAD], result);
                }
            }
        }
    }
    printf("calls %u holes %u\n", calls, holes);
    printf("thread at the kernel: %ld\n",
           sss_call(SSS_THREAD_CREATE, 0xffffffff80100000, SSS_STACK_TOP, 0, 0, 0, 0));
    printf("write and execute: %ld\n",
           sss_call(SSS_MEMORY_MAP, 0, 4096, SSS_WRITE | SSS_EXECUTE, 0, 0, 0));
    printf("text to writable: %ld\n", sss_call(SSS_MEMORY_PROTECT, 0x400000, 4096, 7, 0, 0, 0));
    printf("unmap info: %ld\n", sss_call(SSS_MEMORY_UNMAP, 0x3ff000, 4096, 0, 0, 0, 0));
    printf("unknown call: %ld %ld\n", sss_call(SSS_CALLS, 0, 0, 0, 0, 0, 0),
           sss_call(-1, 0, 0, 0, 0, 0, 0));
    return 0;
}
