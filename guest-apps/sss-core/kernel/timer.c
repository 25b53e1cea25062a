/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There is no periodic tick: the local APIC's timer runs only towards the next deadline. Under QEMU
 * it counts nanoseconds of virtual time (divided by 1), and so does the TSC of a machine in
 * Sundial's virtual time.
 */
#include "timer.h"

#include <stddef.h>

#include "cpu.h"
#include "interrupt.h"
#include "memory.h"
#include "paging.h"
#include "panic.h"

#define HPET_ADDRESS 0xfed00000ull
/* words */
enum { HPET_PERIOD = 0x04 / 4, HPET_ENABLE = 0x10 / 4, HPET_LOW = 0xf0 / 4, HPET_HIGH = 0xf4 / 4 };
enum {
    FS_PER_NS = 1000000,
    LONGEST_NS = 0x7fffffff /* of one start of the hardware */
};

static volatile uint32_t *hpet; /* NULL: the TSC is the clock */
static uint32_t hpet_tick_ns;
static struct timer *timers;              /* by deadline, then by order of timer_set */
static uint64_t started_for = UINT64_MAX; /* when the hardware will interrupt */

static uint64_t hpet_ns(void)
{
    uint32_t high, low;

    do {
        high = hpet[HPET_HIGH];
        low = hpet[HPET_LOW];
    } while (hpet[HPET_HIGH] != high);
    return ((uint64_t)high << 32 | low) * hpet_tick_ns;
}

uint64_t now_ns(void)
{
    return hpet == NULL ? rdtsc() : hpet_ns();
}

static void start_hardware(uint64_t due_ns)
{
    uint64_t now = now_ns();
    uint64_t wait = due_ns <= now ? 1 : due_ns - now;

    if (wait > LONGEST_NS)
        wait = LONGEST_NS;
    started_for = now + wait;
    lapic_timer_start((uint32_t)wait);
}

static void unlink_timer(struct timer *timer)
{
    struct timer **place = &timers;

    while (*place != timer)
        place = &(*place)->next;
    *place = timer->next;
    timer->armed = false;
}

void timer_set(struct timer *timer, uint64_t due_ns)
{
    struct timer **place = &timers;

    if (timer->armed)
        unlink_timer(timer);
    timer->due_ns = due_ns;
    timer->armed = true;
    while (*place != NULL && (*place)->due_ns <= due_ns)
        place = &(*place)->next;
    timer->next = *place;
    *place = timer;
    if (due_ns < started_for)
        start_hardware(due_ns);
}

/*
 * The hardware keeps running and interrupts once for nothing: cheaper than reprogramming it for
 * each wait that ends early. It is not restarted when no timer is left.
 */
void timer_cancel(struct timer *timer)
{
    if (timer->armed)
        unlink_timer(timer);
}

static void expire(void *argument)
{
    uint64_t now = now_ns();

    (void)argument;
    started_for = UINT64_MAX;
    while (timers != NULL && timers->due_ns <= now) {
        struct timer *timer = timers;

        unlink_timer(timer);
        timer->expired(timer);
    }
    if (timers != NULL && timers->due_ns < started_for)
        start_hardware(timers->due_ns);
}

void timer_init(void)
{
    lapic_timer_init(expire);
}

/* The HPET counts QEMU's virtual clock, whatever the host's TSC does (IA-PC HPET
 * specification 1.0a, 2.3). */
void clock_select(bool tsc)
{
    uint32_t period_fs;

    if (tsc)
        return;
    hpet = map_device(HPET_ADDRESS, PAGE);
    period_fs = hpet[HPET_PERIOD];
    if (period_fs == 0 || period_fs == UINT32_MAX || period_fs % FS_PER_NS != 0)
        panic("no HPET that counts whole nanoseconds (period %u fs)", period_fs);
    hpet_tick_ns = period_fs / FS_PER_NS;
    hpet[HPET_ENABLE] |= 1;
    started_for = UINT64_MAX;
    if (timers != NULL)
        start_hardware(timers->due_ns);
}
