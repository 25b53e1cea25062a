// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
#define _GNU_SOURCE
#include "sync.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const long ABORT_CHECK_NS = 50 * 1000 * 1000; // how long a sleeper may overlook an abort

// Some ten ns in which the core leaves its resources to others.
static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); // "yield" takes no time on most cores
#endif
}

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

uint64_t sync_size(void)
{
    return sizeof(struct sync_shared);
}

uint64_t sync_rings_bytes(unsigned frame_bytes)
{
    return 2 * ring_bytes(slot_bytes(frame_bytes));
}

void sync_format(struct sync_shared *s, unsigned machines, unsigned frame_bytes)
{
    struct sync_fixed *fixed = &s->fixed;
    fixed->version = SYNC_VERSION;
    fixed->machine_count = machines;
    fixed->ring_slots = SYNC_RING_SLOTS;
    fixed->slot_bytes = slot_bytes(frame_bytes);
    fixed->end_ns = SYNC_NEVER;
    fixed->fabric_next_ns = SYNC_NEVER;
    fixed->stop_ns = SYNC_NEVER;
    for (unsigned m = 0; m < SYNC_MACHINES; m++) {
        struct sync_member *k = &s->machine[m];
        k->own_ns = m < machines ? 0 : SYNC_NEVER;
        k->bound_ns = k->tx_done_bound_ns = k->rx_due_ns = k->tx_floor_ns = SYNC_NEVER;
        for (unsigned j = 0; j < SYNC_MACHINES; j++)
            fixed->distance_ns[m][j] = SYNC_NEVER;
    }
    fixed->magic = SYNC_MAGIC;
}

void sync_ends(void *rings, unsigned slot, bool fabric, struct sync_end *sends,
               struct sync_end *receives)
{
    struct sync_end to_fabric = {.ring = rings, .slot_bytes = slot};
    struct sync_end from_fabric = {
        .ring = (struct sync_ring *)((uint8_t *)rings + ring_bytes(slot)), .slot_bytes = slot};
    *sends = fabric ? from_fabric : to_fabric;
    *receives = fabric ? to_fabric : from_fabric;
}

// ---- Mapping ----------------------------------------------------------------------------------

// Opens FOLDER/NAME, which has to be so long. Negative: no.
static int open_part(const char *folder, const char *name, uint64_t bytes)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return -1;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    if (fd >= 0 && (fstat(fd, &st) != 0 || (uint64_t)st.st_size != bytes)) {
        close(fd);
        return -1;
    }
    return fd;
}

// Makes `bytes` of the mapped file at `part` writable.
static bool map_writable(int fd, const struct sync_shared *s, void *part, size_t bytes)
{
    off_t offset = (uint8_t *)part - (const uint8_t *)s;
    const void *mapped = mmap(part, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                              offset);
    // cppcheck-suppress memleak; it stays mapped at part
    return mapped == part;
}

static const char *map_times(struct sync *y, const char *folder, unsigned machine)
{
    int fd = open_part(folder, "times", sizeof(struct sync_shared));
    if (fd < 0)
        return "cannot open the shared memory of the run, or it has the wrong size";
    struct sync_shared *s = mmap(NULL, sizeof(struct sync_shared), PROT_READ, MAP_SHARED, fd, 0);
    bool mapped = s != MAP_FAILED && map_writable(fd, s, &s->bell, sizeof s->bell) &&
                  map_writable(fd, s, &s->machine[machine], sizeof s->machine[machine]);
    close(fd);
    if (!mapped)
        return "cannot map the shared memory of the run";
    if (s->fixed.magic != SYNC_MAGIC || s->fixed.version != SYNC_VERSION)
        return "the shared memory of the run has another layout (plugin and fabric of different "
               "versions)";
    *y = (struct sync){.shared = s, .index = machine, .machines = s->fixed.machine_count};
    if (y->machines > SYNC_MACHINES || machine >= y->machines)
        return "machine= is not among the machines of the run";
    return NULL;
}

