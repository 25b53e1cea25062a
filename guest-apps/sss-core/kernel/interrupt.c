/* SPDX-License-Identifier: Apache-2.0 */
/* Section numbers are those of the Intel manual, volume 3A, unless they name another one. */
#include "interrupt.h"

#include <stddef.h>

#include "cpu.h"
#include "memory.h"
#include "paging.h"
#include "panic.h"
#include "sss/abi.h"

enum { MSR_APIC_BASE = 0x1b };
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

static struct {
    interrupt_function function;
    void *argument;
} handlers[VECTORS];
static int next_vector = VECTOR_FIRST;
static volatile uint32_t *lapic, *ioapic;

int interrupt_allocate(interrupt_function function, void *argument)
{
    if (next_vector == VECTOR_SPURIOUS)
        return -SSS_EAGAIN;
    handlers[next_vector].function = function;
    handlers[next_vector].argument = argument;
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

static __attribute__((noinline)) void no_handler(uint64_t vector)
{
    if (vector != VECTOR_SPURIOUS) /* 10.9: that one must not be ended */
        panic("interrupt %u has no handler", (unsigned)vector);
}

/* `inline` raises the compiler's limit: it is part of trap.c's handlers in the linked kernel. */
inline void interrupt_handle(uint64_t vector)
{
    if (handlers[vector].function == NULL) {
        no_handler(vector);
        return;
    }
    handlers[vector].function(handlers[vector].argument);
    lapic[LAPIC_END] = 0;
}

void lapic_timer_init(interrupt_function function)
{
    handlers[VECTOR_TIMER].function = function;
    lapic[LAPIC_TIMER_DIVIDE] = LAPIC_DIVIDE_BY_1;
    lapic[LAPIC_TIMER] = VECTOR_TIMER;
}

void lapic_timer_start(uint32_t ticks)
{
    lapic[LAPIC_TIMER_COUNT] = ticks;
}

void interrupt_init(void)
{
    outb(0x21, 0xff); /* both 8259s */
    outb(0xa1, 0xff);
    lapic = map_device(LAPIC_ADDRESS, PAGE);
    ioapic = map_device(IOAPIC_ADDRESS, PAGE);
    wrmsr(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) | 1 << 11);
    lapic[LAPIC_SPURIOUS] = LAPIC_ENABLED | VECTOR_SPURIOUS;
    lapic[LAPIC_TASK_PRIORITY] = 0;
}
