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
#define SYNC_VERSION    1u
#define SYNC_NICS       8u
#define SYNC_RING_SLOTS 256u
#define SYNC_NEVER      (UINT64_MAX / 4) // "no such event"; sums of two stay far from overflow

#ifndef SYNC_MACHINES // tests build with more, too
#define SYNC_MACHINES 16u
#endif

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

enum sync_waiting {
    SYNC_RUNNING = 0,
    // goes on when its horizon passes own_ns or something new is due before own_ns
    SYNC_AT_HORIZON = 1,
    SYNC_FOR_ROOM = 2, // inside a transmission, goes on when the fabric has caught up with own_ns
};

struct sync_member {
    // Guarded by the lock.
    // no frame will be handed in before this, unless one that is due earlier arrives
    _Alignas(128) uint64_t own_ns;
    // written by the fabric: nothing inside it is due here before this
    uint64_t bound_ns;
    // written by the fabric: no adapter here finishes a frame before this
    uint64_t tx_done_bound_ns;
    uint64_t rx_due_ns; // earliest entry in the receive ring that is not drained yet
    // earliest frame from here that the fabric has not worked into its state
    uint64_t tx_floor_ns;
    uint32_t waiting;  // enum sync_waiting
    uint32_t stopped;  // a full adapter has stopped a queue: its next place is an event
    uint32_t finished; // reached end_ns and left
    uint32_t joined;   // has begun to keep time
    // Atomic.
    _Alignas(128) _Atomic uint32_t go; // futex word: 1 = look again
    _Atomic uint32_t asleep;           // in the futex
    _Atomic uint64_t gates;            // how often it has looked; a watchdog's sign of life
};

struct sync_shared {
    uint64_t magic;
    uint32_t version;
    uint32_t machine_count;
    uint32_t ring_slots;
    uint32_t slot_bytes;
    uint64_t bytes;         // of the whole file
    _Atomic uint32_t abort; // nonzero: everybody leaves at once
    _Atomic uint32_t lock;
    uint64_t end_ns;         // guarded by the lock; SYNC_NEVER until the last machine is done
    uint64_t fabric_next_ns; // guarded by the lock: the next thing the fabric has to do by itself
    uint64_t frames;         // guarded by the lock: frames taken so far
    uint64_t reserved[8];
    // Constant after creation: shortest lookahead path from one machine to another, at least one
    // wire long
    // ([a][a]: the shortest way out and back), and places in each adapter (0: never stops the
    // queue).
    uint64_t distance_ns[SYNC_MACHINES][SYNC_MACHINES];
    uint32_t adapter_frames[SYNC_MACHINES][SYNC_NICS];
    struct sync_member machine[SYNC_MACHINES];
    struct sync_member fabric;
};

#define SYNC_FABRIC SYNC_MACHINES // index of the fabric among the members

// Members that sleep and are to be woken: bit m % 64 of word m / 64 is member m.
struct sync_wake_set {
    uint64_t words[(SYNC_MACHINES + 1 + 63) / 64];
};

// A process's view of the shared memory.
struct sync {
    struct sync_shared *shared;
    unsigned spins; // pauses before a wait goes to sleep
};

// sizeof(struct sync_shared), by which another language checks its mirror.
uint64_t sync_size(void);
// Bytes of a shared file for so many machines and frames of at most frame_bytes.
uint64_t sync_bytes(unsigned machines, unsigned frame_bytes);
// Lays out zeroed memory of sync_bytes(). Distances and adapters are to be filled in by the caller.
void sync_format(struct sync_shared *s, unsigned machines, unsigned frame_bytes);
// Maps PATH and checks that it is what this build expects. Returns NULL or a sentence saying what
// is wrong.
const char *sync_map(struct sync *y, const char *path);

struct sync_ring *sync_tx_ring(struct sync_shared *s, unsigned machine); // machine -> fabric
struct sync_ring *sync_rx_ring(struct sync_shared *s, unsigned machine); // fabric -> machine
// The slot that a push would fill, or NULL when the ring is full.
struct sync_slot *sync_ring_free(const struct sync_shared *s, struct sync_ring *r);
void sync_ring_push(struct sync_ring *r);
// The oldest slot, or NULL when the ring is empty.
struct sync_slot *sync_ring_first(const struct sync_shared *s, struct sync_ring *r);
void sync_ring_pop(struct sync_ring *r);

// All below up to sync_release are called with the lock held.
// Returns false when the run was aborted while waiting for the lock.
bool sync_lock(struct sync_shared *s);
void sync_unlock(struct sync_shared *s);
// Machine m may run up to, not including, this time: everything due before it is in its receive
// ring.
uint64_t sync_horizon(const struct sync_shared *s, unsigned m);
// The fabric may work on everything before this time: no frame with an earlier stamp can still
// come.
uint64_t sync_safe(const struct sync_shared *s);
// The fabric's next piece of work, its own or a frame to take.
uint64_t sync_fabric_work(const struct sync_shared *s);
// Every machine has reached the end and left.
bool sync_all_finished(const struct sync_shared *s);
// Lets go whoever can go on; the set says whom sync_wake must wake.
struct sync_wake_set sync_release(struct sync_shared *s);
// Outside the lock.
void sync_wake(struct sync_shared *s, struct sync_wake_set set);
void sync_wake_member(struct sync_shared *s, unsigned index);

enum sync_nap {
    SYNC_STILL_WAITING, // nobody let me go for a while: time to look at other things
    SYNC_WOKEN,
    SYNC_ABORTED,
};

// Sleeps until somebody sets me->go, or for 50 ms. `waiting` and go = 0 were set under the lock.
enum sync_nap sync_nap(const struct sync *y, struct sync_member *me);
// Sleeps until somebody sets me->go. False: aborted.
bool sync_wait(const struct sync *y, struct sync_member *me);
// Ends the run for everybody.
void sync_abort(struct sync_shared *s);
