// SPDX-License-Identifier: GPL-2.0-or-later
// Machines and a fabric as threads over one shared memory: whatever the host's scheduling does,
// each machine sees the same frames at the same times, nothing arrives late, and no machine waits
// for ever.
#define _GNU_SOURCE
#include "check.h"

#include "../inbox.h"
#include "../sync.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

enum { MACHINES = 4, FRAME_BYTES = 64 };
static const uint64_t END_NS = 3000 * 1000;
static const uint64_t WIRE_NS[MACHINES][MACHINES] = {
    // A ring of wires with unlike lengths; 0: not joined.
    {0, 90, 0, 700},
    {90, 0, 35, 0},
    {0, 35, 0, 260},
    {700, 0, 260, 0},
};

static struct sync run[MACHINES + 1]; // as each member sees it, the fabric last
static struct sync_end sends[2][MACHINES], receives[2][MACHINES]; // of the fabric, of the machines
static unsigned disturbance; // how often threads yield at bad moments
static unsigned spins;       // pauses that a wait stays awake
static uint64_t stride_ns;   // how far a machine wants to get before it is let go

struct machine {
    unsigned index;
    unsigned long long random; // decides what it does: part of the outcome
    unsigned long long noise;  // decides when it yields: must not be part of it
    uint64_t hash;
    uint64_t received, sent;
    struct inbox inbox;
};

static void maybe_yield(unsigned long long *noise)
{
    if (disturbance && next_random(noise) % disturbance == 0)
        sched_yield();
}

static void mix(uint64_t *hash, uint64_t value)
{
    *hash = (*hash ^ value) * 0x100000001b3ULL;
}

static void release(const struct sync *y)
{
    struct sync_wake_set wake = sync_release(y);
    sync_unlock(y);
    sync_wake(y, wake);
}

static void send_frame(struct machine *m, uint64_t now)
{
    unsigned to = (m->index + (next_random(&m->random) % 2 ? 1 : MACHINES - 1)) % MACHINES;
    struct sync *y = &run[m->index];
    struct sync_slot *slot;
    while (sync_room(&sends[1][m->index], &slot) != SYNC_THERE)
        sched_yield();
    *slot = (struct sync_slot){.time_ns = now, .length = FRAME_BYTES, .nic = (uint16_t)to};
    memset(slot->data, (int)(m->sent++ & 0xff), FRAME_BYTES);
    CHECK(sync_lock(y));
    sync_push(&sends[1][m->index]);
    struct sync_member *me = &y->shared->machine[m->index];
    me->own_ns = now;
    if (now < me->tx_floor_ns)
        me->tx_floor_ns = now;
    release(y);
}

// Runs to `event`, or to something that is due before; returns the time reached.
static uint64_t go_to(struct machine *m, uint64_t now, uint64_t wish)
{
    struct sync *y = &run[m->index];
    struct sync_member *me = &y->shared->machine[m->index];
    // never late
    const struct sync_expect expect = {.earliest_ns = now, .nics = MACHINES};
    uint64_t stride = stride_ns;
    for (;;) {
        CHECK(sync_lock(y));
        struct sync_entry e;
        enum sync_look look;
        struct sync_end *end = &receives[1][m->index];
        for (; (look = sync_first(end, &expect, &e)) == SYNC_THERE; sync_pop(end))
            inbox_add(&m->inbox, e.time_ns, e.nic, e.data, e.length);
        CHECK(look == SYNC_NOTHING);
        me->rx_due_ns = SYNC_NEVER;
        uint64_t event = inbox_first(&m->inbox) < wish ? inbox_first(&m->inbox) : wish;
        me->own_ns = event;
        me->stride_ns = stride;
        bool may = sync_horizon(y, m->index) > event + stride;
        me->waiting = may ? SYNC_RUNNING : SYNC_AT_HORIZON;
        if (!may)
            sync_quiet(y);
        release(y);
        maybe_yield(&m->noise);
        if (may)
            return event;
        enum sync_nap how = sync_nap(y, spins, &(bool){false});
        CHECK(how != SYNC_ABORTED);
        if (how == SYNC_URGED)
            stride = 0;
    }
}

