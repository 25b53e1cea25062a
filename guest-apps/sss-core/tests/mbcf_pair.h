/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Two nodes with one task each, connected both ways, on a wire with faults of 1000 frames. */
#include "mbcf_rig.h"

enum { KEY = 0x77, RING = 65536 };
#define SECOND 1000000000ull
#define ACK    RIG_BASE
#define WORD   (RIG_BASE + 64)
#define DATA   (RIG_BASE + 4096)
#define FIFO   (RIG_BASE + 64 * 4096ull)
#define ACKS   (RIG_BASE + 32 * 4096ull)

static inline void *at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static inline struct rig *pair(uint64_t seed, unsigned faults, const struct mbcf_config *config,
                               uint16_t tasks[3], int ltns[3])
{
    struct rig *rig = rig_new(2, seed, config);

    rig->loss = rig->duplication = rig->reordering = faults;
    for (unsigned node = 1; node <= 2; node++) {
        tasks[node] = rig_task(rig, node, 0, 160);
        mbcf_key(rig->nodes[node].mbcf, tasks[node], 0, KEY, MB_READ_ALLOWED | MB_WRITE_ALLOWED);
    }
    ltns[1] = mbcf_connect(rig->nodes[1].mbcf, tasks[1], 2, tasks[2], KEY);
    ltns[2] = mbcf_connect(rig->nodes[2].mbcf, tasks[2], 1, tasks[1], KEY);
    return rig;
}
