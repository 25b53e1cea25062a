// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
//
// Conservative virtual time over shared memory: the contract between the machines of one run and
// the fabric. The rules and their proof are in README.md; this header is the layout and the
// operations.
//
// Compiled into the QEMU plugin (clock.c) and into the fabric (harness/fabric/io/src/shm.rs), so
// that the arithmetic of horizons exists once.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYNC_MAGIC      UINT64_C(0x3130004c41494453) // "SDIAL\0" "01", little-endian
#define SYNC_VERSION    5u
#define SYNC_NICS       8u
#define SYNC_RING_SLOTS 256u
#define SYNC_SLOT_MOST  65536u           // no file has larger slots
#define SYNC_NEVER      (UINT64_MAX / 4) // "no such event"; sums of two stay far from overflow
#define SYNC_PAGE       4096             // what can be mapped in its own way

#ifndef SYNC_MACHINES // tests build with more, too
#define SYNC_MACHINES 64u
#endif

#define SYNC_FABRIC SYNC_MACHINES // index of the fabric among the members

// ---- Layout: FOLDER/times -----------------------------------------------------------------------
//
// Every member maps all of it. A machine may write the bell and its own page, the fabric
// everything.

enum sync_waiting {
    SYNC_RUNNING = 0,
    // goes on when its horizon passes own_ns or something new is due before own_ns
    SYNC_AT_HORIZON = 1,
    SYNC_FOR_ROOM = 2, // inside a transmission, goes on when the fabric has caught up with own_ns
    SYNC_STANDING = 3, // at stop_ns, goes on when that has moved
};

enum sync_go {
    SYNC_STAY = 0,
    SYNC_LOOK = 1,      // look again
    SYNC_GO_ANYHOW = 2, // and go, be it less than a stride: no other member can
};

enum sync_lock_state {
    SYNC_NO_LOCK = 0,
    SYNC_WANTS_LOCK = 1,
    SYNC_HAS_LOCK = 2,
};

// One page: what its member says. Guarded by the lock but for the second half.
struct sync_member {
    // no frame will be handed in before this, unless one that is due earlier arrives
    _Alignas(SYNC_PAGE) uint64_t own_ns;
    // written by the fabric: nothing inside it is due here before this
    uint64_t bound_ns;
    // written by the fabric: no adapter here finishes a frame before this
    uint64_t tx_done_bound_ns;
    uint64_t rx_due_ns; // earliest entry in the receive ring that is not drained yet
    // earliest frame from here that the fabric has not worked into its state
    uint64_t tx_floor_ns;
    // while it waits: it is not worth waking before it can go so far beyond own_ns, unless no
    // other can go
    uint64_t stride_ns;
    uint32_t waiting;  // enum sync_waiting
    uint32_t stopped;  // a full adapter has stopped a queue: its next place is an event
    uint32_t finished; // reached end_ns, or the instant at which its power is cut, and left
    uint32_t joined;   // has begun to keep time
    // Atomic.
    _Alignas(128) _Atomic uint32_t asleep; // in the futex
    _Atomic uint32_t lock_state;           // enum sync_lock_state: who holds up the others
    _Atomic uint32_t aborted;              // this member has ended the run
    _Atomic uint64_t gates;                // how often it has looked; a watchdog's sign of life
};

struct sync_word {
    _Alignas(128) _Atomic uint32_t value;
};

// What members write for one another. Nothing here is believed: a word that is wrong makes a member
// look once more, or once too late.
struct sync_bell {
    _Alignas(SYNC_PAGE) struct sync_word lock; // 0, or 1 + the index of the member that has it
    struct sync_word abort;                    // nonzero: look whether a member has `aborted`
    struct sync_word go[SYNC_MACHINES + 1];    // futex words, enum sync_go
};

// Written by the fabric only.
struct sync_fixed {
    _Alignas(SYNC_PAGE) uint64_t magic;
    uint32_t version;
    uint32_t machine_count;
    uint32_t slot_bytes;
    uint32_t ring_slots;
    uint64_t end_ns;         // guarded by the lock; may come forward; SYNC_NEVER: not known
    uint64_t fabric_next_ns; // guarded by the lock: the next thing the fabric has to do by itself
    uint64_t frames;         // guarded by the lock: frames taken so far
    // Guarded by the lock: each machine stands there until it moves, which is to a later time only.
    // It may be set before the machines join, and while they stand.
    uint64_t stop_ns;
    // Constant after creation: shortest lookahead path from one machine to another, at least one
    // wire long
    // ([a][a]: the shortest way out and back), and places in each adapter (0: never stops the
    // queue).
    uint64_t distance_ns[SYNC_MACHINES][SYNC_MACHINES];
    uint32_t adapter_frames[SYNC_MACHINES][SYNC_NICS];
};

struct sync_shared {
    struct sync_bell bell;
    struct sync_fixed fixed;
    struct sync_member fabric;
    struct sync_member machine[SYNC_MACHINES];
};

// ---- Layout: FOLDER/rings-M ---------------------------------------------------------------------
//
// Two rings, mapped by machine M and the fabric only: to the fabric, and from it.

// What a ring slot holds.
enum sync_kind {
    // a frame: handed in at time_ns (to the fabric), due at time_ns (to a machine)
    SYNC_FRAME = 0,
    SYNC_TX_DONE = 1, // the adapter finished a frame at time_ns (to a machine, no data)
};