const char *sync_map(struct sync *y, const char *folder, unsigned machine, struct sync_end *sends,
                     struct sync_end *receives)
{
    if (machine >= SYNC_MACHINES)
        return "machine= is not among the machines of the run";
    const char *wrong = map_times(y, folder, machine);
    if (wrong)
        return wrong;
    uint32_t slot = y->shared->fixed.slot_bytes;
    if (slot <= sizeof(struct sync_slot) || slot > SYNC_SLOT_MOST || slot % 64)
        return "the slots of the shared memory have an impossible size";
    char name[32];
    snprintf(name, sizeof name, "rings-%u", machine);
    int fd = open_part(folder, name, 2 * ring_bytes(slot));
    if (fd < 0)
        return "cannot open the machine's rings, or they have the wrong size";
    void *rings = mmap(NULL, 2 * ring_bytes(slot), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (rings == MAP_FAILED)
        return "cannot map the machine's rings";
    sync_ends(rings, slot, false, sends, receives);
    return NULL;
}

// ---- Rings ------------------------------------------------------------------------------------

static struct sync_slot *slot(const struct sync_end *e)
{
    return (struct sync_slot *)(e->ring->slots + (e->count % SYNC_RING_SLOTS) * e->slot_bytes);
}

enum sync_look sync_room(const struct sync_end *e, struct sync_slot **found)
{
    uint64_t used = e->count - atomic_load_explicit(&e->ring->read, memory_order_acquire);
    if (used > SYNC_RING_SLOTS)
        return SYNC_BAD_COUNTER;
    if (used == SYNC_RING_SLOTS)
        return SYNC_NOTHING;
    *found = slot(e);
    return SYNC_THERE;
}

void sync_push(struct sync_end *e)
{
    atomic_store_explicit(&e->ring->written, ++e->count, memory_order_release);
}

enum sync_look sync_first(const struct sync_end *e, const struct sync_expect *expect,
                          struct sync_entry *entry)
{
    uint64_t used = atomic_load_explicit(&e->ring->written, memory_order_acquire) - e->count;
    if (used == 0)
        return SYNC_NOTHING;
    if (used > SYNC_RING_SLOTS)
        return SYNC_BAD_COUNTER;
    struct sync_slot *s = slot(e);
    // Each field is read once: what is checked is what is used.
    *entry = (struct sync_entry){
        .time_ns = __atomic_load_n(&s->time_ns, __ATOMIC_RELAXED),
        .length = __atomic_load_n(&s->length, __ATOMIC_RELAXED),
        .nic = __atomic_load_n(&s->nic, __ATOMIC_RELAXED),
        .kind = __atomic_load_n(&s->kind, __ATOMIC_RELAXED),
        .data = s->data,
    };
    if (entry->length > e->slot_bytes - sizeof(struct sync_slot))
        return SYNC_BAD_LENGTH;
    if (entry->nic >= expect->nics)
        return SYNC_BAD_NIC;
    if (entry->kind > expect->last_kind)
        return SYNC_BAD_KIND;
    if (entry->time_ns < expect->earliest_ns || entry->time_ns >= SYNC_NEVER)
        return SYNC_BAD_TIME;
    return SYNC_THERE;
}

void sync_pop(struct sync_end *e)
{
    atomic_store_explicit(&e->ring->read, ++e->count, memory_order_release);
}

const char *sync_fault(enum sync_look look)
{
    static const char *const WORDS[] = {
        [SYNC_NOTHING] = "nothing",
        [SYNC_THERE] = "an entry",
        [SYNC_BAD_COUNTER] = "a ring's counter that cannot be",
        [SYNC_BAD_LENGTH] = "an entry longer than its slot",
        [SYNC_BAD_NIC] = "an entry of an interface that is not there",
        [SYNC_BAD_KIND] = "an entry of no known kind",
        [SYNC_BAD_TIME] = "an entry with a time that cannot be",
    };
    return WORDS[look];
}

// ---- The lock ---------------------------------------------------------------------------------

static struct sync_member *member(const struct sync *y, unsigned index)
{
    return index == SYNC_FABRIC ? &y->shared->fabric : &y->shared->machine[index];
}

static void set_lock_state(const struct sync *y, enum sync_lock_state state)
{
    atomic_store_explicit(&member(y, y->index)->lock_state, state, memory_order_relaxed);
}

static bool try_lock(const struct sync *y)
{
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong_explicit(&y->shared->bell.lock.value, &none, y->index + 1,
                                                 memory_order_acquire, memory_order_relaxed))
        return false;
    set_lock_state(y, SYNC_HAS_LOCK);
    return true;
}

