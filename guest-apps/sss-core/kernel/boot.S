/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the PVH entry (32-bit protected mode, paging off, ebx = hvm_start_info) to C in the highest 2 GiB. The page tables made
 * here map the first GiB three times and without protection; memory_init replaces them.
 */
#define KERNEL_BASE 0xffffffff80000000

    /* ELF note 18 (XEN_ELFNOTE_PHYS32_ENTRY); QEMU reads 8 bytes of an ELF64's. */
    .section .note.Xen, "a", @note
    .align 4
    .long 4, 8, 18
    .asciz "Xen"
    .quad pvh_entry - KERNEL_BASE

    .section .boot, "ax"
    .code32
    .globl pvh_entry
pvh_entry:
    cld
    movl %ebx, %edi
    /* The first GiB at 0 (where this code runs), at DIRECT_MAP and at KERNEL_BASE. */
    movl $(boot_pdpt - KERNEL_BASE + 3), %eax
    movl %eax, kernel_pml4 - KERNEL_BASE
    movl %eax, kernel_pml4 - KERNEL_BASE + 256 * 8
    movl %eax, kernel_pml4 - KERNEL_BASE + 511 * 8
    movl $(boot_pd - KERNEL_BASE + 3), %eax
    movl %eax, boot_pdpt - KERNEL_BASE
    movl %eax, boot_pdpt - KERNEL_BASE + 510 * 8
    movl $(boot_pd - KERNEL_BASE), %ecx
    movl $0x83, %eax                /* present, writable, 2 MiB */
    movl $512, %edx
1:  movl %eax, (%ecx)
    addl $8, %ecx
    addl $0x200000, %eax
    decl %edx
    jnz 1b

    movl %cr4, %eax
    orl $0x20, %eax                 /* PAE */
    movl %eax, %cr4
    movl $(kernel_pml4 - KERNEL_BASE), %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx          /* EFER: SCE, LME, NXE */
    rdmsr
    orl $0x901, %eax
    wrmsr
    movl %cr0, %eax
    andl $~4, %eax                  /* no EM */
    orl $0x8001002a, %eax           /* PG, WP, NE, TS (fpu.c: no context has the FPU), MP */
    movl %eax, %cr0
    lgdt boot_gdt_pointer - KERNEL_BASE
    ljmp $0x08, $(1f - KERNEL_BASE)
    .code64
1:  movabs $2f, %rax
    jmp *%rax
2:  xorl %eax, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %fs
    movl %eax, %gs
    movl %eax, %ss
    movq $kernel_stack_top, %rsp
    movl %edi, %edi                 /* the upper half is undefined */
    xorl %ebp, %ebp
    call kernel_main
    ud2

    .align 8
boot_gdt_pointer:
    .word 64 - 1
    .long kernel_gdt - KERNEL_BASE

    /* The order is what syscall and sysret ask for. No 32-bit code segment: a task cannot leave 64-bit mode. */
    .data
    .align 16
    .globl kernel_gdt
kernel_gdt:
    .quad 0
    .quad 0x00af9b000000ffff        /* 08 kernel code */
    .quad 0x00cf93000000ffff        /* 10 kernel data */
    .quad 0                         /* 18 */
    .quad 0x00cff3000000ffff        /* 20 user data */
    .quad 0x00affb000000ffff        /* 28 user code */
    .quad 0, 0                      /* 30 TSS, see trap.c */

    .bss
    .align 4096
    .globl kernel_pml4
kernel_pml4:
    .skip 4096
boot_pdpt:
    .skip 4096
boot_pd:
    .skip 4096
    .globl kernel_stack_guard, kernel_stack_top
kernel_stack_guard:                 /* memory_init leaves this page out */
    .skip 4096
    .skip 16384
kernel_stack_top:

    .section .note.GNU-stack, "", @progbits
