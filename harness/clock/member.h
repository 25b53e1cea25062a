// SPDX-License-Identifier: GPL-2.0-or-later
//
// The machine as a member of its run: how it waits for the others, and how it leaves.
#pragma once

#include "options.h"
#include "sync.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum exit_status {
    EXIT_END = 0,        // the run reached its end
    EXIT_ABORTED = 3,    // another member failed, or the supervisor is gone
    EXIT_INVARIANT = 70, // a promise of virtual time was broken: a bug
};

// What the report says, besides times.
struct counts {
    uint64_t gates;        // callbacks of the gate, for each of which QEMU leaves its inner loop
    uint64_t looks;        // at the horizon, at a block's entry
    uint64_t splits;       // gates inside a block, because no more was won by waiting
    uint64_t translations; // blocks translated
    uint64_t waits, sleeps, room_waits;
    uint64_t sent, delivered, overruns, stops, overshoot_ns;
    uint64_t stamps, stamps_checked; // in the trace; those whose time was compared with QEMU's
};

extern struct options options;
extern struct sync run;
extern struct counts count;
extern unsigned cores;              // of the host that the members can run on
extern int64_t zero_ns;             // virtual clock at the start of the run
extern int64_t armed_ns;            // virtual clock the gate is armed for; 0: not yet
extern int64_t instructions_before; // the run: where the machine was restored
// Guards all that gates and looks use: QEMU's lock does not cover a look.
extern pthread_mutex_t state_lock;

unsigned count_cores(void);

// Writes the report, if one was asked for.
void report(const char *status);
// Leaves without unwinding: a blocked machine cannot be asked politely, and has nothing on disk to
// lose.
_Noreturn void leave(const char *status, enum exit_status code);
_Noreturn void broken(const char *invariant);
// From here the machine leaves as soon as its supervisor is gone, whatever it is doing.
bool leave_with_supervisor(void);

// Of the run's shared memory.
void lock(void);
// Lets go the members that can go on with what was just published.
void release_and_unlock(void);
// Waits until a member wakes this one, or for so long that it is worth a look whether I may.
// `brief`: for machines that are at work now. `state_is_free`: others may use the state meanwhile.
enum sync_nap nap(bool brief, bool state_is_free);
