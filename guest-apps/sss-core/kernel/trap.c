/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exceptions, interrupts and the way in for system calls. What goes wrong at user level ends that
 * task; what goes wrong in the kernel ends the machine. Numbers of sections are those of the Intel
 * manual, volume 3, unless they name another one.
 */
#include "trap.h"

#include <string.h>

#include "cpu.h"
#include "space.h"
#include "task.h"

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

enum {
    INTERRUPT_GATE = 0x8e,
    TSS_SELECTOR = 0x30,
    TRAP_STACK_BYTES = 4096,
    FAULT_WRITE = 2, /* bits of a page fault's error code, 4.7 */
    FAULT_FETCH = 16,
    FAULT_MAPPED = 1,
};
enum { /* model-specific registers */
       MSR_APIC_BASE = 0x1b,
       MSR_STAR = 0xc0000081,
       MSR_LSTAR = 0xc0000082,
       MSR_FMASK = 0xc0000084,
};
enum { /* local APIC, 10.4.1; offsets in words */
       LAPIC_TASK_PRIORITY = 0x80 / 4,
       LAPIC_END = 0xb0 / 4,
       LAPIC_SPURIOUS = 0xf0 / 4,
       LAPIC_TIMER = 0x320 / 4,
       LAPIC_TIMER_COUNT = 0x380 / 4,
       LAPIC_TIMER_DIVIDE = 0x3e0 / 4,
       LAPIC_ENABLED = 0x100,
       LAPIC_DIVIDE_BY_1 = 0xb,
};
#define LAPIC_ADDRESS  0xfee00000ull
#define IOAPIC_ADDRESS 0xfec00000ull

struct trap_frame *frame_end;

static struct gate gates[VECTORS];
static interrupt_handler handlers[VECTORS];
static int next_vector = VECTOR_FIRST;
static volatile uint32_t *lapic, *ioapic;
/* Stacks of their own for what may happen on a stack that is not good. */
static uint8_t trap_stacks[3][TRAP_STACK_BYTES] __attribute__((aligned(16)));

extern uint64_t kernel_gdt[8];
void syscall_entry(void);
struct trap_frame *trap_from_user(struct trap_frame *frame);
bool trap_from_kernel(struct trap_frame *frame);

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
    return vector < sizeof names / sizeof names[0] ? names[vector] : "unexpected exception";
}

void trap_frame_at(struct trap_frame *frame)
{
    frame_end = frame + 1;
    tss.rsp[0] = (uint64_t)frame_end;
}

/* ---- interrupts ---- */

int interrupt_allocate(interrupt_handler handler)
{
    if (next_vector == VECTOR_SPURIOUS)
        return -SSS_EAGAIN;
    handlers[next_vector] = handler;
    return next_vector++;
}

void interrupt_route(unsigned gsi, int vector)
{
    /* ICH9 datasheet 13.5: index and data; two words for each input. Edge, active high, to APIC 0.
     */
    ioapic[0] = 0x10 + 2 * gsi + 1;
    ioapic[4] = 0;
    ioapic[0] = 0x10 + 2 * gsi;
    ioapic[4] = (uint32_t)vector;
}

void lapic_timer_start(uint32_t ticks)
{
    lapic[LAPIC_TIMER_COUNT] = ticks;
}

static void interrupt(uint64_t vector)
{
    if (vector == VECTOR_SPURIOUS)
        return; /* 10.9: must not be ended */
    if (handlers[vector] == NULL)
        panic("interrupt %u has no handler", (unsigned)vector);
    handlers[vector]();
    lapic[LAPIC_END] = 0;
}

/* ---- exceptions ---- */

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

/* The task ends alone; its end is told on the console and in the records, so that a run shows it.
 */
static void user_fault(const struct trap_frame *frame)
{
    struct task *task = task_current();
    char what[96], line[256];
    int length;

    describe(frame, what, sizeof what);
    kprintf("task %s (%u) ended: %s, rip 0x%lx rsp 0x%lx\n", task_name(task), task_id(task), what,
            frame->rip, frame->rsp);
    length = ksnprintf(
        line, sizeof line,
        "{\"type\":\"error\",\"app\":\"%s\",\"message\":\"task %u ended: %s, rip 0x%lx\"}\n",
        task_name(task), task_id(task), what, frame->rip);
    records_write(line, (size_t)length);
    task_kill(task, -(int)frame->vector);
}

struct trap_frame *trap_from_user(struct trap_frame *frame)
{
    if (frame->vector >= VECTOR_TIMER)
        interrupt(frame->vector);
    else if (frame->vector == VECTOR_DOUBLE_FAULT || frame->vector == VECTOR_NMI ||
             frame->vector == VECTOR_MACHINE_CHECK)
        panic_at(frame, "%s at user level", trap_name(frame->vector));
    else if (frame->vector != VECTOR_NO_FPU || !fpu_fault())
        user_fault(frame);
    return schedule_needed ? schedule_next() : frame;
}

bool trap_from_kernel(struct trap_frame *frame)
{
    char what[96];

    if (frame->vector >= VECTOR_TIMER) {
        interrupt(frame->vector);
        return schedule_halt_over();
    }
    /* A task that loads ss under a single-step trap gets it here, one instruction into the system
     * call (CVE-2018-8897). */
    if (frame->vector == VECTOR_DEBUG)
        return false;
    describe(frame, what, sizeof what);
    panic_at(frame, "%s in the kernel", what);
}

/* ---- at start ---- */

static void set_gates(void)
{
    struct {
        uint16_t limit;
        uint64_t base;
    } __attribute__((packed)) pointer = {sizeof gates - 1, (uint64_t)gates};

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
    } __attribute__((packed)) pointer = {sizeof kernel_gdt - 1, (uint64_t)kernel_gdt};

    /* 7.2.3: present, available 64-bit TSS */
    kernel_gdt[6] = 0x0000890000000000ull | (sizeof tss - 1) | (base & 0xffffff) << 16 |
                    (base >> 24 & 0xff) << 56;
    kernel_gdt[7] = base >> 32;
    __asm__ volatile("lgdt %0" : : "m"(pointer) : "memory");
    __asm__ volatile("ltr %w0" : : "r"(TSS_SELECTOR) : "memory");
}

/* The kernel never executes or follows what belongs to a task: let the CPU enforce it where it can.
 */
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

static void mask_interrupts(void)
{
    outb(0x21, 0xff); /* both 8259s */
    outb(0xa1, 0xff);
    lapic = map_device(LAPIC_ADDRESS, PAGE);
    ioapic = map_device(IOAPIC_ADDRESS, PAGE);
    wrmsr(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) | 1 << 11);
    lapic[LAPIC_SPURIOUS] = LAPIC_ENABLED | VECTOR_SPURIOUS;
    lapic[LAPIC_TASK_PRIORITY] = 0;
    lapic[LAPIC_TIMER_DIVIDE] = LAPIC_DIVIDE_BY_1;
    lapic[LAPIC_TIMER] = VECTOR_TIMER;
    handlers[VECTOR_TIMER] = timer_interrupt;
}

void trap_init(void)
{
    set_gates();
    load_tss();
    protect_kernel();
    mask_interrupts();
    wrmsr(MSR_STAR, (uint64_t)0x1b << 48 | (uint64_t)KERNEL_CODE << 32);
    wrmsr(MSR_LSTAR, (uint64_t)syscall_entry);
    wrmsr(MSR_FMASK, 0x44700); /* AC, NT, DF, IF, TF */
}
