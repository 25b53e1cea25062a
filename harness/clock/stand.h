// SPDX-License-Identifier: GPL-2.0-or-later
//
// The machine stands at the instant that the run has for it (stop_ns), between two instructions,
// until that has moved. Meanwhile QEMU's monitor and a debugger answer.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// The instant since zero at which it has yet to stand. Under the lock.
uint64_t stand_next_ns(void);
// It stands when the gate that is there has returned. `arm`: arms the gate for an instant of the
// virtual clock, which shows `clock_ns`.
void stand_soon(void *cpu, void (*arm)(int64_t at_clock_ns, int64_t clock_ns));
// The same where QEMU had stopped it meanwhile, for a debugger. False: it does not stand.
bool stand_again(void);