// A spin lock: it is held for well under a microsecond, and a sleeper's wake-up costs fifty.
bool sync_lock(const struct sync *y)
{
    static const unsigned YIELDS = 1000; // then the holder has been killed, or stopped
    static const struct timespec PAUSE = {0, 1000 * 1000};
    if (try_lock(y))
        return true;
    set_lock_state(y, SYNC_WANTS_LOCK);
    for (unsigned looks = 0;;) {
        unsigned pauses = 0;
        while (pauses < 200 &&
               atomic_load_explicit(&y->shared->bell.lock.value, memory_order_relaxed)) {
            pause_briefly();
            pauses++;
        }
        if (try_lock(y))
            return true;
        if (pauses < 200)
            continue;
        if (sync_aborted_by(y) >= 0)
            return false;
        if (looks++ < YIELDS) {
            sched_yield();
            continue;
        }
        // Counted in pauses that this process lived through, not by a clock: all may have been
        // stopped.
        nanosleep(&PAUSE, NULL);
        if (y->lock_patience && looks > YIELDS + y->lock_patience)
            return false;
    }
}

void sync_unlock(const struct sync *y)
{
    set_lock_state(y, SYNC_NO_LOCK);
    atomic_store_explicit(&y->shared->bell.lock.value, 0, memory_order_release);
}

static uint32_t lock_state(const struct sync *y, unsigned index)
{
    return atomic_load_explicit(&member(y, index)->lock_state, memory_order_relaxed);
}

int sync_lock_holder(const struct sync *y)
{
    uint32_t word = atomic_load_explicit(&y->shared->bell.lock.value, memory_order_relaxed);
    if (!word || lock_state(y, SYNC_FABRIC) == SYNC_HAS_LOCK)
        return -1;
    // Each says for itself that it has the lock, or waits for it; the word may be anybody's.
    for (unsigned m = 0; m < y->machines; m++)
        if (lock_state(y, m) == SYNC_HAS_LOCK)
            return (int)m;
    // Who waits for something else looks again each 50 ms, and wants the lock then.
    for (unsigned m = 0; m < y->machines; m++)
        if (lock_state(y, m) != SYNC_WANTS_LOCK && !y->shared->machine[m].finished)
            return (int)m;
    return -1;
}

// ---- Times ------------------------------------------------------------------------------------

// A machine may write anything into its page: no time is taken to be later than SYNC_NEVER, so that
// no sum overflows.

// The earliest thing on its way to m: inside the fabric, in its ring, or a place in its full
// adapter.
static uint64_t inbound(const struct sync_member *m)
{
    if (m->finished) // what is in its ring, or on its way, leads to nothing
        return SYNC_NEVER;
    uint64_t t = earlier(earlier(m->bound_ns, m->rx_due_ns), SYNC_NEVER);
    return m->stopped ? earlier(t, m->tx_done_bound_ns) : t;
}

// The earliest stamp of a frame that m may send or has sent and the fabric has not worked in, if
// nothing from another machine reaches m before.
static uint64_t source(const struct sync_member *m)
{
    return earlier(earlier(m->own_ns, m->tx_floor_ns), inbound(m));
}

// The earliest place in the full adapter of m. That of a frame that the fabric has not taken yet is
// not known: it is after the frame's own time, which m may reach, for the fabric takes it then.
static uint64_t place(const struct sync_member *m)
{
    if (!m->stopped)
        return SYNC_NEVER;
    return earlier(m->tx_done_bound_ns, earlier(m->tx_floor_ns, SYNC_NEVER) + 1);
}

