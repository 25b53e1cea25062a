// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
#define _GNU_SOURCE
#include "sync.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const long ABORT_CHECK_NS = 50 * 1000 * 1000; // how long a sleeper may overlook an abort

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint32_t slot_bytes(unsigned frame_bytes)
{
    return (uint32_t)((sizeof(struct sync_slot) + frame_bytes + 63) & ~(size_t)63);
}

static uint64_t ring_bytes(uint32_t slot)
{
    return sizeof(struct sync_ring) + (uint64_t)SYNC_RING_SLOTS * slot;
}

static uint64_t rings_offset(void)
{
    return (sizeof(struct sync_shared) + 4095) & ~(uint64_t)4095;
}

uint64_t sync_size(void)
{
    return sizeof(struct sync_shared);
}

uint64_t sync_bytes(unsigned machines, unsigned frame_bytes)
{
    return rings_offset() + 2 * machines * ring_bytes(slot_bytes(frame_bytes));
}

void sync_format(struct sync_shared *s, unsigned machines, unsigned frame_bytes)
{
    s->version = SYNC_VERSION;
    s->machine_count = machines;
    s->ring_slots = SYNC_RING_SLOTS;
    s->slot_bytes = slot_bytes(frame_bytes);
    s->bytes = sync_bytes(machines, frame_bytes);
    s->end_ns = SYNC_NEVER;
    s->fabric_next_ns = SYNC_NEVER;
    for (unsigned m = 0; m < SYNC_MACHINES; m++) {
        struct sync_member *k = &s->machine[m];
        k->own_ns = m < machines ? 0 : SYNC_NEVER;
        k->bound_ns = k->tx_done_bound_ns = k->rx_due_ns = k->tx_floor_ns = SYNC_NEVER;
        for (unsigned j = 0; j < SYNC_MACHINES; j++)
            s->distance_ns[m][j] = SYNC_NEVER;
    }
    s->magic = SYNC_MAGIC;
}

const char *sync_map(struct sync *y, const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return "cannot open the shared memory of the run";
    struct stat st;
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size < sizeof(struct sync_shared)) {
        close(fd);
        return "the shared memory of the run is too short";
    }
    void *memory = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED)
        return "cannot map the shared memory of the run";
    y->shared = memory;
    if (y->shared->magic != SYNC_MAGIC || y->shared->version != SYNC_VERSION)
        return "the shared memory of the run has another layout (plugin and fabric of different "
               "versions)";
    if (y->shared->bytes != (uint64_t)st.st_size)
        return "the shared memory of the run has the wrong size";
    return NULL;
}

static struct sync_ring *ring(struct sync_shared *s, unsigned index)
{
    return (struct sync_ring *)((uint8_t *)s + rings_offset() + index * ring_bytes(s->slot_bytes));
}

struct sync_ring *sync_tx_ring(struct sync_shared *s, unsigned machine)
{
    return ring(s, 2 * machine);
}

struct sync_ring *sync_rx_ring(struct sync_shared *s, unsigned machine)
{
    return ring(s, 2 * machine + 1);
}

static struct sync_slot *slot(const struct sync_shared *s, struct sync_ring *r, uint64_t sequence)
{
    return (struct sync_slot *)(r->slots + (sequence % SYNC_RING_SLOTS) * s->slot_bytes);
}

struct sync_slot *sync_ring_free(const struct sync_shared *s, struct sync_ring *r)
{
    uint64_t written = atomic_load_explicit(&r->written, memory_order_relaxed);
    if (written - atomic_load_explicit(&r->read, memory_order_acquire) >= SYNC_RING_SLOTS)
        return NULL;
    return slot(s, r, written);
}

void sync_ring_push(struct sync_ring *r)
{
    uint64_t written = atomic_load_explicit(&r->written, memory_order_relaxed);
    atomic_store_explicit(&r->written, written + 1, memory_order_release);
}

struct sync_slot *sync_ring_first(const struct sync_shared *s, struct sync_ring *r)
{
    uint64_t read = atomic_load_explicit(&r->read, memory_order_relaxed);
    if (read == atomic_load_explicit(&r->written, memory_order_acquire))
        return NULL;
    return slot(s, r, read);
}

void sync_ring_pop(struct sync_ring *r)
{
    uint64_t read = atomic_load_explicit(&r->read, memory_order_relaxed);
    atomic_store_explicit(&r->read, read + 1, memory_order_release);
}

// A spin lock: it is held for well under a microsecond, and a sleeper's wake-up costs fifty.
bool sync_lock(struct sync_shared *s)
{
    while (atomic_exchange_explicit(&s->lock, 1, memory_order_acquire)) {
        unsigned pauses = 0;
        while (atomic_load_explicit(&s->lock, memory_order_relaxed)) {
            __builtin_ia32_pause();
            if (++pauses < 200)
                continue;
            pauses = 0;
            // The holder may have been killed; then only the abort flag ends this.
            if (atomic_load_explicit(&s->abort, memory_order_relaxed))
                return false;
            sched_yield();
        }
    }
    return true;
}

void sync_unlock(struct sync_shared *s)
{
    atomic_store_explicit(&s->lock, 0, memory_order_release);
}

