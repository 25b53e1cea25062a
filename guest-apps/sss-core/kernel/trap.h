/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The registers of a thread that is not running, in the order in which entry.S pushes them. The
 * arguments of a system call are in sequence: &frame->rdi is the argument vector, which the call's
 * number, frame->rax, follows.
 */
#include <stdbool.h>
#include <stdint.h>

struct trap_frame {
    uint64_t r15, r14, r13, r12, rbx, rbp;
    uint64_t rdi, rsi, rdx, r10, r8, r9;
    uint64_t rax, rcx, r11;
    uint64_t vector, error;
    uint64_t rip, cs, rflags, rsp, ss;
};
_Static_assert(sizeof(struct trap_frame) == 176, "entry.S and 16-byte alignment");

enum {
    KERNEL_CODE = 0x08,
    USER_DATA = 0x23,
    USER_CODE = 0x2b,
    RFLAGS_START = 0x202, /* interrupts on */
    VECTOR_DEBUG = 1,
    VECTOR_NMI = 2,
    VECTOR_NO_FPU = 7,
    VECTOR_DOUBLE_FAULT = 8,
    VECTOR_PAGE_FAULT = 14,
    VECTOR_MACHINE_CHECK = 18,
    VECTOR_TIMER = 32,
    VECTOR_FIRST = 33, /* of interrupt_allocate */
    VECTOR_SPURIOUS = 63,
    VECTORS = 64,
};

/* `hook` is asked first where the current thread has caused a page fault: true if that is not a
 * fault of the task's, and it tries again when it runs. */
void trap_on_page_fault(bool (*hook)(uint64_t address));