uint64_t sync_horizon(const struct sync *y, unsigned m)
{
    const struct sync_shared *s = y->shared;
    const struct sync_member *me = &s->machine[m];
    uint64_t horizon = earlier(earlier(me->bound_ns, place(me)), SYNC_NEVER);
    for (unsigned j = 0; j < y->machines; j++)
        if (j != m)
            horizon = earlier(horizon, source(&s->machine[j]) + s->fixed.distance_ns[j][m]);
    // What I sent and no member has seen yet may be answered.
    return earlier(horizon, earlier(me->tx_floor_ns, SYNC_NEVER) + s->fixed.distance_ns[m][m]);
}

// The least of own_ns, inbound and horizon of all. With many machines it is asked for too often to
// compute every horizon: only who sends before what is known to be safe can make it less.
uint64_t sync_safe(const struct sync *y)
{
    const struct sync_shared *s = y->shared;
    uint64_t safe = SYNC_NEVER;
    for (unsigned m = 0; m < y->machines; m++) {
        const struct sync_member *k = &s->machine[m];
        if (k->finished)
            continue;
        safe = earlier(safe, earlier(earlier(k->own_ns, inbound(k)), place(k)));
        safe = earlier(safe, earlier(k->tx_floor_ns, SYNC_NEVER) + s->fixed.distance_ns[m][m]);
    }
    for (unsigned j = 0; j < y->machines; j++) {
        uint64_t from = source(&s->machine[j]);
        if (from >= safe)
            continue;
        for (unsigned m = 0; m < y->machines; m++)
            if (m != j && !s->machine[m].finished)
                safe = earlier(safe, from + s->fixed.distance_ns[j][m]);
    }
    return safe;
}

uint64_t sync_fabric_work(const struct sync *y)
{
    uint64_t work = y->shared->fixed.fabric_next_ns;
    for (unsigned m = 0; m < y->machines; m++)
        work = earlier(work, y->shared->machine[m].tx_floor_ns);
    return work;
}

bool sync_all_finished(const struct sync *y)
{
    for (unsigned m = 0; m < y->machines; m++)
        if (!y->shared->machine[m].finished)
            return false;
    return true;
}

// ---- Waiting ----------------------------------------------------------------------------------

static _Atomic uint32_t *go(const struct sync *y, unsigned index)
{
    return &y->shared->bell.go[index].value;
}

static void wake_member(const struct sync *y, unsigned index)
{
    syscall(SYS_futex, go(y, index), FUTEX_WAKE, 1, NULL, NULL, 0);
}

// Adds the member to `set` where it sleeps.
static void let_go(const struct sync *y, unsigned index, enum sync_go how,
                   struct sync_wake_set *set)
{
    atomic_store(go(y, index), how);
    if (atomic_load(&member(y, index)->asleep))
        set->words[index / 64] |= UINT64_C(1) << index % 64;
}

// The two machines that may send first.
struct first_two {
    unsigned machine[2];
    uint64_t source_ns[2];
};

static struct first_two find_first_two(const struct sync *y)
{
    struct first_two f = {.source_ns = {UINT64_MAX, UINT64_MAX}};
    for (unsigned j = 0; j < y->machines; j++) {
        uint64_t from = source(&y->shared->machine[j]);
        if (from >= f.source_ns[1])
            continue;
        unsigned place = from < f.source_ns[0] ? 0 : 1;
        f.machine[1] = place ? j : f.machine[0];
        f.source_ns[1] = place ? from : f.source_ns[0];
        f.machine[place] = j;
        f.source_ns[place] = from;
    }
    return f;
}

// Whether waiting machine m can go on by more than `stride_ns`, or has something new to look at. It
// seldom takes a horizon to see that it cannot: the member that is behind holds up most of the
// others.
static bool can_go(const struct sync *y, unsigned m, uint64_t stride_ns, const struct first_two *f)
{
    const struct sync_shared *s = y->shared;
    const struct sync_member *k = &s->machine[m];
    if (k->rx_due_ns < k->own_ns || s->fixed.end_ns < k->own_ns)
        return true;
    uint64_t goal = earlier(k->own_ns, SYNC_NEVER) + stride_ns;
    unsigned first = f->machine[0] == m;
    if (f->source_ns[first] < SYNC_NEVER &&
        f->source_ns[first] + s->fixed.distance_ns[f->machine[first]][m] <= goal)
        return false;
    return sync_horizon(y, m) > goal;
}

