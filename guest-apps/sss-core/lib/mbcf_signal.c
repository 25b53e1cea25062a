/* SPDX-License-Identifier: Apache-2.0 */

/* The user's half of memory-based signals: the kernel enters the trampoline below, which lets
 * handlers drain the queue. */
#include "sss/mbcf.h"
#include "sss/system.h"

/* Of this task; set before the kernel may signal. */
static struct mb_fifo *signal_queue;

/* Called by the trampoline, on the handlers' stack; the compiler does not look into assembly. */
__attribute__((used)) void mb_signal_deliver(void);

/*
 * Several signals may be queued, or none any more. A handler that leaves its record in the queue
 * gets it again with the next signal.
 */
void mb_signal_deliver(void)
{
    struct mb_record *record;

    while ((record = mb_fifo_peek(signal_queue)) != NULL) {
        uint32_t tail = signal_queue->tail;
        const struct mb_signal_head *head = mb_record_data(record);

        ((mb_handler)(uintptr_t)head->handler)(record);
        if (signal_queue->tail == tail)
            return;
    }
}

/* An enumerator has no text, which the assembler wants. */
#define SIGNAL_RETURN "37"
_Static_assert(SSS_MB_SIGNAL_RETURN == 37, "the trampoline's number");

/* Entered with whatever stack alignment; never returns but by the system call. */
__asm__(".pushsection .text\n"
        ".globl mb_signal_trampoline\n"
        "mb_signal_trampoline:\n"
        "    andq $-16, %rsp\n"
        "    call mb_signal_deliver\n"
        "    movl $" SIGNAL_RETURN ", %eax\n"
        "    syscall\n"
        "    ud2\n"
        ".popsection\n");
extern char mb_signal_trampoline[];

int mb_signal(struct mb_signal_setup *setup)
{
    struct mb_fifo *before = signal_queue;
    int error;

    setup->trampoline = mb_signal_trampoline;
    signal_queue = setup->queue;
    error = (int)sss_call(SSS_MB_SIGNAL, (uintptr_t)setup, 0, 0, 0, 0, 0);
    if (error != 0)
        signal_queue = before;
    return error;
}
