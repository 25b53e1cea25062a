/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The node's clock and its timers. */
#include <stdbool.h>
#include <stdint.h>

struct timer {
    struct timer *next;
    uint64_t due_ns;
    void (*expired)(struct timer *timer); /* in the timer interrupt */
    void *context;
    bool armed;
};

void timer_init(void); /* the TSC is the clock until clock_select */
/* The job's choice: the TSC in virtual time, otherwise the HPET. */
void clock_select(bool tsc);
uint64_t now_ns(void);
void timer_set(struct timer *timer, uint64_t due_ns);
void timer_cancel(struct timer *timer);
