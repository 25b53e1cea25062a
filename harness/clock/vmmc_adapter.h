// SPDX-License-Identifier: GPL-2.0-or-later
//
// The adapter of a backplane inside QEMU: an overlay over the memory of the machine's ivshmem
// device. Loads run at the speed of memory; each store calls vmmc.c with the exact virtual time.
#pragma once

#include "vmmc.h"

#include <stdbool.h>
#include <stdint.h>

// What the adapter needs of the clock.
struct vmmc_clock {
    // Between these two no other thread uses the state of gates and adapters. `store`: the CPU is
    // inside a block, which goes on afterwards.
    void (*enter)(bool store);
    void (*leave)(void);
    uint64_t (*now_ns)(void);
    void (*hand_in)(const uint8_t *packet, size_t length, uint64_t now_ns);
};

// On the main thread, before the guest runs; qemu_load_memory() was called. Returns NULL or a
// sentence saying what is wrong.
const char *vmmc_plug(const struct vmmc_config *config, const struct vmmc_clock *clock);
// A packet that is due; between enter() and leave().
void vmmc_deliver(const uint8_t *packet, size_t length, uint64_t now_ns);
// Whether the first NIC's receive ring is full of notifications for the kernel, and more wait.
bool vmmc_telling(void);