static void *machine(void *argument)
{
    struct machine *m = argument;
    uint64_t now = 0, next_act = next_random(&m->random) % 500;
    while (now < END_NS) {
        now = go_to(m, now, next_act < END_NS ? next_act : END_NS);
        for (struct letter *l; (l = inbox_take(&m->inbox, now)); free(l)) {
            mix(&m->hash, l->due_ns);
            mix(&m->hash, l->nic);
            mix(&m->hash, l->frame[0]);
            m->received++;
            if (next_random(&m->random) % 3 == 0)
                send_frame(m, now); // an answer at once
        }
        if (now == next_act) {
            for (unsigned burst = (unsigned)(next_random(&m->random) % 3); burst; burst--)
                send_frame(m, now); // several at one instant
            next_act = now + 1 +
                       next_random(&m->random) % (next_random(&m->random) % 8 ? 300 : 20000);
        }
    }
    struct sync *y = &run[m->index];
    CHECK(sync_lock(y));
    y->shared->machine[m->index].own_ns = SYNC_NEVER;
    y->shared->machine[m->index].finished = 1;
    release(y);
    return NULL;
}

// Wires of fixed length. A frame is first held for half of its way, so that the fabric has work of
// its own.
struct in_flight {
    uint64_t decide_ns, due_ns, order;
    unsigned from, to;
    uint8_t byte;
    bool known; // taken, not yet looked at
};

static void *fabric(void *argument)
{
    unsigned long long noise = *(unsigned long long *)argument;
    static struct in_flight flights[1 << 16];
    unsigned used = 0;
    uint64_t order = 0, pushed[MACHINES], work = 0;
    struct sync *y = &run[MACHINES];
    struct sync_shared *shared = y->shared;
    struct sync_member *machines = shared->machine;
    const struct sync_expect expect = {.nics = MACHINES};
    for (unsigned m = 0; m < MACHINES; m++)
        pushed[m] = SYNC_NEVER;
    for (;;) {
        CHECK(sync_lock(y));
        for (unsigned m = 0; m < MACHINES; m++) {
            struct sync_end *end = &receives[0][m];
            for (struct sync_entry e; sync_first(end, &expect, &e) == SYNC_THERE; sync_pop(end)) {
                uint64_t wire = WIRE_NS[m][e.nic];
                CHECK(used < sizeof flights / sizeof *flights);
                flights[used++] = (struct in_flight){.decide_ns = e.time_ns,
                                                     .due_ns = e.time_ns + wire,
                                                     .order = order,
                                                     .from = m,
                                                     .to = e.nic,
                                                     .byte = e.data[0],
                                                     .known = false};
                order++;
            }
        }
        uint64_t next = SYNC_NEVER;
        for (unsigned m = 0; m < MACHINES; m++) {
            machines[m].tx_floor_ns = machines[m].bound_ns = SYNC_NEVER;
            if (pushed[m] < machines[m].rx_due_ns)
                machines[m].rx_due_ns = pushed[m];
            pushed[m] = SYNC_NEVER;
        }
        for (unsigned i = 0; i < used; i++) {
            struct in_flight *f = &flights[i];
            uint64_t *limit = f->known ? &machines[f->to].bound_ns : &machines[f->from].tx_floor_ns;
            uint64_t at = f->known ? f->due_ns : f->decide_ns;
            if (at < *limit)
                *limit = at;
            if (f->known && f->decide_ns < next)
                next = f->decide_ns;
        }
        shared->fixed.fabric_next_ns = next;
        uint64_t safe = sync_safe(y);
        bool over = sync_all_finished(y);
        work = sync_fabric_work(y);
        shared->fabric.waiting = !(work < safe) && !over;
        if (shared->fabric.waiting)
            sync_quiet(y);
        release(y);
        maybe_yield(&noise);
        if (over)
            return NULL;
        if (!(work < safe)) {
            CHECK(sync_nap(y, spins, &(bool){false}) != SYNC_ABORTED);
            continue;
        }
        // All that happens before `safe`, in order of (time, machine, order of sending).
        for (;;) {
            struct in_flight *first = NULL;
            for (unsigned i = 0; i < used; i++) {
                struct in_flight *f = &flights[i];
                if (f->decide_ns < safe &&
                    (!first || f->decide_ns < first->decide_ns ||
                     (f->decide_ns == first->decide_ns &&
                      (f->known > first->known ||
                       (f->known == first->known &&
                        (f->from < first->from ||
                         (f->from == first->from && f->order < first->order)))))))
                    first = f;
            }
            if (!first)
                break;
            if (!first->known) {
                first->known = true;
                first->decide_ns += WIRE_NS[first->from][first->to] / 2;
                continue;
            }
            struct sync_slot *slot;
            while (sync_room(&sends[0][first->to], &slot) != SYNC_THERE)
                sched_yield();
            *slot = (struct sync_slot){
                .time_ns = first->due_ns, .length = FRAME_BYTES, .nic = (uint16_t)first->from};
            memset(slot->data, first->byte, FRAME_BYTES);
            sync_push(&sends[0][first->to]);
            if (first->due_ns < pushed[first->to])
                pushed[first->to] = first->due_ns;
            *first = flights[--used];
            maybe_yield(&noise);
        }
    }
}

