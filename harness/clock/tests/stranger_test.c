// SPDX-License-Identifier: GPL-2.0-or-later
// A member of the run that writes what it likes into all that is mapped into it: what the others
// read must be right or refused, and what is not mapped for it must be out of its reach.
#define _GNU_SOURCE
#include "check.h"

#include "../inbox.h"
#include "../sync.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FRAME_BYTES = 112, NICS = 3, MOST = FRAME_BYTES };

static unsigned long entries = 200000;

// Half of the numbers are near what is allowed, where mistakes are; the others are anything.
static uint64_t number(unsigned long long *random, uint64_t limit)
{
    switch (next_random(random) % 4) {
    case 0:
        return next_random(random);
    case 1:
        return limit - 2 + next_random(random) % 4;
    default:
        return next_random(random) % (limit + 1);
    }
}

struct side {
    void *rings;
    struct sync_end sends, receives;
};

static struct side side_of(void *rings, bool fabric)
{
    struct side side = {.rings = rings};
    sync_ends(rings, 128, fabric, &side.sends, &side.receives);
    return side;
}

static void *new_rings(void)
{
    uint64_t bytes = sync_rings_bytes(FRAME_BYTES);
    void *rings = aligned_alloc(64, bytes); // the sanitizer sees every byte past it
    CHECK(rings);
    memset(rings, 0, bytes);
    return rings;
}

static struct sync_slot *slot_at(struct sync_ring *ring, uint64_t count)
{
    return (struct sync_slot *)(ring->slots + count % SYNC_RING_SLOTS * 128);
}

// What must come of an entry, in the words of the contract.
static bool is_right(const struct sync_slot *s)
{
    return s->length <= MOST && s->nic < NICS && s->kind <= SYNC_TX_DONE && s->time_ns < SYNC_NEVER;
}

static void test_what_a_machine_drains_is_right_or_refused(void)
{
    unsigned long long random = 20261122;
    struct side me = side_of(new_rings(), false);
    struct sync_ring *ring = me.receives.ring;
    struct inbox inbox = {0};
    struct done_queue done[NICS] = {0};
    unsigned long taken = 0, finished = 0, refused[SYNC_BAD_TIME + 1] = {0};
    for (unsigned long i = 0; i < entries; i++) {
        struct sync_slot *s = slot_at(ring, me.receives.count);
        *s = (struct sync_slot){.time_ns = number(&random, SYNC_NEVER),
                                .length = (uint32_t)number(&random, MOST),
                                .nic = (uint16_t)number(&random, NICS),
                                .kind = (uint16_t)number(&random, 1)};
        memset(s->data, (int)(i & 0xff), FRAME_BYTES);
        bool counter = next_random(&random) % 16 == 0;
        uint64_t used = counter ? number(&random, SYNC_RING_SLOTS) : 1;
        uint64_t before = me.receives.count;
        if (used > 1 && used <= SYNC_RING_SLOTS) // the entries behind it are refused
            slot_at(ring, before + 1)->length = UINT32_MAX;
        atomic_store(&ring->written, before + used);
        bool fits = used >= 1 && used <= SYNC_RING_SLOTS;
        bool right = is_right(s);
        enum sync_look look = inbox_drain(&inbox, done, &me.receives, NICS);
        CHECK(me.receives.count - before == (fits && right));
        if (fits && right && s->kind == SYNC_TX_DONE)
            finished++;
        if (fits && right && s->kind == SYNC_FRAME) {
            struct letter *letter = inbox_take(&inbox, SYNC_NEVER);
            CHECK(letter && letter->due_ns == s->time_ns && letter->length == s->length);
            for (unsigned b = 0; b < letter->length; b++)
                CHECK(letter->frame[b] == (i & 0xff));
            free(letter);
            taken++;
        }
        if (used == 0)
            CHECK(look == SYNC_NOTHING);
        else if (!fits)
            CHECK(look == SYNC_BAD_COUNTER);
        else if (used == 1 && right)
            CHECK(look == SYNC_NOTHING);
        else
            CHECK(look >= SYNC_BAD_LENGTH && *sync_fault(look));
        refused[look]++;
        CHECK(inbox_first(&inbox) == SYNC_NEVER);
        for (unsigned n = 0; n < NICS; n++)
            done_pop_before(&done[n], SYNC_NEVER);
    }
    CHECK(taken > entries / 20 && finished > entries / 20);
    for (unsigned look = SYNC_BAD_COUNTER; look <= SYNC_BAD_TIME; look++)
        CHECK(refused[look] > entries / 1000);
    printf(
        "%lu entries: %lu frames, %lu ends, %lu counters, %lu lengths, %lu interfaces, %lu kinds, "
        "%lu times refused\n",
        entries, taken, finished, refused[SYNC_BAD_COUNTER], refused[SYNC_BAD_LENGTH],
        refused[SYNC_BAD_NIC], refused[SYNC_BAD_KIND], refused[SYNC_BAD_TIME]);
    free(me.rings);
}

