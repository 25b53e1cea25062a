// SPDX-License-Identifier: GPL-2.0-or-later
//
// A look at each moment between two translation blocks that a caller asks for, without leaving
// QEMU's inner loop. Why this is exact is in README.md.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Called on the CPU's thread without QEMU's lock, before a block is entered; clocks may be read.
// `full`: what the last answer left is too little for the next block. Returns the number of
// instructions that may be executed before the next look, at least 1.
typedef uint64_t blocks_look(bool full);

// From here `look` is asked, once it is known where this QEMU keeps its budget of instructions;
// never where it has no door for that. Call it while the CPU does not run.
void blocks_watch(blocks_look *look);
// Whether looks take place. It turns true once, and never false.
bool blocks_watched(void);
// Once looks take place: how many instructions were executed that QEMU has not accounted yet. A
// block counts as a whole from its beginning.
int64_t blocks_unaccounted(void);
// Inside a look: gives the CPU the budget that ends at the next timer of the virtual clock, as QEMU
// itself would on entering its loop again. For when a timer was moved.
void blocks_renew_budget(uint64_t instruction_ns);
// Inside a block whose instructions are all executed, as in a device's callback: the chain of
// blocks is left after so many more, unless it is left sooner anyway.
void blocks_shorten(uint64_t instructions);
