/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Changing threads. */
struct trap_frame;

_Noreturn void schedule_run(void); /* entry.S: runs threads forever */
/* The frame to continue with, after halting while no thread can run. */
struct trap_frame *schedule_next(void);
