/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The ways into the kernel. */
#include "trap.h"

void gates_init(void); /* exceptions, interrupts and system calls */
/* Where the next entry from user level saves the registers. */
void trap_frame_at(struct trap_frame *frame);
/* Its end, which entry.S reads. */
extern struct trap_frame *frame_end;
