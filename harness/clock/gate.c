// SPDX-License-Identifier: GPL-2.0-or-later
#include "gate.h"

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t gate_event(const struct gate_view *view)
{
    uint64_t event = view->own;

    if (view->idle)
        event = earlier(event, earlier(view->due, view->place));
    event = earlier(event, view->end);
    return event < view->now ? view->now : event;
}

bool gate_may_pass(const struct gate_view *view, uint64_t event)
{
    if (view->now >= view->end || view->horizon > event)
        return true;
    return event == view->end && view->horizon >= view->end;
}

struct gate_others gate_observe(const struct sync *y, uint64_t now)
{
    const struct sync_shared *s = y->shared;
    const uint64_t *distance_to = s->fixed.distance_ns[y->index];
    struct gate_others others = {.help = SYNC_NEVER, .grid = GATE_PUBLISH_NS};
    bool others_run = false;

    for (unsigned i = 0; i < y->machines; i++) {
        const struct sync_member *other = &s->machine[i];
        if (i == y->index || other->finished || distance_to[i] >= SYNC_NEVER)
            continue;
        if (other->waiting == SYNC_RUNNING) {
            others_run = true;
            continue;
        }
        uint64_t at = other->own_ns >= distance_to[i] ? other->own_ns - distance_to[i] + 1 : 0;
        if (at > now)
            others.help = earlier(others.help, at);
    }
    if (s->fabric.waiting) {
        uint64_t at = sync_fabric_work(y) + 1;
        if (at > now)
            others.help = earlier(others.help, at);
    }
    // While others run, publish at least once in each of my lookaheads, or they and I would take
    // turns.
    if (others_run)
        for (unsigned i = 0; i < y->machines; i++)
            if (i != y->index)
                others.grid = earlier(others.grid, distance_to[i]);
    return others;
}

uint64_t gate_next(const struct gate_view *view, const struct gate_others *others, bool sent)
{
    uint64_t now = view->now;
    uint64_t next = sent ? now + 1 : others->help;

    next = earlier(next, earlier(view->horizon, view->end));
    next = earlier(next, now - now % others->grid + others->grid);
    // Never at now: QEMU would call again endlessly with the big lock held.
    if (next <= now)
        next = now + 1;
    // What is due within this instruction gets its gate at its own time, although that has passed;
    // once each.
    next = earlier(next, view->due);
    if (view->place < next)
        next = view->place > view->armed ? view->place : now + 1;
    return next;
}