// What the fabric takes from a machine is not earlier than what it has worked in.
static void test_a_time_is_between_the_earliest_and_never(void)
{
    static const struct {
        uint64_t time_ns;
        enum sync_look look;
    } ROWS[] = {
        {0, SYNC_BAD_TIME},           {999, SYNC_BAD_TIME},        {1000, SYNC_THERE},
        {SYNC_NEVER - 1, SYNC_THERE}, {SYNC_NEVER, SYNC_BAD_TIME}, {UINT64_MAX, SYNC_BAD_TIME},
    };
    const struct sync_expect expect = {.earliest_ns = 1000, .nics = NICS};
    struct side me = side_of(new_rings(), false);
    for (unsigned i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        slot_at(me.receives.ring, me.receives.count)->time_ns = ROWS[i].time_ns;
        atomic_store(&me.receives.ring->written, me.receives.count + 1);
        struct sync_entry entry;
        CHECK(sync_first(&me.receives, &expect, &entry) == ROWS[i].look);
        me.receives.count++;
    }
    free(me.rings);
}

static void test_room_is_never_outside_of_the_ring(void)
{
    unsigned long long random = 7;
    struct side me = side_of(new_rings(), false);
    struct sync_ring *ring = me.sends.ring;
    for (unsigned long i = 0; i < entries; i++) {
        uint64_t used = number(&random, SYNC_RING_SLOTS);
        atomic_store(&ring->read, me.sends.count - used);
        struct sync_slot *s = NULL;
        enum sync_look look = sync_room(&me.sends, &s);
        CHECK(look == (used > SYNC_RING_SLOTS    ? SYNC_BAD_COUNTER
                       : used == SYNC_RING_SLOTS ? SYNC_NOTHING
                                                 : SYNC_THERE));
        CHECK(look != SYNC_THERE || s == slot_at(ring, me.sends.count));
        if (look == SYNC_THERE) {
            memset(s->data, 1, MOST);
            sync_push(&me.sends);
        }
    }
    free(me.rings);
}

static _Atomic bool over;

// Changes the header of each slot as fast as it can, while the other side reads it.
static void *scribble(void *argument)
{
    struct sync_ring *ring = argument;
    unsigned long long random = 99;
    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        struct sync_slot *s = slot_at(ring, next_random(&random));
        __atomic_store_n(&s->length, (uint32_t)number(&random, MOST), __ATOMIC_RELAXED);
        __atomic_store_n(&s->nic, (uint16_t)number(&random, NICS), __ATOMIC_RELAXED);
    }
    return NULL;
}

static void test_what_was_checked_is_what_is_used(void)
{
    struct side me = side_of(new_rings(), false);
    struct sync_ring *ring = me.receives.ring;
    struct inbox inbox = {0};
    struct done_queue done[NICS] = {0};
    pthread_t scribbler;
    CHECK(pthread_create(&scribbler, NULL, scribble, ring) == 0);
    unsigned long taken = 0, refused = 0;
    for (unsigned long i = 0; i < entries; i++) {
        atomic_store(&ring->written, me.receives.count + 1);
        enum sync_look look = inbox_drain(&inbox, done, &me.receives, NICS);
        CHECK(look == SYNC_NOTHING || look == SYNC_BAD_LENGTH || look == SYNC_BAD_NIC);
        if (look != SYNC_NOTHING) {
            refused++;
            me.receives.count++; // a run ends here
        }
        for (struct letter *l; (l = inbox_take(&inbox, SYNC_NEVER)); free(l)) {
            CHECK(l->length <= MOST && l->nic < NICS);
            taken++;
        }
    }
    atomic_store(&over, true);
    pthread_join(scribbler, NULL);
    CHECK(taken + refused == entries);
    free(me.rings);
}

// ---- What is mapped ---------------------------------------------------------------------------

static char folder[] = "/tmp/sundial-stranger-XXXXXX";

static void make_file(const char *name, const void *content, uint64_t bytes)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    CHECK(!content || write(fd, content, bytes) == (ssize_t)bytes);
    close(fd);
}

