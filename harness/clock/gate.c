// SPDX-License-Identifier: GPL-2.0-or-later
#include "gate.h"

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int64_t gate_stirred(int64_t at, int64_t now, uint64_t jitter_ns)
{
    static uint64_t x = UINT64_C(88172645463325252); // xorshift64
    if (!jitter_ns)
        return at;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    int64_t sooner = now + 1 + (int64_t)((x >> 11) % (2 * jitter_ns));
    return sooner < at ? sooner : at;
}

uint64_t gate_delivers_by(const struct gate_view *view)
{
    return view->armed;
}

bool gate_is_moved(int64_t armed, int64_t now, bool looks)
{
    return armed > now && !looks;
}

uint64_t gate_event(const struct gate_view *view)
{
    uint64_t event = view->own;

    if (view->idle)
        event = earlier(event, earlier(view->due, view->place));
    event = earlier(event, earlier(view->end, view->halt));
    return event < view->now ? view->now : event;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

bool gate_may_pass(const struct gate_view *view, uint64_t event, uint64_t stride_ns)
{
    if (view->now >= view->end || view->horizon > event + stride_ns)
        return true;
    // At the end nothing happens; a gate where the machine stands waits once more when it is there.
    bool exact = event == view->end || (event == view->halt && view->armed < view->halt);
    return exact && view->horizon >= event;
}

struct gate_others gate_observe(const struct sync *y, uint64_t now, unsigned cores)
{
    const struct sync_shared *s = y->shared;
    const uint64_t *distance_to = s->fixed.distance_ns[y->index];
    struct gate_others others = {.help = SYNC_NEVER, .grid = GATE_PUBLISH_NS};
    unsigned others_run = 0;

    for (unsigned i = 0; i < y->machines; i++) {
        const struct sync_member *other = &s->machine[i];
        if (i == y->index || other->finished || distance_to[i] >= SYNC_NEVER)
            continue;
        if (sync_at_work(y, i)) {
            others_run++;
            continue;
        }
        uint64_t goal = earlier(other->own_ns, SYNC_NEVER) + earlier(other->stride_ns, SYNC_NEVER);
        uint64_t at = goal >= distance_to[i] ? goal - distance_to[i] + 1 : 0;
        if (at > now)
            others.help = earlier(others.help, at);
    }
    // Where every core has work, waking one more is of no use.
    if (others_run >= cores)
        return (struct gate_others){.help = SYNC_NEVER, .grid = GATE_PUBLISH_NS};
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

struct gate_plan gate_next(const struct gate_view *view, const struct gate_others *others,
                           bool sent)
{
    uint64_t now = view->now;
    struct gate_plan plan;

    plan.look = earlier(sent ? now + 1 : others->help, now - now % others->grid + others->grid);
    plan.look = earlier(later(plan.look, now + view->stride), view->horizon);
    // Never at now: QEMU would call again endlessly with the big lock held.
    plan.look = later(plan.look, now + 1);
    // What is within this instruction gets its gate at its own time, although that has passed; once
    // each, for a gate leaves nothing of what was by its time.
    plan.stop = earlier(later(view->end, now + 1), earlier(view->due, view->place));
    plan.stop = earlier(plan.stop, view->halt);
    return plan;
}
