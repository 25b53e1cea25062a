// SPDX-License-Identifier: GPL-2.0-or-later
//
// What has arrived for a machine and is not due yet: frames, and the instants at which its adapters
// finished.
#pragma once

#include "sync.h"

#include <stdint.h>

struct letter {
    uint64_t due_ns;
    uint64_t sequence; // order of arrival, which breaks ties
    uint32_t length;
    uint16_t nic;
    uint8_t frame[];
};

// A binary heap by (due_ns, sequence).
struct inbox {
    struct letter **heap;
    uint32_t used, allocated;
    uint64_t next_sequence;
};

void inbox_add(struct inbox *inbox, uint64_t due_ns, uint16_t nic, const uint8_t *frame,
               uint32_t length);
// Due time of the first letter, SYNC_NEVER if there is none.
uint64_t inbox_first(const struct inbox *inbox);
// Takes out the first letter if it is due at `now`, else NULL; the caller frees it.
struct letter *inbox_take(struct inbox *inbox, uint64_t now);

// Times in the order in which they were pushed, which for one adapter is the order of time.
struct done_queue {
    uint64_t *times;
    uint64_t pushed, popped;
    uint64_t allocated; // a power of two
};

void done_push(struct done_queue *queue, uint64_t time_ns);
uint64_t done_first(const struct done_queue *queue);
// Drops the times before `now` and returns how many they were.
uint64_t done_pop_before(struct done_queue *queue, uint64_t now);

// Takes all that is in the ring. SYNC_NOTHING: it is empty now; else the fault of who fills it.
enum sync_look inbox_drain(struct inbox *inbox, struct done_queue done[], struct sync_end *from,
                           unsigned nics);
