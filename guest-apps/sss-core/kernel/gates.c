/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the CPU looks up when it enters the kernel: the IDT, the TSS and the registers of the
 * SYSCALL instruction. Section numbers are those of the Intel manual, volume 3A.
 */
#include "gates.h"

#include "cpu.h"

struct gate { /* 6.14.1 */
    uint16_t offset_low, selector;
    uint8_t stack, type;
    uint16_t offset_middle;
    uint32_t offset_high, reserved;
} __attribute__((packed));
_Static_assert(sizeof(struct gate) == 16, "layout");

static struct tss { /* 7.7 */
    uint32_t reserved0;
    uint64_t rsp[3];
    uint64_t reserved1;
    uint64_t stack[7];
    uint64_t reserved2;
    uint16_t reserved3, io_map;
} __attribute__((packed)) tss = {.io_map = sizeof(struct tss)};
_Static_assert(sizeof(struct tss) == 104, "layout");

enum { INTERRUPT_GATE = 0x8e, TSS_SELECTOR = 0x30, TRAP_STACK_BYTES = 4096 };
enum { /* model-specific registers */
       MSR_STAR = 0xc0000081,
       MSR_LSTAR = 0xc0000082,
       MSR_FMASK = 0xc0000084,
};

struct trap_frame *frame_end;

static struct gate gates[VECTORS];
/* Separate stacks for what may happen while the kernel's is unusable. */
static uint8_t trap_stacks[3][TRAP_STACK_BYTES] __attribute__((aligned(16)));

extern uint64_t kernel_gdt[8];                /* boot.S */
extern const uint8_t trap_stubs[VECTORS][16]; /* entry.S */
void syscall_entry(void);                     /* entry.S */

void trap_frame_at(struct trap_frame *frame)
{
    frame_end = frame + 1;
    tss.rsp[0] = (uint64_t)frame_end;
}

static void set_gates(void)
{
    struct {
        uint16_t limit;
        uint64_t base;
    } __attribute__((packed)) pointer = {sizeof(gates) - 1, (uint64_t)gates};

    for (unsigned i = 0; i < VECTORS; i++) {
        uint64_t offset = (uint64_t)trap_stubs[i];

        gates[i] = (struct gate){.offset_low = (uint16_t)offset,
                                 .selector = KERNEL_CODE,
                                 .type = INTERRUPT_GATE,
                                 .offset_middle = (uint16_t)(offset >> 16),
                                 .offset_high = (uint32_t)(offset >> 32)};
    }
    gates[VECTOR_DEBUG].stack = 1;
    gates[VECTOR_NMI].stack = 2;
    gates[VECTOR_MACHINE_CHECK].stack = 2;
    gates[VECTOR_DOUBLE_FAULT].stack = 3;
    for (unsigned i = 0; i < 3; i++)
        tss.stack[i] = (uint64_t)(trap_stacks[i] + TRAP_STACK_BYTES);
    __asm__ volatile("lidt %0" : : "m"(pointer) : "memory");
}

static void load_tss(void)
{
    uint64_t base = (uint64_t)&tss;
    struct {
        uint16_t limit;
        uint64_t base;
    } __attribute__((packed)) pointer = {sizeof(kernel_gdt) - 1, (uint64_t)kernel_gdt};

    /* 7.2.3: present, available 64-bit TSS */
    kernel_gdt[6] = 0x0000890000000000ull | (sizeof(tss) - 1) | (base & 0xffffff) << 16 |
                    (base >> 24 & 0xff) << 56;
    kernel_gdt[7] = base >> 32;
    __asm__ volatile("lgdt %0" : : "m"(pointer) : "memory");
    __asm__ volatile("ltr %w0" : : "r"(TSS_SELECTOR) : "memory");
}

/* The kernel never executes or dereferences memory of a task: the CPU enforces it where it can. */
static void protect_kernel(void)
{
    enum {
        PGE = 1 << 7,
        OSFXSR = 1 << 9,
        OSXMMEXCPT = 1 << 10,
        UMIP = 1 << 11,
        SMEP = 1 << 20,
        SMAP = 1 << 21
    };
    uint32_t features[4];
    uint64_t cr4 = read_cr4() | PGE | OSFXSR | OSXMMEXCPT;

    cpuid(0, 0, features);
    if (features[0] >= 7) {
        cpuid(7, 0, features);
        cr4 |= features[1] & 1 << 7 ? SMEP : 0;
        cr4 |= features[1] & 1 << 20 ? SMAP : 0;
        cr4 |= features[2] & 1 << 2 ? UMIP : 0;
    }
    write_cr4(cr4);
}

void gates_init(void)
{
    set_gates();
    load_tss();
    protect_kernel();
    wrmsr(MSR_STAR, (uint64_t)0x1b << 48 | (uint64_t)KERNEL_CODE << 32);
    wrmsr(MSR_LSTAR, (uint64_t)syscall_entry);
    wrmsr(MSR_FMASK, 0x44700); /* AC, NT, DF, IF, TF */
}
