/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Interrupt vectors, the local APIC and the I/O APIC. */
#include <stdint.h>

#include "trap.h"

/* Runs with interrupts off, and need not end the interrupt. */
typedef void (*interrupt_function)(void *argument);

void interrupt_init(void); /* everything masked */
/* A free vector for a message-signalled interrupt, or -SSS_EAGAIN. */
int interrupt_allocate(interrupt_function function, void *argument);
/* An edge-triggered ISA interrupt, through the I/O APIC. */
void interrupt_route(unsigned gsi, int vector);
/* Handles one, and ends it. */
void interrupt_handle(uint64_t vector);

/* The local APIC's timer, at vector VECTOR_TIMER. */
void lapic_timer_init(interrupt_function function);
void lapic_timer_start(uint32_t ticks); /* 1 ns each; 0 stops it */
