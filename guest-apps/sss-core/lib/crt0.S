/* SPDX-License-Identifier: Apache-2.0 */
/* rdi = argc, rsi = argv, rsp 16-byte aligned. A return from main ends the task. */
    .text
    .globl _start
_start:
    xorl %ebp, %ebp
    call main
    movl %eax, %edi
    call exit
    ud2

    .section .note.GNU-stack, "", @progbits
