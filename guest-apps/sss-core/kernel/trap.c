/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exceptions and interrupts: a fault at user level ends that task, a fault in the kernel ends the
 * machine.
 */
#include "trap.h"

#include <stddef.h>

#include "cpu.h"
#include "fpu.h"
#include "interrupt.h"
#include "kformat.h"
#include "panic.h"
#include "runqueue.h"
#include "schedule.h"
#include "task.h"

enum { /* bits of a page fault's error code (SDM 3A, 4.7) */
       FAULT_MAPPED = 1,
       FAULT_WRITE = 2,
       FAULT_FETCH = 16,
};

struct trap_frame *trap_from_user(struct trap_frame *frame);
void trap_from_kernel(struct trap_frame *frame);

static const char *const names[] = {
    "divide error",
    "debug trap",
    "non-maskable interrupt",
    "breakpoint",
    "overflow",
    "bound exceeded",
    "invalid instruction",
    "no FPU",
    "double fault",
    "coprocessor overrun",
    "invalid TSS",
    "segment not present",
    "stack fault",
    "general protection",
    "page fault",
    "reserved exception",
    "FPU error",
    "alignment check",
    "machine check",
    "SIMD error",
};

static const char *trap_name(uint64_t vector)
{
    return vector < sizeof(names) / sizeof(names[0]) ? names[vector] : "unexpected exception";
}

/* "page fault at 0x1234 (write, not mapped)", or the name alone. */
static void describe(const struct trap_frame *frame, char *text, size_t size)
{
    const char *access = frame->error & FAULT_FETCH   ? "execute"
                         : frame->error & FAULT_WRITE ? "write"
                                                      : "read";

    if (frame->vector == VECTOR_PAGE_FAULT)
        ksnprintf(text, size, "page fault at 0x%lx (%s, %s)", read_cr2(), access,
                  frame->error & FAULT_MAPPED ? "not permitted" : "not mapped");
    else
        ksnprintf(text, size, "%s, error code 0x%lx", trap_name(frame->vector), frame->error);
}

static bool (*page_fault_hook)(uint64_t address);

void trap_on_page_fault(bool (*hook)(uint64_t address))
{
    page_fault_hook = hook;
}

static void user_fault(const struct trap_frame *frame)
{
    char reason[96];

    if (frame->vector == VECTOR_PAGE_FAULT && page_fault_hook != NULL &&
        page_fault_hook(read_cr2()))
        return;
    describe(frame, reason, sizeof(reason));
    task_fault(task_current(), frame, reason);
}

struct trap_frame *trap_from_user(struct trap_frame *frame)
{
    if (frame->vector >= VECTOR_TIMER)
        interrupt_handle(frame->vector);
    else if (frame->vector == VECTOR_DOUBLE_FAULT || frame->vector == VECTOR_NMI ||
             frame->vector == VECTOR_MACHINE_CHECK)
        panic_at(frame, "%s at user level", trap_name(frame->vector));
    else if (frame->vector != VECTOR_NO_FPU || !fpu_fault())
        user_fault(frame);
    return schedule_needed ? schedule_next() : frame;
}

/* An exception; interrupts do not come here. */
void trap_from_kernel(struct trap_frame *frame)
{
    char what[96];

    /* A task that loads ss under a single-step trap gets it here, one instruction into the system
     * call (CVE-2018-8897). */
    if (frame->vector == VECTOR_DEBUG)
        return;
    describe(frame, what, sizeof(what));
    panic_at(frame, "%s in the kernel", what);
}
