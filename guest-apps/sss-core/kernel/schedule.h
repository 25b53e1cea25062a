/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Changing threads. */
#include <stdbool.h>

struct trap_frame;

_Noreturn void schedule_run(void); /* entry.S: runs threads forever */
/* The frame to continue with, after halting while no thread can run. */
struct trap_frame *schedule_next(void);
/* In an interrupt: it came while the CPU halted because no thread could run, and now one can. */
bool schedule_halt_over(void);
/* `idle` is called before the CPU halts. */
void schedule_on_idle(void (*idle)(void));
