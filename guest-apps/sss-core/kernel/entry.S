/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways between tasks and kernel. There is one kernel stack, which is empty whenever a thread runs: a thread's registers are saved
 * in its context (struct trap_frame, which ends at *frame_end), so changing threads is loading another context.
 */
    .set TRAP_ARGUMENTS, 48         /* offsets in struct trap_frame */
    .set TRAP_RDI, 48
    .set TRAP_RSI, 56
    .set TRAP_RDX, 64
    .set TRAP_R10, 72
    .set TRAP_R8, 80
    .set TRAP_R9, 88
    .set TRAP_RIP, 136
    .set TRAP_RFLAGS, 152
    .set TRAP_RSP, 160
    .set TRAP_BYTES, 176
    .set CALLS, 71                  /* SSS_CALLS; syscall.c asserts it */

    .bss
    .align 8
user_rsp:
    .skip 8

    .text
    /*
     * rax = number, arguments in rdi rsi rdx r10 r8 r9. Where no other thread is to run, the answer goes straight back: only
     * what a C function may have changed is loaded again. rcx cannot be non-canonical: the last page below the hole is never
     * mapped (USER_END).
     */
    .globl syscall_entry
    .align 16
syscall_entry:
    movq %rsp, user_rsp(%rip)
    movq frame_end(%rip), %rsp
    subq $8, %rsp                   /* ss is there already */
    pushq user_rsp(%rip)
    pushq %r11                      /* rflags */
    pushq $0x2b
    pushq %rcx                      /* rip */
    subq $32, %rsp                  /* error, vector, r11, rcx */
    pushq %rax
    pushq %r9
    pushq %r8
    pushq %r10
    pushq %rdx
    pushq %rsi
    pushq %rdi
    movq %rsp, %rdi
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq $kernel_stack_top, %rsp
    cmpq $CALLS, %rax
    jae 2f
    call *syscall_table(, %rax, 8)
1:  cmpb $0, schedule_needed(%rip)
    jne 3f
    movq frame_end(%rip), %rcx
    leaq -TRAP_BYTES(%rcx), %rcx
    movq TRAP_RDI(%rcx), %rdi
    movq TRAP_RSI(%rcx), %rsi
    movq TRAP_RDX(%rcx), %rdx
    movq TRAP_R10(%rcx), %r10
    movq TRAP_R8(%rcx), %r8
    movq TRAP_R9(%rcx), %r9
    movq TRAP_RFLAGS(%rcx), %r11
    movq TRAP_RSP(%rcx), %rsp
    movq TRAP_RIP(%rcx), %rcx
    sysretq
2:  movq $-38, %rax                 /* SSS_ENOSYS */
    jmp 1b
3:  movq %rax, %rdi
    call syscall_finish             /* -> the frame to go on with */
    jmp resume

    /* One stub a vector, 16 bytes apart. Some exceptions push an error code, for the others we do. */
    .macro STUB vector
    .align 16
    .if !(\vector == 8 || (\vector >= 10 && \vector <= 14) || \vector == 17 || \vector == 21)
    pushq $0
    .endif
    pushq $\vector
    jmp trap_entry
    .endm

    .align 16
    .globl trap_stubs
trap_stubs:
    .set vector, 0
    .rept 64
    STUB vector
    .set vector, vector + 1
    .endr

trap_entry:
    testb $3, 24(%rsp)
    jnz 2f
    cmpq $32, (%rsp)
    jb 2f
    /* In the kernel interrupts happen only where it halts (cpu.h), which wants no register back but those that C keeps. */
    popq %rdi                       /* the vector; rsp is 16-byte aligned now */
    call interrupt_handle
    addq $8, %rsp
    iretq
2:  pushq %r11
    pushq %rcx
    pushq %rax
    pushq %r9
    pushq %r8
    pushq %r10
    pushq %rdx
    pushq %rsi
    pushq %rdi
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    cld
    movq %rsp, %rdi
    testb $3, TRAP_RIP + 8(%rsp)
    jz 1f
    movq $kernel_stack_top, %rsp
    call trap_from_user             /* -> the frame to go on with */
    jmp resume
1:  call trap_from_kernel           /* rsp is 16-byte aligned */
    movq %rsp, %rax

    .globl resume
resume:
    movq %rax, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    popq %rdi
    popq %rsi
    popq %rdx
    popq %r10
    popq %r8
    popq %r9
    popq %rax
    popq %rcx
    popq %r11
    addq $16, %rsp
    iretq

    /* The boot stack is the kernel stack; from here on nothing of it is used. */
    .globl schedule_run
schedule_run:
    movq $kernel_stack_top, %rsp
    call schedule_next
    jmp resume

    .section .note.GNU-stack, "", @progbits
