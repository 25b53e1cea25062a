// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a gate decides: how far the machine may go, and when to look again. Pure; times in ns since
// zero of the run. Why the rules hold is in README.md.
#pragma once

#include "sync.h"

#include <stdbool.h>
#include <stdint.h>

// A machine without peers still looks up this often.
#define GATE_PUBLISH_NS UINT64_C(10000000)

// What one gate sees of its machine.
struct gate_view {
    uint64_t now;     // the machine's clock, at most one instruction past `armed`
    uint64_t armed;   // the time that the gate was armed for
    bool idle;        // the CPU is halted
    uint64_t own;     // the next event of the guest and its devices where idle, else now
    uint64_t due;     // the first frame to deliver
    uint64_t place;   // a stopped queue can go on
    uint64_t end;     // of the run
    uint64_t halt;    // where the machine has yet to stand
    uint64_t stride;  // the machine does not look at the others again before it has gone so far
    uint64_t horizon; // the machine may run up to, not including, this time
};

// What it sees of the others, under the lock.
struct gate_others {
    uint64_t help; // someone who waits for this machine can go on when it gets here
    uint64_t grid; // others run: say how far I am at least this often
};

// `at`, or a pseudo-random time before it: of those half are sooner than `jitter_ns` after `now`.
// 0: `at`.
int64_t gate_stirred(int64_t at, int64_t now, uint64_t jitter_ns);
// What is due by this time is delivered. Not by the clock, which may be some ns past it: QEMU runs
// the timers of one instruction in the order of their times, and a delivery must keep its place
// among the guest's own timers whatever other gates there were.
uint64_t gate_delivers_by(const struct gate_view *view);
// Whether a frame that the guest hands in at `now` moves the gate armed for `armed` to just after
// `now`. One that is due by now stays, for it runs in this instant, after the timer that is
// running, and what is delivered there must not become late: it arms the next one. `looks`: the CPU
// looks at the others by itself, without a gate.
bool gate_is_moved(int64_t armed, int64_t now, bool looks);
// The time that the machine promises: nothing leaves it before, unless something reaches it.
uint64_t gate_event(const struct gate_view *view);
// Whether the machine may go on to its event, or has to wait for the others.
// It goes by more than `stride_ns`, or waits until no other can go.
bool gate_may_pass(const struct gate_view *view, uint64_t event, uint64_t stride_ns);
// What a machine needs to know of the others once it may pass.
// `cores`: that the members can run on.
struct gate_others gate_observe(const struct sync *y, uint64_t now, unsigned cores);
// When to look again.
struct gate_plan {
    // at a moment of the machine's choice before this: whether it may go on
    uint64_t look;
    // exactly then: something is delivered, or ends, or the machine stands
    uint64_t stop;
};
// After what was due has been delivered. `due` and `place` are those left then; `sent`: the guest
// handed in a frame at this instant.
struct gate_plan gate_next(const struct gate_view *view, const struct gate_others *others,
                           bool sent);
