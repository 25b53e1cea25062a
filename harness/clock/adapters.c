// SPDX-License-Identifier: GPL-2.0-or-later
#include "adapters.h"

#include <string.h>

// IEEE 802 local experimental: frames for Sundial itself
static const uint16_t CONTROL_ETHERTYPE = 0x88b5;
static const char READY[] = "sundial-ready";

struct adapter adapters[SYNC_NICS];
struct done_queue adapters_done[SYNC_NICS];

uint64_t adapters_hold(unsigned nic, uint64_t now)
{
    adapters[nic].finished_before += done_pop_before(&adapters_done[nic], now);
    return adapters[nic].handed_in - adapters[nic].finished_before;
}

uint64_t adapters_first_place_ns(unsigned nics)
{
    uint64_t first = SYNC_NEVER;
    for (unsigned n = 0; n < nics; n++) {
        uint64_t end = adapters[n].stopped ? done_first(&adapters_done[n]) : SYNC_NEVER;
        if (end != SYNC_NEVER && end + 1 < first)
            first = end + 1;
    }
    return first;
}

bool adapters_stopped(unsigned nics)
{
    for (unsigned n = 0; n < nics; n++)
        if (adapters[n].stopped)
            return true;
    return false;
}

bool is_ready_frame(const uint8_t *frame, size_t length)
{
    const size_t header = 14;
    return length >= header + sizeof READY - 1 &&
           (frame[12] << 8 | frame[13]) == CONTROL_ETHERTYPE &&
           memcmp(frame + header, READY, sizeof READY - 1) == 0;
}
