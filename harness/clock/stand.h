// SPDX-License-Identifier: GPL-2.0-or-later
//
// The machine stands at the instant that the run has for it (stop_ns), between two instructions,
// until that has moved. Meanwhile QEMU's monitor and a debugger answer.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// The instant since zero at which it has yet to stand. Under the lock.
uint64_t stand_next_ns(void);
// It stands when the gate that is there has returned. `arm_now`: arms the gate for the instant that
// the virtual clock shows.
void stand_soon(void *cpu, void (*arm_now)(void));
// The same where QEMU had stopped it meanwhile, for a debugger. False: it does not stand.
bool stand_again(void);