// The earliest thing on its way to m: inside the fabric, in its ring, or a place in its full
// adapter.
static uint64_t inbound(const struct sync_member *m)
{
    uint64_t t = earlier(m->bound_ns, m->rx_due_ns);
    return m->stopped ? earlier(t, m->tx_done_bound_ns) : t;
}

// The earliest stamp of a frame that m may send or has sent and the fabric has not worked in, if
// nothing from another machine reaches m before.
static uint64_t source(const struct sync_member *m)
{
    return earlier(earlier(m->own_ns, m->tx_floor_ns), inbound(m));
}

uint64_t sync_horizon(const struct sync_shared *s, unsigned m)
{
    const struct sync_member *me = &s->machine[m];
    uint64_t horizon = me->bound_ns;
    if (me->stopped)
        horizon = earlier(horizon, me->tx_done_bound_ns);
    for (unsigned j = 0; j < s->machine_count; j++)
        if (j != m)
            horizon = earlier(horizon, source(&s->machine[j]) + s->distance_ns[j][m]);
    // What I sent and nobody has seen yet may be answered.
    return earlier(horizon, me->tx_floor_ns + s->distance_ns[m][m]);
}

uint64_t sync_safe(const struct sync_shared *s)
{
    uint64_t safe = SYNC_NEVER;
    for (unsigned m = 0; m < s->machine_count; m++) {
        const struct sync_member *k = &s->machine[m];
        if (!k->finished)
            safe = earlier(safe, earlier(k->own_ns, earlier(inbound(k), sync_horizon(s, m))));
    }
    return safe;
}

uint64_t sync_fabric_work(const struct sync_shared *s)
{
    uint64_t work = s->fabric_next_ns;
    for (unsigned m = 0; m < s->machine_count; m++)
        work = earlier(work, s->machine[m].tx_floor_ns);
    return work;
}

bool sync_all_finished(const struct sync_shared *s)
{
    for (unsigned m = 0; m < s->machine_count; m++)
        if (!s->machine[m].finished)
            return false;
    return true;
}

static struct sync_member *member(struct sync_shared *s, unsigned index)
{
    return index == SYNC_FABRIC ? &s->fabric : &s->machine[index];
}

// Adds the member to `set` where it sleeps.
static void let_go(struct sync_shared *s, unsigned index, struct sync_wake_set *set)
{
    struct sync_member *m = member(s, index);
    atomic_store(&m->go, 1);
    if (atomic_load(&m->asleep))
        set->words[index / 64] |= UINT64_C(1) << index % 64;
}

struct sync_wake_set sync_release(struct sync_shared *s)
{
    struct sync_wake_set set = {0};
    for (unsigned m = 0; m < s->machine_count; m++) {
        struct sync_member *k = &s->machine[m];
        if (k->waiting != SYNC_AT_HORIZON || atomic_load_explicit(&k->go, memory_order_relaxed))
            continue;
        if (sync_horizon(s, m) > k->own_ns || k->rx_due_ns < k->own_ns || s->end_ns < k->own_ns)
            let_go(s, m, &set);
    }
    struct sync_member *f = &s->fabric;
    if (f->waiting && !atomic_load_explicit(&f->go, memory_order_relaxed) &&
        (sync_fabric_work(s) < sync_safe(s) || sync_all_finished(s)))
        let_go(s, SYNC_FABRIC, &set);
    return set;
}

void sync_wake_member(struct sync_shared *s, unsigned index)
{
    syscall(SYS_futex, &member(s, index)->go, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void sync_wake(struct sync_shared *s, struct sync_wake_set set)
{
    for (unsigned w = 0; w < sizeof set.words / sizeof set.words[0]; w++)
        for (uint64_t word = set.words[w]; word; word &= word - 1)
            sync_wake_member(s, 64 * w + (unsigned)__builtin_ctzll(word));
}

enum sync_nap sync_nap(const struct sync *y, struct sync_member *me)
{
    for (unsigned i = 0; i < y->spins && !atomic_load_explicit(&me->go, memory_order_acquire); i++)
        __builtin_ia32_pause();
    if (!atomic_load(&me->go)) {
        struct timespec patience = {0, ABORT_CHECK_NS};
        atomic_store(&me->asleep, 1);
        if (!atomic_load(&me->go))
            syscall(SYS_futex, &me->go, FUTEX_WAIT, 0, &patience, NULL, 0);
        atomic_store(&me->asleep, 0);
    }
    if (atomic_load(&y->shared->abort))
        return SYNC_ABORTED;
    return atomic_load(&me->go) ? SYNC_WOKEN : SYNC_STILL_WAITING;
}

bool sync_wait(const struct sync *y, struct sync_member *me)
{
    enum sync_nap nap;
    do
        nap = sync_nap(y, me);
    while (nap == SYNC_STILL_WAITING);
    return nap == SYNC_WOKEN;
}

void sync_abort(struct sync_shared *s)
{
    atomic_store(&s->abort, 1);
    for (unsigned m = 0; m < s->machine_count; m++)
        atomic_store(&s->machine[m].go, 1);
    atomic_store(&s->fabric.go, 1);
    for (unsigned m = 0; m < s->machine_count; m++)
        sync_wake_member(s, m);
    sync_wake_member(s, SYNC_FABRIC);
}
