// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "vmmc.h"

#include <stdbool.h>
#include <stdint.h>

enum mode {
    MODE_RUN,   // restored from a snapshot, zero is given
    MODE_BOOT,  // boots alone, then freezes for a snapshot; no run
    MODE_WATCH, // real time: only ends the machine when its supervisor is gone
    MODE_CHECK, // ends QEMU at once: with status 0 if it has all that the plugin needs
};

struct options {
    enum mode mode;
    const char *shm;         // path of the run's shared memory
    const char *report;      // path of the JSON report, may be NULL
    const char *trace;       // path of the trace, may be NULL
    const char *points;      // path of the list of what it stamps
    unsigned machine;        // index in the run
    unsigned nics;           // netdevs n0, n1, ...
    bool backplane;          // the last of them is not a netdev but the adapter of a backplane
    struct vmmc_config vmmc; // its settings
    int64_t zero_ns;         // virtual clock at the start of the run
    uint64_t off_ns;         // since zero: when its power is cut; SYNC_NEVER: it is not
    uint64_t instruction_ns; // 2^shift of -icount
    unsigned spins;          // pauses that a wait stays awake where that pays
    bool looks;              // false: gates alone, which must change nothing
    // mean distance of further gates at pseudo-random times, 0: none. They must change nothing
    uint64_t jitter_ns;
    int supervisor_fd; // pidfd, -1: none
};

// Fills `options` from the plugin's arguments. Returns NULL or a sentence saying what is wrong;
// every argument that is not known is refused.
const char *options_parse(struct options *options, int argc, char **argv);