struct sync_slot {
    uint64_t time_ns;
    uint32_t length;
    uint16_t nic;
    uint16_t kind;
    uint8_t data[];
};

// Single producer, single consumer; slots of slot_bytes follow.
struct sync_ring {
    _Alignas(64) _Atomic uint64_t written;
    _Alignas(64) _Atomic uint64_t read;
    _Alignas(64) uint8_t slots[];
};

// ---- A process's view ---------------------------------------------------------------------------

// Members that sleep and are to be woken: bit m % 64 of word m / 64 is member m.
struct sync_wake_set {
    uint64_t words[(SYNC_MACHINES + 1 + 63) / 64];
};

// Who looks, and what was checked when the files were mapped and is not read from them again.
struct sync {
    struct sync_shared *shared;
    unsigned index;    // machine, or SYNC_FABRIC
    unsigned machines; // of the run
    // Waits for the lock of 1 ms each until its holder is given up; 0: only an abort ends it.
    unsigned lock_patience;
};

// One process's end of a ring. The counter of its own side is kept here: the one in the ring only
// tells the other side.
struct sync_end {
    struct sync_ring *ring;
    uint64_t count;
    uint32_t slot_bytes;
};

// An entry as it was read, once; `data` is still in the ring, and the other side may change it.
struct sync_entry {
    uint64_t time_ns;
    const uint8_t *data;
    uint32_t length;
    uint16_t nic;
    uint16_t kind;
};

// What a consumer takes.
struct sync_expect {
    uint64_t earliest_ns;
    uint32_t nics;
    uint32_t last_kind; // of enum sync_kind
};

// What is at an end of a ring. All from SYNC_BAD_COUNTER on are faults of the other side.
enum sync_look {
    SYNC_NOTHING, // no entry, or no room for one
    SYNC_THERE,
    SYNC_BAD_COUNTER,
    SYNC_BAD_LENGTH,
    SYNC_BAD_NIC,
    SYNC_BAD_KIND,
    SYNC_BAD_TIME,
};

// Sizes of the files; sync_size is that of FOLDER/times, by which another language checks its
// mirror.
uint64_t sync_size(void);
uint64_t sync_rings_bytes(unsigned frame_bytes); // frame_bytes: longer ones are cut off
// Lays out zeroed memory of sync_size(). Distances and adapters are to be filled in by the caller.
void sync_format(struct sync_shared *s, unsigned machines, unsigned frame_bytes);
// The ends of one machine's rings in memory of sync_rings_bytes(), for the fabric or for the
// machine.
void sync_ends(void *rings, unsigned slot_bytes, bool fabric, struct sync_end *sends,
               struct sync_end *receives);
// Maps what machine `machine` may of the files in FOLDER, and checks that they are what this build
// expects. Returns NULL or a sentence saying what is wrong.
const char *sync_map(struct sync *y, const char *folder, unsigned machine, struct sync_end *sends,
                     struct sync_end *receives);

// The slot that a push would fill.
enum sync_look sync_room(const struct sync_end *e, struct sync_slot **slot);
void sync_push(struct sync_end *e);
// The oldest entry.
enum sync_look sync_first(const struct sync_end *e, const struct sync_expect *expect,
                          struct sync_entry *entry);
void sync_pop(struct sync_end *e);
// A fault in words.
const char *sync_fault(enum sync_look look);

// All below up to sync_release are called with the lock held.
// Returns false when the run was aborted while waiting for the lock, or patience came to its end.
bool sync_lock(const struct sync *y);
void sync_unlock(const struct sync *y);
// Machine m may run up to, not including, this time: everything due before it is in its receive
// ring.
uint64_t sync_horizon(const struct sync *y, unsigned m);
// The fabric may work on everything before this time: no frame with an earlier stamp can still
// come.
uint64_t sync_safe(const struct sync *y);
// The fabric's next piece of work, its own or a frame to take.
uint64_t sync_fabric_work(const struct sync *y);
// Every machine has reached the end and left.
bool sync_all_finished(const struct sync *y);
// Whether member `index` is at work, or has been let go and will be.
bool sync_at_work(const struct sync *y, unsigned index);
// Lets go the members that can go on; the set says which of them sync_wake must wake.
struct sync_wake_set sync_release(const struct sync *y);
// Outside the lock.
void sync_wake(const struct sync *y, struct sync_wake_set set);
// Has one member look again, whatever it waits for.
void sync_ring_bell(const struct sync *y, unsigned index);

enum sync_nap {
    SYNC_STILL_WAITING, // no member let me go for a while: time to look myself
    SYNC_WOKEN,
    SYNC_ABORTED,
    SYNC_URGED, // let go because no other member can go on
};

// Says that I am going to wait. Under the lock, with `waiting`.
void sync_quiet(const struct sync *y);
// Waits until a member wakes this one, or for 50 ms: for `spins` pauses awake, then asleep.
// `slept`: whether it came to that.
enum sync_nap sync_nap(const struct sync *y, unsigned spins, bool *slept);
// Ends the run for everybody.
void sync_abort(const struct sync *y);
// The member that has ended the run, or -1.
int sync_aborted_by(const struct sync *y);
// The machine that keeps the lock, as far as that is known where one may lie; -1: none.
int sync_lock_holder(const struct sync *y);
