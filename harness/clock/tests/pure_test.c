// SPDX-License-Identifier: GPL-2.0-or-later
// The parts without QEMU and without threads: arguments, points, inbox, arithmetic of horizons.
#define _GNU_SOURCE
#include "check.h"

#include "../gate.h"
#include "../inbox.h"
#include "../options.h"
#include "../points.h"
#include "../sync.h"

#include <string.h>

static void test_options(void)
{
    struct options o;
    char *good[] = {"mode=run",         "shm=/dev/shm/x", "machine=3", "nics=2",
                    "zero=17000200000", "shift=3",        "spins=0",   "jitter=500"};
    CHECK(options_parse(&o, 8, good) == NULL);
    CHECK(o.mode == MODE_RUN && o.machine == 3 && o.nics == 2 && o.zero_ns == 17000200000 &&
          o.instruction_ns == 8 && o.spins == 0);
    CHECK(strcmp(o.shm, "/dev/shm/x") == 0 && o.supervisor_fd == -1 && o.jitter_ns == 500);

    char no_machine[32]; // one more than there are
    snprintf(no_machine, sizeof no_machine, "machine=%u", SYNC_MACHINES);
    char *bad[][2] = {
        {"mode=fast", "shm=/x"},
        {no_machine, "shm=/x"},
        {"machine=-1", "shm=/x"},
        {"zero=", "shm=/x"},
        {"zero=12ns", "shm=/x"},
        {"nics=0", "shm=/x"},
        {"nics=9", "shm=/x"},
        {"shift=11", "shm=/x"},
        {"colour=red", "shm=/x"},
        {"shm", "zero=1"},
        {"shm=", "zero=1"},
        {"mode=run", "zero=1"},
        {"mode=cold", "shm=/x"},
        {"jitter=0", "zero=1"},
        {"looks=2", "shm=/x"},
        {"looks=", "shm=/x"},
        {"mode=run", "shm=/x"},
        {"mode=boot", "shift=3"},
        {"supervisor=0", "mode=watch"},
        {"trace=/x", "mode=watch"},
        {"zero=99999999999999999999", "shm=/x"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(options_parse(&o, 2, bad[i]) != NULL);
}

static void test_only_a_run_loses_its_power(void)
{
    struct options o;
    char *run[] = {"shm=/x", "zero=1", "off=2000"};
    CHECK(options_parse(&o, 2, run) == NULL && o.off_ns == SYNC_NEVER);
    CHECK(options_parse(&o, 3, run) == NULL && o.off_ns == 2000);
    char *boot[] = {"mode=boot", "report=/r", "off=2000"};
    CHECK(options_parse(&o, 3, boot) != NULL);
    char *at_once[] = {"shm=/x", "zero=1", "off=0"};
    CHECK(options_parse(&o, 3, at_once) != NULL);
}

static void test_looks_are_made_unless_forbidden(void)
{
    struct options o;
    char *run[] = {"shm=/x", "zero=1", "looks=0"};
    CHECK(options_parse(&o, 2, run) == NULL && o.looks);
    CHECK(options_parse(&o, 3, run) == NULL && !o.looks);
}

static void test_check_needs_nothing_else(void)
{
    struct options o;
    char *check[] = {"mode=check"};
    CHECK(options_parse(&o, 1, check) == NULL && o.mode == MODE_CHECK);
}

static void test_a_trace_belongs_to_a_run(void)
{
    struct options o;
    char *good[] = {"shm=/x", "zero=1", "trace=/t", "points=/p"};
    CHECK(options_parse(&o, 4, good) == NULL);
    CHECK(strcmp(o.trace, "/t") == 0 && strcmp(o.points, "/p") == 0);
    CHECK(options_parse(&o, 3, good) != NULL);
    char *boot[] = {"mode=boot", "report=/r", "trace=/t", "points=/p"};
    CHECK(options_parse(&o, 4, boot) != NULL);
}

// The points of TEXT and the number of the line that is wrong.
static unsigned parse(struct points *points, const char *text)
{
    char *copy = strdup(text);
    unsigned line = points_parse(points, copy);
    free(copy);
    return line;
}

static void test_points(void)
{
    struct points points;
    CHECK(parse(&points, "") == 0 && points.count == 0 && points_from(&points, 0) == NULL);
    free(points.all);

    CHECK(parse(&points, "401000 20 both\nffffffff81000000 1 entry\n400000 10 exit") == 0);
    CHECK(points.count == 3);
    const struct point *first = points_from(&points, 0);
    CHECK(first->address == 0x400000 && first->end == 0x400010 && first->number == 2);
    CHECK(!first->entry && first->exits);
    CHECK(points_from(&points, 0x40000f) == first);
    CHECK(points_from(&points, 0x400010)->number == 0);
    const struct point *last = points_from(&points, 0x401020);
    CHECK(last->address == 0xffffffff81000000 && last->entry && !last->exits);
    CHECK(points_from(&points, 0xffffffff81000001) == NULL);
    free(points.all);

    const char *bad[] = {
        "401000 20",
        "401000 0 both",
        "401000 20 never",
        "401000 20 both more",
        "401000 20 both 100000000",
        "401000 20 both 1 2",
        "0x401000 20 both",
        "401000 -1 both",
        "\n",
        "ffffffffffffffff 2 both",
        "1ffffffffffffffff 1 both",
        "401000 20 both\r",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(parse(&points, bad[i]) == 1);
        free(points.all);
    }
    CHECK(parse(&points, "401000 20 both\n400fff 2 both\n") != 0); // one inside the other
    free(points.all);

    // Functions of different programs: all of them are found, the longer one also behind the
    // shorter.
    CHECK(parse(&points, "401000 20 both ab\n401008 8 both ffffffff\n401020 8 both 0\n") == 0);
    CHECK(points.all[0].has_crc && points.all[0].crc == 0xab && points.all[2].crc == 0);
    CHECK(points_from(&points, 0x401018) == &points.all[0]);
    CHECK(points_from(&points, 0x401020) == &points.all[2]);
    free(points.all);
    // One of them without a CRC.
    CHECK(parse(&points, "401000 20 both ab\n401008 8 both\n") == 2);
    free(points.all);
    CHECK(parse(&points, "401000 20 both\n401004 2 both 1\n401008 8 both ab\n") != 0);
    free(points.all);

    CHECK(points_crc((const uint8_t *)"123456789", 9) ==
          0xcbf43926); // as every list of CRCs has it
    CHECK(points_crc(NULL, 0) == 0);

    enum { LINES = POINTS_MOST + 1, BYTES = 16 };
    char *many = calloc(LINES, BYTES);
    for (unsigned i = 0; i < LINES; i++)
        snprintf(many + strlen(many), BYTES, "%x 1 both\n", 0x400000 + i);
    CHECK(parse(&points, many) == LINES);
    free(points.all);
    free(many);
}

static void test_inbox_is_ordered(void)
{
    struct inbox inbox = {0};
    unsigned long long random = 42;
    enum { LETTERS = 5000 };
    for (unsigned i = 0; i < LETTERS; i++) {
        uint64_t due = next_random(&random) % 700; // many ties
        inbox_add(&inbox, due, (uint16_t)(i % 3), (const uint8_t *)&i, sizeof i);
    }
    uint64_t last_due = 0, last_sequence = 0;
    for (unsigned i = 0; i < LETTERS; i++) {
        uint64_t first = inbox_first(&inbox);
        CHECK(first == 0 || inbox_take(&inbox, first - 1) == NULL);
        struct letter *letter = inbox_take(&inbox, first);
        CHECK(letter && letter->due_ns == first && first >= last_due);
        CHECK(i == 0 || first > last_due || letter->sequence > last_sequence);
        unsigned number;
        memcpy(&number, letter->frame, sizeof number);
        CHECK(number == letter->sequence && letter->nic == number % 3);
        last_due = first;
        last_sequence = letter->sequence;
        free(letter);
    }
    CHECK(inbox_first(&inbox) == SYNC_NEVER && inbox_take(&inbox, UINT64_MAX) == NULL);
}

static void test_done_queue_counts_strictly_before(void)
{
    struct done_queue queue = {0};
    CHECK(done_first(&queue) == SYNC_NEVER && done_pop_before(&queue, 100) == 0);
    for (uint64_t t = 10; t <= 1000; t += 10)
        done_push(&queue, t);
    CHECK(done_pop_before(&queue, 10) == 0); // what ends now is still there
    CHECK(done_pop_before(&queue, 11) == 1);
    CHECK(done_pop_before(&queue, 505) == 49 && done_first(&queue) == 510);
    for (uint64_t t = 1010; t <= 3000; t += 10) // grows while it has wrapped
        done_push(&queue, t);
    CHECK(done_pop_before(&queue, UINT64_MAX / 8) == 250 && done_first(&queue) == SYNC_NEVER);
}

// The fabric's view of new memory for so many machines.
static struct sync view_in(struct sync_shared *s, unsigned machines)
{
    memset(s, 0, sync_size());
    sync_format(s, machines, 1514);
    return (struct sync){.shared = s, .index = SYNC_FABRIC, .machines = machines};
}

static struct sync view_of(unsigned machines)
{
    struct sync_shared *s = aligned_alloc(SYNC_PAGE, sync_size());
    CHECK(s);
    return view_in(s, machines);
}

// Three machines in a row, 0 - 1 - 2, wires of 100 and 30 ns.
static struct sync three(void)
{
    struct sync y = view_of(3);
    const uint64_t distance[3][3] = {{200, 100, 130}, {100, 60, 30}, {130, 30, 60}};
    for (unsigned a = 0; a < 3; a++)
        for (unsigned b = 0; b < 3; b++)
            y.shared->fixed.distance_ns[a][b] = distance[a][b];
    return y;
}

static void test_horizons(void)
{
    struct sync y = three();
    struct sync_shared *s = y.shared;
    struct sync_member *m = s->machine;
    m[0].own_ns = 1000, m[1].own_ns = 5000, m[2].own_ns = 900;
    CHECK(sync_horizon(&y, 0) == 1030); // 2 may send at 900, 130 away
    CHECK(sync_horizon(&y, 1) == 930);
    CHECK(sync_horizon(&y, 2) == 1130);
    CHECK(sync_safe(&y) == 900);

    // A frame of 0 that no member has seen: its answer limits 0 itself, its arrival the others.
    m[0].own_ns = 4000, m[2].own_ns = 6000, m[0].tx_floor_ns = 3000;
    CHECK(sync_horizon(&y, 0) == 3200);
    CHECK(sync_horizon(&y, 1) == 3100);
    CHECK(sync_horizon(&y, 2) == 3130);
    CHECK(sync_fabric_work(&y) == 3000 && sync_safe(&y) == 3100);

    // The fabric has worked it in: it is due at 1 at 3150, so 1 may send from then on.
    m[0].tx_floor_ns = SYNC_NEVER, m[1].bound_ns = 3150;
    CHECK(sync_horizon(&y, 1) == 3150 && sync_horizon(&y, 0) == 3250 &&
          sync_horizon(&y, 2) == 3180);
    // It is in the ring of 1: 1 may go on (it will drain it), the others are still limited by it.
    m[1].bound_ns = SYNC_NEVER, m[1].rx_due_ns = 3150;
    CHECK(sync_horizon(&y, 1) == 4100 && sync_horizon(&y, 0) == 3250 && sync_safe(&y) == 3150);

    // A stopped queue goes on when a frame is finished, and may then send.
    m[1].rx_due_ns = SYNC_NEVER, m[2].tx_done_bound_ns = 3500;
    CHECK(sync_horizon(&y, 1) == 4100);
    m[2].stopped = 1;
    CHECK(sync_horizon(&y, 1) == 3530 && sync_horizon(&y, 2) == 3500);
    // A place may come as soon as the fabric has taken what was handed in.
    m[2].tx_floor_ns = 3400;
    CHECK(sync_horizon(&y, 2) == 3401);
    m[2].tx_floor_ns = SYNC_NEVER;

    // Without power a machine limits no other by what is in its ring or on its way to it, but by
    // what it has handed in.
    m[1].own_ns = SYNC_NEVER, m[1].finished = 1, m[1].rx_due_ns = m[1].bound_ns = 3150;
    m[1].stopped = 1, m[1].tx_done_bound_ns = 3150;
    m[2].stopped = 0;
    CHECK(sync_horizon(&y, 0) == 6130 && sync_safe(&y) == 4000);
    m[1].tx_floor_ns = 5000;
    CHECK(sync_horizon(&y, 0) == 5100 && sync_fabric_work(&y) == 5000);
    m[1].tx_floor_ns = SYNC_NEVER;

    // Machines that have left limit no other; the end is near when all have.
    for (unsigned k = 0; k < 3; k++)
        m[k].own_ns = m[k].tx_done_bound_ns = SYNC_NEVER, m[k].finished = 1, m[k].stopped = 0;
    CHECK(sync_safe(&y) >= SYNC_NEVER && sync_all_finished(&y));
    free(s);
}

static void test_what_a_gate_promises(void)
{
    struct gate_view view = {.now = 1000,
                             .armed = 1000,
                             .own = 1000,
                             .due = 1500,
                             .place = SYNC_NEVER,
                             .end = SYNC_NEVER,
                             .halt = SYNC_NEVER,
                             .horizon = 1200};
    CHECK(gate_event(&view) == 1000); // it runs: it may send at once
    CHECK(gate_may_pass(&view, 1000, 0));
    CHECK(gate_may_pass(&view, 1000, 199) && !gate_may_pass(&view, 1000, 200)); // a stride
    view.horizon = 1000; // up to, not including
    CHECK(!gate_may_pass(&view, 1000, 0));

    view.idle = true, view.own = 4000;
    CHECK(gate_event(&view) == 1500); // the frame wakes it before its timer does
    view.place = 1300;
    CHECK(gate_event(&view) == 1300);
    view.due = view.place = 900; // due within this instruction
    CHECK(gate_event(&view) == 1000);

    view.due = view.place = SYNC_NEVER, view.end = 3000, view.horizon = 2999;
    CHECK(gate_event(&view) == 3000 && !gate_may_pass(&view, 3000, 0));
    view.horizon = 3000; // nothing happens at the end itself
    CHECK(gate_may_pass(&view, 3000, 0));
    view.now = 3000, view.horizon = 0;
    CHECK(gate_may_pass(&view, 3000, 0));
}

static void test_a_gate_where_the_machine_stands(void)
{
    struct gate_view view = {.now = 1000,
                             .armed = 1000,
                             .idle = true,
                             .own = 4000,
                             .due = SYNC_NEVER,
                             .place = SYNC_NEVER,
                             .end = SYNC_NEVER,
                             .halt = 2000,
                             .horizon = 2000};
    CHECK(gate_event(&view) == 2000); // no earlier event: it sleeps up to there
    CHECK(gate_may_pass(&view, 2000, 500));
    view.horizon = 1999;
    CHECK(!gate_may_pass(&view, 2000, 0));
    // There it waits as at any gate: what is due at that instant must have arrived.
    view.now = view.armed = view.horizon = 2000;
    CHECK(gate_event(&view) == 2000 && !gate_may_pass(&view, 2000, 0));
    view.horizon = 2001;
    CHECK(gate_may_pass(&view, 2000, 0));

    const struct gate_others alone = {.help = SYNC_NEVER, .grid = GATE_PUBLISH_NS};
    view = (struct gate_view){.now = 1234,
                              .armed = 1230,
                              .own = 1234,
                              .due = SYNC_NEVER,
                              .place = SYNC_NEVER,
                              .end = SYNC_NEVER,
                              .halt = 1500,
                              .horizon = SYNC_NEVER};
    CHECK(gate_next(&view, &alone, false).stop == 1500);
    view.halt = 1232; // within this instruction: a gate at its own time
    CHECK(gate_next(&view, &alone, false).stop == 1232);
    view.due = 1231;
    CHECK(gate_next(&view, &alone, false).stop == 1231);
}

static void test_what_a_gate_delivers(void)
{
    // The clock is a few ns past the gate: what is due between has a gate to come.
    struct gate_view view = {.now = 1007, .armed = 1000};
    CHECK(gate_delivers_by(&view) == 1000);
    CHECK(gate_is_moved(1008, 1007, false)); // a frame handed in: look just after
    CHECK(!gate_is_moved(1008, 1007, true)); // the CPU looks by itself
    CHECK(!gate_is_moved(1007, 1007, false) && !gate_is_moved(1000, 1007, false)); // due by now
}

static void test_what_a_gate_sees_of_the_others(void)
{
    struct sync y = three();
    struct sync_shared *s = y.shared;
    struct sync_member *m = s->machine;
    m[0].own_ns = 1000, m[1].own_ns = 5000, m[2].own_ns = 900;
    y.index = 0;
    struct gate_others others = gate_observe(&y, 1000, 4);
    CHECK(others.help == SYNC_NEVER &&
          others.grid == 100); // they run: 100 ns is my least lookahead
    m[1].waiting = m[2].waiting = SYNC_AT_HORIZON;
    others = gate_observe(&y, 1000, 4);
    CHECK(others.help == 4901 && others.grid == GATE_PUBLISH_NS); // 2 is behind me already
    others = gate_observe(&y, 700, 4);
    CHECK(others.help == 771); // 2 goes on when I am at 900 - 130 + 1
    m[2].stride_ns = 20;
    CHECK(gate_observe(&y, 700, 4).help == 791); // it wants to get to 920
    m[2].stride_ns = 0;
    s->bell.go[2].value = SYNC_LOOK; // it will go on anyway
    CHECK(gate_observe(&y, 700, 4).help == 4901 && gate_observe(&y, 700, 4).grid == 100);
    CHECK(gate_observe(&y, 700, 1).help == SYNC_NEVER); // and take the only core
    s->bell.go[2].value = SYNC_STAY;
    m[2].finished = 1;
    CHECK(gate_observe(&y, 700, 4).help == 4901);
    s->fabric.waiting = 1, s->fixed.fabric_next_ns = 2000;
    CHECK(gate_observe(&y, 700, 4).help == 2001);
    free(s);
}

// When a machine that cannot look by itself has its next gate.
static uint64_t first(const struct gate_view *view, const struct gate_others *others, bool sent)
{
    struct gate_plan plan = gate_next(view, others, sent);
    return plan.look < plan.stop ? plan.look : plan.stop;
}

static void test_when_to_look_again(void)
{
    const struct gate_others alone = {.help = SYNC_NEVER, .grid = GATE_PUBLISH_NS};
    struct gate_view view = {.now = 1234,
                             .armed = 1230,
                             .own = 1234,
                             .due = SYNC_NEVER,
                             .place = SYNC_NEVER,
                             .end = SYNC_NEVER,
                             .halt = SYNC_NEVER,
                             .horizon = SYNC_NEVER};
    CHECK(first(&view, &alone, false) == GATE_PUBLISH_NS); // the next point of the grid
    CHECK(first(&view, &alone, true) == 1235);
    view.horizon = 9000;
    CHECK(first(&view, &alone, false) == 9000);
    view.end = 8000;
    CHECK(first(&view, &alone, false) == 8000);
    const struct gate_others peer = {.help = 5000, .grid = 100};
    CHECK(first(&view, &peer, false) == 1300);
    view.due = 1250;
    CHECK(first(&view, &peer, false) == 1250);
    view.due = 1232; // within this instruction, after the gate: at its own time, once
    CHECK(first(&view, &peer, false) == 1232);
    view.due = SYNC_NEVER, view.place = 1232;
    CHECK(first(&view, &peer, false) == 1232);
    view.due = 1231; // which is first does not depend on which was known first
    CHECK(first(&view, &peer, false) == 1231);
    view.due = 1233;
    CHECK(first(&view, &peer, false) == 1232);
    view.due = SYNC_NEVER,
    view.armed = 1234; // a look, which leaves both to gates at their own times
    CHECK(first(&view, &peer, false) == 1232);
    view.armed = 1230;
    view.place = SYNC_NEVER, view.horizon = 1234;
    CHECK(first(&view, &alone, false) == 1235); // never at now

    // A look may come later than it is wished for, a delivery and the end may not.
    view.stride = 500, view.horizon = 9000;
    struct gate_plan plan = gate_next(&view, &peer, true);
    CHECK(plan.look == 1734 && plan.stop == 8000);
    view.horizon = 1600, view.due = 1700;
    plan = gate_next(&view, &peer, true);
    CHECK(plan.look == 1600 && plan.stop == 1700); // not beyond the horizon
}

static void test_release(void)
{
    struct sync y = three();
    struct sync_shared *s = y.shared;
    struct sync_member *m = s->machine;
    m[0].own_ns = 100, m[1].own_ns = 150, m[2].own_ns = 500;
    m[1].waiting = SYNC_AT_HORIZON; // horizon 200 > 150
    m[2].waiting = SYNC_AT_HORIZON; // horizon 180 < 500
    sync_release(&y);
    CHECK(s->bell.go[1].value == 1 && s->bell.go[2].value == 0 && s->bell.go[0].value == 0);
    m[2].rx_due_ns = 180; // something arrived before what it waits for
    sync_release(&y);
    CHECK(s->bell.go[2].value == 1);
    atomic_store(&s->bell.go[2].value, 0);
    m[2].rx_due_ns = SYNC_NEVER;
    s->fixed.end_ns = 400;
    sync_release(&y);
    CHECK(s->bell.go[2].value == 1);

    s->fabric.waiting = 1, s->fixed.fabric_next_ns = 100;
    sync_release(&y);
    CHECK(s->bell.go[SYNC_FABRIC].value == 0); // work only strictly before the safe time: 100
    m[0].own_ns = 101;
    sync_release(&y);
    CHECK(s->bell.go[SYNC_FABRIC].value == 1);
    free(s);
}

static void test_a_stride_is_waited_for_while_others_are_at_work(void)
{
    struct sync y = three();
    struct sync_shared *s = y.shared;
    struct sync_member *m = s->machine;
    s->fabric.waiting = 1;
    m[0].own_ns = 100, m[1].own_ns = 150, m[2].own_ns = 500;
    m[1].waiting = SYNC_AT_HORIZON, m[1].stride_ns = 50; // horizon 200: 50 ns, not more
    sync_release(&y);
    CHECK(s->bell.go[1].value == SYNC_STAY); // 0 is at work
    m[0].own_ns = 101;
    sync_release(&y);
    CHECK(s->bell.go[1].value == SYNC_LOOK);
    atomic_store(&s->bell.go[1].value, SYNC_STAY);

    // All wait for more than they can get: those that can go at all are let go.
    m[0].waiting = m[2].waiting = SYNC_AT_HORIZON,
    m[0].stride_ns = m[1].stride_ns = m[2].stride_ns = 1000;
    sync_release(&y);
    CHECK(s->bell.go[0].value == SYNC_GO_ANYHOW && s->bell.go[1].value == SYNC_GO_ANYHOW);
    CHECK(s->bell.go[2].value == SYNC_STAY); // horizon 180
    // One of them has been woken and is not there yet: that is enough.
    atomic_store(&s->bell.go[1].value, SYNC_STAY);
    sync_release(&y);
    CHECK(s->bell.go[1].value == SYNC_STAY);
    // Nor while the fabric is at work.
    atomic_store(&s->bell.go[0].value, SYNC_STAY);
    s->fabric.waiting = 0;
    sync_release(&y);
    CHECK(s->bell.go[0].value == SYNC_STAY && s->bell.go[1].value == SYNC_STAY);
    free(s);
}

static bool has(struct sync_wake_set set, unsigned index)
{
    return set.words[index / 64] >> index % 64 & 1;
}

// As many machines as there may be, on wires of 100 ns.
// A time of a member, often equal to another's, now and then none.
static uint64_t some_time(unsigned long long *random)
{
    return next_random(random) % 8 ? 1000 + next_random(random) % 40 : SYNC_NEVER;
}

// As the rules say it, without shortcuts.
static uint64_t safe_by_the_rules(const struct sync *y)
{
    uint64_t safe = SYNC_NEVER;
    for (unsigned m = 0; m < y->machines; m++) {
        const struct sync_member *k = &y->shared->machine[m];
        const uint64_t times[] = {k->own_ns, k->bound_ns, k->rx_due_ns,
                                  k->stopped ? k->tx_done_bound_ns : SYNC_NEVER,
                                  sync_horizon(y, m)};
        for (size_t i = 0; i < sizeof times / sizeof *times && !k->finished; i++)
            safe = times[i] < safe ? times[i] : safe;
    }
    return safe;
}

static void test_shortcuts_give_what_the_rules_give(void)
{
    unsigned long long random = 7;
    unsigned went = 0, stayed = 0;
    struct sync_shared *s = view_of(2).shared;
    for (unsigned round = 0; round < 20000; round++) {
        struct sync y = view_in(s, 2 + round % 9);
        for (unsigned a = 0; a < y.machines; a++) {
            struct sync_member *k = &s->machine[a];
            k->own_ns = some_time(&random), k->bound_ns = some_time(&random);
            k->rx_due_ns = some_time(&random), k->tx_done_bound_ns = some_time(&random);
            k->tx_floor_ns = some_time(&random), k->stride_ns = next_random(&random) % 20;
            k->stopped = next_random(&random) % 3 == 0, k->finished = next_random(&random) % 9 == 0;
            k->waiting = a ? SYNC_AT_HORIZON : SYNC_RUNNING; // at work: no one is urged
            for (unsigned b = 0; b < y.machines; b++)
                s->fixed.distance_ns[a][b] = next_random(&random) % 9
                                                 ? 1 + next_random(&random) % 30
                                                 : SYNC_NEVER;
        }
        s->machine[0].finished = 0;
        CHECK(sync_safe(&y) == safe_by_the_rules(&y));
        sync_release(&y);
        for (unsigned m = 1; m < y.machines; m++) {
            const struct sync_member *k = &s->machine[m];
            bool goes = !k->finished && (sync_horizon(&y, m) > k->own_ns + k->stride_ns ||
                                         k->rx_due_ns < k->own_ns);
            CHECK(s->bell.go[m].value == (goes ? SYNC_LOOK : SYNC_STAY));
            goes ? went++ : stayed++;
        }
    }
    free(s);
    CHECK(went > 1000 && stayed > 1000);
}

static void test_wake_set_has_room_for_every_member(void)
{
    struct sync y = view_of(SYNC_MACHINES);
    struct sync_shared *s = y.shared;
    for (unsigned m = 0; m < SYNC_MACHINES; m++) {
        for (unsigned j = 0; j < SYNC_MACHINES; j++)
            s->fixed.distance_ns[m][j] = 100;
        s->machine[m].own_ns = 50;
        s->machine[m].waiting = SYNC_AT_HORIZON;
        atomic_store(&s->machine[m].asleep, m % 3 == 0); // the others are about to sleep
    }
    s->fabric.waiting = 1, s->fixed.fabric_next_ns = 10;
    atomic_store(&s->fabric.asleep, 1);
    struct sync_wake_set set = sync_release(&y);
    for (unsigned m = 0; m < SYNC_MACHINES; m++)
        CHECK(s->bell.go[m].value == 1 && has(set, m) == (m % 3 == 0));
    CHECK(s->bell.go[SYNC_FABRIC].value == 1 && has(set, SYNC_FABRIC));
    sync_wake(&y, set); // reaches no member past the last: the sanitizer sees it
    CHECK(!has(sync_release(&y), SYNC_FABRIC)); // all have been let go

    for (unsigned m = 0; m < SYNC_MACHINES; m++)
        atomic_store(&s->bell.go[m].value, 0);
    atomic_store(&s->bell.go[SYNC_FABRIC].value, 0);
    CHECK(sync_aborted_by(&y) == -1);
    sync_abort(&y);
    for (unsigned m = 0; m < SYNC_MACHINES; m++)
        CHECK(s->bell.go[m].value == 1);
    CHECK(s->bell.go[SYNC_FABRIC].value == 1 && sync_aborted_by(&y) == (int)SYNC_FABRIC);
    free(s);
}

// What one machine writes into its own page must not carry the others beyond what is right for
// them, nor make a sum overflow.
static void test_times_that_cannot_be_are_never(void)
{
    struct sync y = three();
    struct sync_member *m = y.shared->machine;
    m[0].own_ns = m[0].tx_floor_ns = m[0].rx_due_ns = m[0].bound_ns = UINT64_MAX;
    m[0].stopped = 1, m[0].tx_done_bound_ns = UINT64_MAX - 5;
    m[1].own_ns = 5000, m[2].own_ns = 900;
    CHECK(sync_horizon(&y, 0) == 1030 && sync_horizon(&y, 1) == 930);
    CHECK(sync_horizon(&y, 2) == 5030 && sync_safe(&y) == 900);
    free(y.shared);
}

static void test_only_a_page_tells_who_ended_the_run(void)
{
    struct sync y = three();
    atomic_store(&y.shared->bell.abort.value, 1); // anybody may write this
    CHECK(sync_aborted_by(&y) == -1 && sync_lock(&y));
    sync_unlock(&y);
    y.index = 2;
    sync_abort(&y);
    CHECK(sync_aborted_by(&y) == 2);
    free(y.shared);
}

static void test_who_keeps_the_lock_is_named(void)
{
    struct sync y = three(), other = y;
    struct sync_shared *s = y.shared;
    other.index = 1, y.lock_patience = 3;
    CHECK(sync_lock_holder(&y) == -1 && sync_lock(&other) && sync_lock_holder(&y) == 1);
    CHECK(!sync_lock(&y) && sync_lock_holder(&y) == 1);
    s->bell.lock.value = 3; // it says that it is machine 2
    CHECK(sync_lock_holder(&y) == 1);
    // It says in its page, too, that it has not got it: the others wait for it.
    atomic_store(&s->machine[1].lock_state, SYNC_NO_LOCK);
    atomic_store(&s->machine[0].lock_state, SYNC_WANTS_LOCK);
    atomic_store(&s->machine[2].lock_state, SYNC_WANTS_LOCK);
    CHECK(sync_lock_holder(&y) == 1);
    sync_unlock(&other);
    CHECK(sync_lock(&y) && sync_lock_holder(&y) == -1);
    sync_unlock(&y);
    free(s);
}

int main(void)
{
    RUN(test_options);
    RUN(test_only_a_run_loses_its_power);
    RUN(test_looks_are_made_unless_forbidden);
    RUN(test_check_needs_nothing_else);
    RUN(test_a_trace_belongs_to_a_run);
    RUN(test_points);
    RUN(test_inbox_is_ordered);
    RUN(test_done_queue_counts_strictly_before);
    RUN(test_horizons);
    RUN(test_what_a_gate_promises);
    RUN(test_a_gate_where_the_machine_stands);
    RUN(test_what_a_gate_delivers);
    RUN(test_what_a_gate_sees_of_the_others);
    RUN(test_when_to_look_again);
    RUN(test_release);
    RUN(test_a_stride_is_waited_for_while_others_are_at_work);
    RUN(test_shortcuts_give_what_the_rules_give);
    RUN(test_wake_set_has_room_for_every_member);
    RUN(test_times_that_cannot_be_are_never);
    RUN(test_only_a_page_tells_who_ended_the_run);
    RUN(test_who_keeps_the_lock_is_named);
    printf("%u passed, 0 failed\n", tests_passed);
    return 0;
}
