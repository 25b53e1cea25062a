// SPDX-License-Identifier: GPL-2.0-or-later
//
// The machine's network adapters: their places, and which are taken.
#pragma once

#include "inbox.h"
#include "sync.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct adapter {
    struct NetClientState *client;
    uint32_t capacity;        // places; 0: never full
    uint64_t handed_in;       // frames
    uint64_t finished_before; // finished frames that left adapters_done
    bool stopped;             // the guest's queue waits for a place
};

extern struct adapter adapters[SYNC_NICS];
extern struct done_queue adapters_done[SYNC_NICS]; // when they finished their frames

// Frames of an adapter still in it at `now`. A place falls free strictly after the instant of its
// end, so that the answer does not depend on who looks first at that instant.
uint64_t adapters_hold(unsigned nic, uint64_t now);
// When the first stopped queue of the first `nics` can go on, as far as is known.
uint64_t adapters_first_place_ns(unsigned nics);
// Whether one of them is stopped.
bool adapters_stopped(unsigned nics);
// Whether a guest says by this frame that it waits for its job.
bool is_ready_frame(const uint8_t *frame, size_t length);