static uint64_t simulate(unsigned yields, unsigned long long noise, uint64_t *received)
{
    static struct machine machines[MACHINES];
    struct sync_shared *shared = aligned_alloc(SYNC_PAGE, sync_size());
    CHECK(shared);
    memset(shared, 0, sync_size());
    sync_format(shared, MACHINES, FRAME_BYTES);
    void *rings[MACHINES];
    for (unsigned m = 0; m <= MACHINES; m++)
        run[m] = (struct sync){
            .shared = shared, .index = m < MACHINES ? m : SYNC_FABRIC, .machines = MACHINES};
    for (unsigned m = 0; m < MACHINES; m++) {
        uint64_t bytes = sync_rings_bytes(FRAME_BYTES);
        CHECK(rings[m] = aligned_alloc(64, bytes));
        memset(rings[m], 0, bytes);
        for (unsigned side = 0; side < 2; side++)
            sync_ends(rings[m], shared->fixed.slot_bytes, side == 0, &sends[side][m],
                      &receives[side][m]);
    }
    disturbance = yields;
    for (unsigned a = 0; a < MACHINES; a++)
        for (unsigned b = 0; b < MACHINES; b++)
            shared->fixed.distance_ns[a][b] = WIRE_NS[a][b] ? WIRE_NS[a][b] : SYNC_NEVER;
    for (unsigned via = 0; via < MACHINES; via++)
        for (unsigned a = 0; a < MACHINES; a++)
            for (unsigned b = 0; b < MACHINES; b++) {
                uint64_t sum = shared->fixed.distance_ns[a][via] +
                               shared->fixed.distance_ns[via][b];
                if (sum < shared->fixed.distance_ns[a][b])
                    shared->fixed.distance_ns[a][b] = sum;
            }
    pthread_t threads[MACHINES + 1];
    CHECK(pthread_create(&threads[MACHINES], NULL, fabric, &noise) == 0);
    for (unsigned i = 0; i < MACHINES; i++) {
        unsigned m = noise % 2 ? i : MACHINES - 1 - i; // the order of starting must not matter
        machines[m] = (struct machine){.index = m, .random = 1000 + m, .noise = noise + m + 1};
        CHECK(pthread_create(&threads[m], NULL, machine, &machines[m]) == 0);
    }
    for (unsigned i = 0; i <= MACHINES; i++)
        pthread_join(threads[i], NULL);
    uint64_t hash = 0xcbf29ce484222325ULL;
    *received = 0;
    for (unsigned m = 0; m < MACHINES; m++) {
        mix(&hash, machines[m].hash);
        *received += machines[m].received;
        for (struct letter *l; (l = inbox_take(&machines[m].inbox, UINT64_MAX)); free(l))
            continue;
        free(machines[m].inbox.heap);
        free(rings[m]);
    }
    free(shared);
    return hash;
}

static void test_every_interleaving_gives_the_same_frames(void)
{
    uint64_t received, again;
    uint64_t expected = simulate(0, 1, &received);
    CHECK(received > 2000); // something happened
    const struct {
        unsigned spins;
        uint64_t stride_ns; // 17: half of the least wire; 5000: beyond every horizon, so that all
                            // wait for all
        unsigned yields;
        unsigned long long noise;
    } variations[] = {{300, 0, 0, 2},  {0, 0, 3, 3},     {0, 17, 2, 4},
                      {2000, 0, 5, 5}, {2000, 17, 0, 8}, {100, 17, 2, 6},
                      {0, 0, 1, 7},    {0, 5000, 0, 9},  {300, 5000, 3, 10}};
    enum { VARIATIONS = sizeof variations / sizeof *variations };
    for (size_t i = 0; i < VARIATIONS; i++) {
        spins = variations[i].spins;
        stride_ns = variations[i].stride_ns;
        uint64_t hash = simulate(variations[i].yields, variations[i].noise, &again);
        CHECK(again == received);
        CHECK(hash == expected);
    }
    printf("%llu frames received alike in %d runs\n", (unsigned long long)received, VARIATIONS + 1);
}

int main(void)
{
    alarm(600); // a deadlock ends the test; a busy host must not
    RUN(test_every_interleaving_gives_the_same_frames);
    printf("%u passed, 0 failed\n", tests_passed);
    return 0;
}