// Whether member `index` is at work, or has been let go and will be.
bool sync_at_work(const struct sync *y, unsigned index)
{
    return member(y, index)->waiting == SYNC_RUNNING ||
           atomic_load_explicit(go(y, index), memory_order_relaxed) != SYNC_STAY;
}

struct sync_wake_set sync_release(const struct sync *y)
{
    const struct sync_shared *s = y->shared;
    const struct first_two first = find_first_two(y);
    struct sync_wake_set set = {0};
    bool active = sync_at_work(y, SYNC_FABRIC);
    if (!active && (sync_fabric_work(y) < sync_safe(y) || sync_all_finished(y))) {
        let_go(y, SYNC_FABRIC, SYNC_LOOK, &set);
        active = true;
    }
    for (unsigned m = 0; m < y->machines; m++) {
        const struct sync_member *k = &s->machine[m];
        if (k->finished)
            continue;
        if (k->waiting == SYNC_AT_HORIZON && !sync_at_work(y, m) &&
            can_go(y, m, earlier(k->stride_ns, SYNC_NEVER), &first))
            let_go(y, m, SYNC_LOOK, &set);
        active |= sync_at_work(y, m);
    }
    // A wait for a whole stride must not become a wait for one another. That one member can go on
    // by less is shown in README.md.
    for (unsigned m = 0; m < y->machines && !active; m++)
        if (s->machine[m].waiting == SYNC_AT_HORIZON && !s->machine[m].finished &&
            can_go(y, m, 0, &first))
            let_go(y, m, SYNC_GO_ANYHOW, &set);
    return set;
}

void sync_wake(const struct sync *y, struct sync_wake_set set)
{
    for (unsigned w = 0; w < sizeof set.words / sizeof set.words[0]; w++)
        for (uint64_t word = set.words[w]; word; word &= word - 1)
            wake_member(y, 64 * w + (unsigned)__builtin_ctzll(word));
}

void sync_ring_bell(const struct sync *y, unsigned index)
{
    atomic_store(go(y, index), SYNC_LOOK);
    if (atomic_load(&member(y, index)->asleep))
        wake_member(y, index);
}

void sync_quiet(const struct sync *y)
{
    atomic_store(go(y, y->index), SYNC_STAY);
}

enum sync_nap sync_nap(const struct sync *y, unsigned spins, bool *slept)
{
    _Atomic uint32_t *let = go(y, y->index);
    for (unsigned i = 0; i < spins && !atomic_load_explicit(let, memory_order_acquire); i++)
        pause_briefly();
    *slept = !atomic_load(let);
    if (*slept) {
        struct timespec patience = {0, ABORT_CHECK_NS};
        struct sync_member *me = member(y, y->index);
        atomic_store(&me->asleep, 1);
        if (!atomic_load(let))
            syscall(SYS_futex, let, FUTEX_WAIT, 0, &patience, NULL, 0);
        atomic_store(&me->asleep, 0);
    }
    if (sync_aborted_by(y) >= 0)
        return SYNC_ABORTED;
    uint32_t how = atomic_load(let);
    if (how == SYNC_GO_ANYHOW)
        return SYNC_URGED;
    return how ? SYNC_WOKEN : SYNC_STILL_WAITING;
}

// ---- The end for everybody --------------------------------------------------------------------

void sync_abort(const struct sync *y)
{
    atomic_store(&member(y, y->index)->aborted, 1);
    atomic_store(&y->shared->bell.abort.value, 1);
    for (unsigned m = 0; m <= y->machines; m++) {
        unsigned index = m < y->machines ? m : SYNC_FABRIC;
        atomic_store(go(y, index), SYNC_LOOK);
        wake_member(y, index);
    }
}

int sync_aborted_by(const struct sync *y)
{
    if (!atomic_load(&y->shared->bell.abort.value))
        return -1;
    // Everybody may write the word, each its own page only.
    for (unsigned m = 0; m < y->machines; m++)
        if (atomic_load(&y->shared->machine[m].aborted))
            return (int)m;
    return atomic_load(&y->shared->fabric.aborted) ? (int)SYNC_FABRIC : -1;
}