static struct sync_shared *times(void)
{
    struct sync_shared *s = aligned_alloc(SYNC_PAGE, sync_size());
    CHECK(s);
    memset(s, 0, sync_size());
    sync_format(s, 2, FRAME_BYTES);
    return s;
}

static void make_run(const struct sync_shared *s)
{
    make_file("times", s, sync_size());
    make_file("rings-0", NULL, sync_rings_bytes(FRAME_BYTES));
    make_file("rings-1", NULL, sync_rings_bytes(FRAME_BYTES));
}

// Whether a machine that has mapped the run as it should dies of writing to a word.
static bool is_killed_by_writing(const struct sync_shared *shared, const void *word)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        struct sync y;
        struct sync_end sends, receives;
        if (sync_map(&y, folder, 1, &sends, &receives))
            _exit(2);
        memset(sends.ring->slots, 1, 100);
        memset(receives.ring->slots, 1, 100);
        size_t offset = (size_t)((const char *)word - (const char *)shared);
        ((volatile char *)y.shared)[offset] = 1;
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void test_a_machine_can_write_its_own_page_and_the_bell_only(void)
{
    struct sync_shared *s = times();
    make_run(s);
    CHECK(!is_killed_by_writing(s, &s->machine[1].own_ns));
    CHECK(!is_killed_by_writing(s, &s->machine[1].gates));
    CHECK(!is_killed_by_writing(s, &s->bell.lock));
    CHECK(!is_killed_by_writing(s, &s->bell.go[0]));
    CHECK(is_killed_by_writing(s, &s->machine[0].own_ns));
    CHECK(is_killed_by_writing(s, &s->machine[0].gates));
    CHECK(is_killed_by_writing(s, &s->machine[2].own_ns));
    CHECK(is_killed_by_writing(s, &s->fabric.waiting));
    CHECK(is_killed_by_writing(s, &s->fixed.end_ns));
    CHECK(is_killed_by_writing(s, &s->fixed.machine_count));
    CHECK(is_killed_by_writing(s, &s->fixed.slot_bytes));
    CHECK(is_killed_by_writing(s, &s->fixed.distance_ns[1][0]));
    free(s);
}

static const char *mapped(const struct sync_shared *s, unsigned machine)
{
    static struct sync y;
    static struct sync_end sends, receives;
    if (s)
        make_run(s);
    const char *wrong = sync_map(&y, folder, machine, &sends, &receives);
    return wrong ? wrong : "";
}

static void test_constants_that_cannot_be_are_refused(void)
{
    struct sync_shared *s = times();
    CHECK(!*mapped(s, 0) && !*mapped(s, 1));
    CHECK(strstr(mapped(s, 2), "not among the machines"));
    CHECK(strstr(mapped(s, 5000), "not among the machines"));
    s->fixed.machine_count = 5000;
    CHECK(strstr(mapped(s, 0), "not among the machines"));
    s->fixed.machine_count = 2;
    const uint32_t sizes[] = {0, 16, 100, 1 << 30, UINT32_MAX - 63};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        s->fixed.slot_bytes = sizes[i];
        CHECK(strstr(mapped(s, 0), "impossible size"));
    }
    s->fixed.slot_bytes = 256; // the file has rings of smaller slots
    CHECK(strstr(mapped(s, 0), "rings"));
    s->fixed.slot_bytes = 128;
    s->fixed.version++;
    CHECK(strstr(mapped(s, 0), "another layout"));
    s->fixed.version--;
    CHECK(!*mapped(s, 0));
    make_file("rings-0", NULL, sync_rings_bytes(FRAME_BYTES) - 1);
    CHECK(strstr(mapped(NULL, 0), "rings"));
    make_file("times", s, 100);
    CHECK(strstr(mapped(NULL, 0), "wrong size"));
    free(s);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        entries = strtoul(argv[1], NULL, 10);
    CHECK(entries >= 20000);
    RUN(test_what_a_machine_drains_is_right_or_refused);
    RUN(test_a_time_is_between_the_earliest_and_never);
    RUN(test_room_is_never_outside_of_the_ring);
    RUN(test_what_was_checked_is_what_is_used);
    CHECK(mkdtemp(folder));
    RUN(test_a_machine_can_write_its_own_page_and_the_bell_only);
    RUN(test_constants_that_cannot_be_are_refused);
    const char *const names[] = {"times", "rings-0", "rings-1"};
    for (unsigned i = 0; i < 3; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
    printf("%u passed, 0 failed\n", tests_passed);
    return 0;
}
