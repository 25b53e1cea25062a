// SPDX-License-Identifier: GPL-2.0-or-later
//
// Stamps of the guest's functions in exact virtual time, which the guest cannot see. README.md,
// "Traces", says why they are exact and what the file holds.
#pragma once

#include <stdint.h>

struct qemu_plugin_tb;

// Opens the trace at FILE of the functions listed in POINTS. Returns NULL or what is wrong. Call it
// once QEMU is loaded, before it translates.
const char *trace_open(const char *file, const char *points);
// Stamps what is to be stamped in a block that is being translated.
void trace_block(struct qemu_plugin_tb *tb);
// The CPU executes HLT, the last instruction of its block; before and after QEMU has accounted it.
void trace_before_halt(void);
void trace_after_halt(void);
// Writes what is left. Nothing is stamped afterwards.
void trace_close(void);
