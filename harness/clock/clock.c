// SPDX-License-Identifier: GPL-2.0-or-later
//
// sundial-clock: gates the virtual time of one QEMU machine and carries its frames. See README.md.
//
// One timer of QEMU's own virtual clock, the gate, is always pending. Under icount neither
// executing nor idling can pass a pending timer, so a machine cannot run ahead of what its peers
// have promised.
#define _GNU_SOURCE
#include "adapters.h"
#include "blocks.h"
#include "gate.h"
#include "inbox.h"
#include "member.h"
#include "options.h"
#include "qemu.h"
#include "stand.h"
#include "sync.h"
#include "trace.h"
#include "vmmc_adapter.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// QEMU reads this before it calls anything here but what the linker calls.
__attribute__((visibility("default"))) int qemu_plugin_version = 1;
__attribute__((constructor)) static void choose_plugin_version(void)
{
    qemu_plugin_version = qemu_plugin_api();
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv);

// Between the instant the guest is frozen at and zero: the guest sleeps through it, so a pause that
// takes effect some hundred nanoseconds late changes nothing.
static const uint64_t FREEZE_TO_ZERO_NS = 200 * 1000;
static const uint64_t FREEZE_GRID_NS = 1000 * 1000;
// no event of the guest's own for so long after the freeze
static const uint64_t QUIET_NS = 2 * 200 * 1000;

static struct sync_end to_fabric, from_fabric;
static struct sync_member *me;
static uint64_t timer[64]; // QEMUTimer, opaque and smaller than this

static bool keeping_time; // zero was given: a run
static bool ready_seen;
static bool freeze_pending;      // the stop was requested
static int64_t wanted_ns;        // armed_ns without jitter
static uint64_t handed_in_at_ns; // when the guest handed in its latest frame
static bool in_store;            // to a backplane's adapter, inside a block
static bool in_gate;             // its callback runs and will arm it at the end
static bool halted = true;       // the CPU has executed HLT and no block since

// The CPU looks at its horizon at the last entry of a block from which the block ends by this.
static int64_t look_ns;     // virtual clock
static int64_t stop_ns;     // where the gate is armed while the CPU executes and looks by itself
static uint64_t allowed_ns; // since zero: how far the latest look or gate let the machine go

static struct inbox inbox;

// ---- Time -------------------------------------------------------------------------------------

static int64_t clock_ns(void)
{
    return qemu.clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

// Time on the axis of the run; only after zero.
static uint64_t now_ns(void)
{
    return (uint64_t)(clock_ns() - zero_ns);
}

// Arming while the CPU is halted makes QEMU jump to the next timer at once: so the gate is armed
// once, as the last thing its callback does, and never for longer than the machine may go. `now` is
// the clock.
static void arm(int64_t at_clock_ns, int64_t now)
{
    wanted_ns = at_clock_ns;
    armed_ns = gate_stirred(at_clock_ns, now, options.jitter_ns);
    // On the CPU's own thread it needs no kick unless it stores: it does not execute now, and looks
    // at its timers, or gets a new budget, before it does.
    qemu_quiet_kicks(qemu_current_cpu() != NULL && !in_store);
    qemu.timer_mod_ns(timer, armed_ns);
    qemu_quiet_kicks(false);
}

// The same for this instant, or for the time in the instruction before that has no gate yet: what a
// debugger stops may have some.
static void arm_now(void)
{
    int64_t now = clock_ns();
    arm(armed_ns && armed_ns < now ? armed_ns : now, now);
}

static int64_t clock_at(uint64_t run_ns)
{
    return zero_ns + (int64_t)run_ns;
}

// How far a machine goes before it looks at the others again, and waits to be let go: half of its
// least lookahead, so that the one that is behind can always go on by as much.
static uint64_t stride_ns(void)
{
    static uint64_t stride;
    if (!stride) {
        uint64_t least = GATE_PUBLISH_NS; // without peers
        for (unsigned m = 0; m < run.machines; m++) {
            uint64_t distance = run.shared->fixed.distance_ns[m][options.machine];
            least = distance < least ? distance : least;
        }
        stride = least > 1 ? least / 2 : 1;
    }
    return stride;
}

// A CPU that executes looks by itself; one that sleeps jumps to its next timer and passes no
// block's entry.
static bool looks_by_itself(void)
{
    return blocks_watched() && !halted;
}

// Sets the times of the next look and of the next delivery or end. `sent`: as in gate_next().
static void plan_next(const struct gate_view *view, const struct gate_others *others, bool sent,
                      int64_t now)
{
    struct gate_plan plan = gate_next(view, others, sent);
    look_ns = gate_stirred(clock_at(plan.look), now, options.jitter_ns);
    // A machine that no other sends anything still has a gate now and then.
    int64_t farthest = now + (int64_t)GATE_PUBLISH_NS;
    stop_ns = plan.stop < SYNC_NEVER && clock_at(plan.stop) < farthest ? clock_at(plan.stop)
                                                                       : farthest;
}

// ---- Receiving --------------------------------------------------------------------------------

// Takes what the fabric has put into my ring; the lock is held, so that no one sees a moment
// without it.
static void drain(void)
{
    enum sync_look look = inbox_drain(&inbox, adapters_done, &from_fabric, options.nics);
    if (look != SYNC_NOTHING)
        broken(sync_fault(look));
    me->rx_due_ns = SYNC_NEVER;
}

static bool is_backplane(unsigned nic)
{
    return options.backplane && nic == options.nics - 1;
}

static void deliver_due(const struct gate_view *view)
{
    uint64_t now = view->now, by = gate_delivers_by(view);

    for (struct letter *letter; (letter = inbox_take(&inbox, by)); free(letter)) {
        NetClientState *client = adapters[letter->nic].client;
        if (letter->due_ns + options.instruction_ns <= now)
            broken("a frame came after it was due");
        if (is_backplane(letter->nic)) {
            vmmc_deliver(letter->frame, letter->length, now);
            count.delivered++;
            continue;
        }
        // A real adapter without a receive descriptor drops; QEMU would keep 10,000 frames for
        // later. What a backplane tells takes none of a real one: a frame waits behind that.
        if (!qemu.can_send_packet(client) && !(letter->nic == 0 && vmmc_telling())) {
            count.overruns++;
            continue;
        }
        qemu.send_packet(client, letter->frame, (int)letter->length);
        count.delivered++;
    }
    for (unsigned n = 0; n < options.nics; n++) {
        if (!adapters[n].stopped || adapters_hold(n, by) >= adapters[n].capacity)
            continue;
        adapters[n].stopped = false;
        qemu.flush_queued_packets(adapters[n].client); // may stop it again
    }
}

// ---- Sending ----------------------------------------------------------------------------------

// Whether the adapter has a place at `now`. Asks the fabric to catch up where that is not certain:
// which frames were finished before `now` must not depend on how far the fabric happens to be.
static bool has_place(unsigned nic, uint64_t now)
{
    if (!adapters[nic].capacity || adapters_hold(nic, now) < adapters[nic].capacity)
        return true;
    for (;;) {
        lock();
        drain();
        me->own_ns = now;
        bool place = adapters_hold(nic, now) < adapters[nic].capacity;
        bool certain = place || (me->tx_floor_ns >= now && me->tx_done_bound_ns >= now);
        if (certain && !place)
            me->stopped = 1;
        if (certain)
            me->waiting = SYNC_RUNNING;
        else {
            me->waiting = SYNC_FOR_ROOM;
            sync_quiet(&run);
        }
        release_and_unlock();
        if (certain)
            return place;
        count.room_waits++;
        nap(true, false);
    }
}

// How many instructions the CPU may execute from `clock` on before it looks.
static uint64_t instructions_to_look(int64_t clock)
{
    uint64_t ns = look_ns > clock ? (uint64_t)(look_ns - clock) : 0;
    return (ns + options.instruction_ns - 1) / options.instruction_ns;
}

// The slot for one more frame; waits for the fabric where the ring is full (a burst at one
// instant).
static struct sync_slot *free_slot(uint64_t now)
{
    for (;;) {
        struct sync_slot *s;
        enum sync_look look = sync_room(&to_fabric, &s);
        if (look == SYNC_THERE)
            return s;
        if (look != SYNC_NOTHING)
            broken(sync_fault(look));
        lock();
        me->own_ns = now;
        drain(); // the fabric may be waiting for room in mine
        sync_unlock(&run);
        sync_ring_bell(&run, SYNC_FABRIC);
        if (sync_aborted_by(&run) >= 0)
            leave("aborted", EXIT_ABORTED);
        sched_yield();
    }
}

// The next gate is to be just after `now`. An answer to a frame takes longer than a stride; a place
// in an adapter that has just stopped may come at once, and was not in the horizon.
static void gate_after(uint64_t now, bool stopped)
{
    handed_in_at_ns = now;
    if (stopped)
        allowed_ns = now + 1 < allowed_ns ? now + 1 : allowed_ns;
    if (in_gate)
        return;
    int64_t soon = clock_at(now + (stopped ? 1 : stride_ns()));
    look_ns = soon < look_ns ? soon : look_ns;
    if (in_store && looks_by_itself())
        blocks_shorten(instructions_to_look(clock_at(now)));
    if (gate_is_moved(armed_ns, clock_at(now), looks_by_itself()))
        arm(clock_at(now + 1), clock_at(now));
}

// The guest waits for its job: from here a quiet instant is looked for to freeze it at.
static void ready(void)
{
    if (ready_seen || options.mode == MODE_RUN)
        return;
    ready_seen = true;
    int64_t now = clock_ns();
    arm(now + (int64_t)(2 * FREEZE_GRID_NS - (uint64_t)now % FREEZE_GRID_NS), now);
}

// The adapter hands in a frame that it has a place for.
static void hand_in(unsigned nic, const uint8_t *frame, size_t length, uint64_t now)
{
    struct sync_slot *slot = free_slot(now);
    // What does not fit is cut off: it is still too long for every segment, which refuses and
    // counts it.
    size_t room = to_fabric.slot_bytes - sizeof *slot;
    size_t taken = length < room ? length : room;
    *slot = (struct sync_slot){
        .time_ns = now, .length = (uint32_t)taken, .nic = (uint16_t)nic, .kind = SYNC_FRAME};
    memcpy(slot->data, frame, taken);
    lock();
    sync_push(&to_fabric);
    me->own_ns = now;
    if (now < me->tx_floor_ns)
        me->tx_floor_ns = now;
    release_and_unlock();
    adapters[nic].handed_in++;
    count.sent++;
    // The fabric takes a frame only when no other can come at the same instant: say so as soon as
    // it is true.
    gate_after(now, false);
}

// NetReceive of every netdev: the guest's adapter hands in a frame. Runs inside a timer of the
// virtual clock (virtio-net with tx=timer), so the time is exact.
static ssize_t transmit_locked(NetClientState *client, const uint8_t *frame, size_t length)
{
    if (is_ready_frame(frame, length)) {
        ready();
        return (ssize_t)length;
    }
    if (!keeping_time)
        return (ssize_t)length; // before the run nothing is wired
    unsigned nic = 0;
    while (adapters[nic].client != client)
        nic++;
    uint64_t now = now_ns();
    if (!has_place(nic, now)) {
        adapters[nic].stopped = true;
        count.stops++;
        gate_after(now, true); // there the next place becomes an event
        return 0;
    }
    hand_in(nic, frame, length, now);
    return (ssize_t)length;
}

static ssize_t transmit(NetClientState *client, const uint8_t *frame, size_t length)
{
    pthread_mutex_lock(&state_lock);
    ssize_t taken = transmit_locked(client, frame, length);
    pthread_mutex_unlock(&state_lock);
    return taken;
}

// ---- The backplane's adapter ------------------------------------------------------------------

static void enter_adapter(bool store)
{
    pthread_mutex_lock(&state_lock);
    in_store = store;
}

static void leave_adapter(void)
{
    in_store = false;
    pthread_mutex_unlock(&state_lock);
}

// Its own FIFO has taken the packet, so the ring has a place.
static void hand_in_packet(const uint8_t *packet, size_t length, uint64_t now)
{
    hand_in(options.nics - 1, packet, length, now);
}

static const char *plug_backplane(void)
{
    static const struct vmmc_clock clock = {enter_adapter, leave_adapter, now_ns, hand_in_packet};
    return vmmc_plug(&options.vmmc, &clock);
}

// ---- Idling -----------------------------------------------------------------------------------

static void warp(void *cpu, uint64_t unused)
{
    (void)cpu;
    (void)unused;
    qemu.icount_start_warp_timer(); // does nothing unless the CPU is still idle
}

// Makes the vCPU's own thread jump to the next timer as soon as it has left the guest. Otherwise
// QEMU wakes the main loop to do it, which wakes the vCPU again: half of all context switches. The
// main loop keeps a turn now and then, and all turns while it is still busy with starting the
// machine, for we may hold its lock when we wait.
static void warp_here(void)
{
    static const unsigned MAIN_LOOP_TURN = 64;
    static unsigned turn;
    turn++;
    if (keeping_time && qemu.async_run_on_cpu && turn > MAIN_LOOP_TURN && turn % MAIN_LOOP_TURN)
        qemu.async_run_on_cpu(qemu_current_cpu(), warp, 0);
}

// ---- The gate ---------------------------------------------------------------------------------

// Before the run. Freezes at the first quiet grid point after the guest said ready.
static void gate_before_run(int64_t now)
{
    if (now < wanted_ns) {
        arm(wanted_ns, now);
        return;
    }
    if (freeze_pending) { // until the main loop has stopped the machine
        arm(now + 1, now);
        return;
    }
    if (!ready_seen) {
        arm(now + (int64_t)GATE_PUBLISH_NS, now);
        return;
    }
    int64_t quiet = qemu.clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL, QEMU_TIMER_ATTR_ALL);
    bool resting = qemu.all_cpu_threads_idle() && (quiet < 0 || (uint64_t)quiet >= QUIET_NS);
    if (!resting) {
        arm(now + (int64_t)(FREEZE_GRID_NS - (uint64_t)now % FREEZE_GRID_NS), now);
        return;
    }
    zero_ns = now - now % (int64_t)FREEZE_GRID_NS + (int64_t)FREEZE_TO_ZERO_NS;
    report("ready");
    freeze_pending = true;
    qemu.system_vmstop_request_prepare();
    qemu.system_vmstop_request(RUN_STATE_PAUSED);
    arm(now + 1, now);
}

// The machine as it is at this gate, or look.
static struct gate_view observe(int64_t clock, int64_t armed)
{
    struct gate_view view = {
        .now = (uint64_t)(clock - zero_ns),
        .armed = armed > zero_ns ? (uint64_t)(armed - zero_ns) : 0,
        .idle = qemu.all_cpu_threads_idle(),
        .stride = 1,
    };
    view.own = view.now;
    if (view.idle) {
        // The gate is not pending while it runs, so this is the next event of the guest and its
        // devices.
        int64_t deadline = qemu.clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL, QEMU_TIMER_ATTR_ALL);
        view.own = deadline < 0 ? SYNC_NEVER : view.now + (uint64_t)deadline;
    } else if (looks_by_itself())
        view.stride = stride_ns();
    return view;
}

// Promises what the machine will do next, and waits until its horizon lets it. Returns that event,
// and what is to be known of the others. `state_is_free`: others may use the state meanwhile.
static uint64_t wait_for_horizon(struct gate_view *view, struct gate_others *others,
                                 bool state_is_free)
{
    if (view->now >= allowed_ns + options.instruction_ns)
        broken("the machine ran past its horizon");
    lock();
    me->joined = 1;
    uint64_t stride = blocks_watched() ? stride_ns() : 0;
    for (;;) {
        drain();
        atomic_fetch_add_explicit(&me->gates, 1, memory_order_relaxed);
        me->stopped = adapters_stopped(options.nics);
        view->due = inbox_first(&inbox);
        view->place = adapters_first_place_ns(options.nics);
        view->end = run.shared->fixed.end_ns;
        view->end = options.off_ns < view->end ? options.off_ns : view->end;
        view->halt = stand_next_ns();
        uint64_t event = gate_event(view);
        me->own_ns = event;
        me->waiting = SYNC_RUNNING;
        view->horizon = sync_horizon(&run, options.machine);
        if (gate_may_pass(view, event, stride)) {
            allowed_ns = view->horizon;
            *others = gate_observe(&run, view->now, cores);
            release_and_unlock();
            return event;
        }
        me->waiting = SYNC_AT_HORIZON;
        me->stride_ns = stride;
        sync_quiet(&run);
        release_and_unlock();
        count.waits++;
        enum sync_nap how = nap(!view->idle, state_is_free);
        if (how == SYNC_URGED || how == SYNC_STILL_WAITING)
            stride = 0;
        lock();
    }
}

static void keep_time(int64_t clock)
{
    if (armed_ns && (clock < armed_ns || (uint64_t)(clock - armed_ns) >= options.instruction_ns))
        broken("the machine ran past its gate");

    struct gate_view view = observe(clock, armed_ns);
    struct gate_others others;
    uint64_t event = wait_for_horizon(&view, &others, false);
    if (view.now >= view.end) {
        lock();
        me->own_ns = SYNC_NEVER;
        me->finished = 1;
        bool at_end = view.now >= run.shared->fixed.end_ns;
        release_and_unlock();
        // As if its power were cut: nothing of what it holds is handed on.
        leave(at_end ? "finished" : "off", EXIT_END);
    }
    if (view.idle && event > view.now) {
        look_ns = stop_ns = clock_at(event);
        arm(stop_ns, clock);
        // At once: what the host puts in (a command for the guest) wakes the CPU as soon as QEMU's
        // lock is free, and must not find it before the time that the others have been promised.
        qemu.icount_start_warp_timer();
        return;
    }
    uint64_t handed_in = count.sent, stops = count.stops;
    deliver_due(&view);
    // A queue that had been stopped went on, or the guest sent in this instant: see gate_after().
    bool sent = count.sent != handed_in || handed_in_at_ns == view.now;
    if (count.stops != stops)
        view.stride = 1;
    view.due = inbox_first(&inbox);
    view.place = adapters_first_place_ns(options.nics);
    bool stands = view.halt <= gate_delivers_by(&view);
    if (stands) {
        view.halt = SYNC_NEVER;
        // With work to do the CPU does not jump when arming.
        stand_soon(qemu_current_cpu(), arm_now);
    }
    plan_next(&view, &others, sent, clock);
    arm(looks_by_itself() || stop_ns < look_ns ? stop_ns : look_ns, clock);
}

static void gate(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&state_lock);
    in_gate = true;
    count.gates++;
    int64_t clock = clock_ns();
    if (armed_ns && clock >= armed_ns && (uint64_t)(clock - armed_ns) > count.overshoot_ns)
        count.overshoot_ns = (uint64_t)(clock - armed_ns);
    if (!keeping_time)
        gate_before_run(clock);
    else if (clock < zero_ns) // restored a little before zero
        arm(zero_ns, clock);
    else
        keep_time(clock);
    in_gate = false;
    pthread_mutex_unlock(&state_lock);
    if (qemu.all_cpu_threads_idle())
        warp_here();
}

// ---- Looks at a block's entry -----------------------------------------------------------------

// Moves the gate without leaving QEMU's inner loop.
static void move_gate(int64_t at_clock_ns, int64_t now)
{
    arm(at_clock_ns, now);
    blocks_renew_budget(options.instruction_ns);
}

// What a gate does, but for deliveries: those need QEMU's lock and their exact time, hence a gate.
// `full`: the next block does not end by `look_ns`.
static void look(int64_t clock, bool full)
{
    count.looks++;
    int64_t too_soon = full ? look_ns : clock;
    struct gate_view view = observe(clock, clock);
    struct gate_others others;
    wait_for_horizon(&view, &others, true);
    plan_next(&view, &others, false, clock);
    if (look_ns <= too_soon) {
        // Nothing more was won, and the others may need the machine to go into this block: QEMU
        // divides it.
        count.splits++;
        move_gate(look_ns < stop_ns ? look_ns : stop_ns, clock);
    } else if (armed_ns <= look_ns || armed_ns > stop_ns || options.jitter_ns)
        move_gate(stop_ns, clock);
}

// Before a block: how many instructions the CPU may execute before it is to look again.
static uint64_t before_block(bool full)
{
    int64_t clock = clock_ns();
    if (halted || full || clock >= look_ns) {
        pthread_mutex_lock(&state_lock);
        if (halted) {
            halted = false; // its gate was armed for the next look
            move_gate(stop_ns, clock);
        }
        if (full || clock >= look_ns)
            look(clock, full);
        pthread_mutex_unlock(&state_lock);
    }
    return instructions_to_look(clock);
}

// ---- Setting up -------------------------------------------------------------------------------

// On the main thread, each time the machine starts or stops running.
static void run_state_changed(void *unused, bool running, int state)
{
    (void)unused;
    (void)state;
    static bool initialised;
    if (!running)
        return;
    if (!initialised) {
        initialised = true;
        // A hint: libvirt's sandbox may forbid it. Without it each expiring timer costs a
        // preemption.
        struct sched_param none = {0};
        sched_setscheduler(0, SCHED_BATCH, &none);
        for (unsigned n = 0; n < options.nics; n++) {
            char name[16];
            snprintf(name, sizeof name, "n%u", n);
            const char *wrong = is_backplane(n)
                                    ? plug_backplane()
                                    : qemu_take_netdev(name, transmit, &adapters[n].client);
            if (wrong) {
                fprintf(stderr, "sundial-clock: %s\n", wrong);
                leave("refused", EXIT_INVARIANT);
            }
        }
        qemu.timer_init_full(timer, NULL, QEMU_CLOCK_VIRTUAL, 1, 0, gate, NULL);
        instructions_before = qemu.icount_get_raw();
        if (options.mode == MODE_RUN) {
            qemu_quiet_notifications();
            look_ns = stop_ns = zero_ns;
            if (options.looks)
                blocks_watch(before_block);
        }
    }
    if (!freeze_pending && !stand_again())
        arm_now();
}

// HLT marks the CPU halted before the instructions up to it are accounted; a main loop that wakes
// in between would warp from a stale clock. The whole block is already off the budget here, so
// accounting it is exact.
static void before_halt(unsigned vcpu, void *unused)
{
    (void)vcpu;
    (void)unused;
    trace_before_halt();
    qemu.icount_update(qemu_current_cpu());
    trace_after_halt();
    if (keeping_time) {
        pthread_mutex_lock(&state_lock);
        halted = true;
        int64_t clock = qemu_accounted_ns();
        if (blocks_watched() && armed_ns > clock)
            arm(clock, clock); // a CPU that sleeps must not jump beyond its horizon
        pthread_mutex_unlock(&state_lock);
    }
    warp_here();
}

static void translated(struct qemu_plugin_tb *tb)
{
    count.translations++;
    const uint8_t HLT = 0xf4;
    struct qemu_plugin_insn *last = qemu.plugin_tb_get_insn(tb, qemu.plugin_tb_n_insns(tb) - 1);
    uint8_t first_byte = 0;
    qemu_first_bytes(last, &first_byte, 1);
    if (qemu.plugin_insn_size(last) == 1 && first_byte == HLT)
        qemu.plugin_register_vcpu_insn_exec_cb(last, before_halt, QEMU_PLUGIN_CB_NO_REGS, NULL);
    trace_block(tb);
}

static const char *install(qemu_plugin_id_t id, int argc, char **argv)
{
    const char *wrong = options_parse(&options, argc, argv);
    if (wrong)
        return wrong;
    if (options.supervisor_fd >= 0 && !leave_with_supervisor())
        return "cannot start a thread";
    if (options.mode == MODE_WATCH)
        return NULL;
    wrong = qemu_load();
    if (!wrong && (options.backplane || options.mode == MODE_CHECK))
        wrong = qemu_load_memory();
    if (wrong)
        return wrong;
    if (options.mode == MODE_CHECK)
        _exit(EXIT_END);
    if (options.mode == MODE_RUN) {
        wrong = sync_map(&run, options.shm, options.machine, &to_fabric, &from_fabric);
        if (wrong)
            return wrong;
        cores = count_cores();
        me = &run.shared->machine[options.machine];
        for (unsigned n = 0; n < options.nics; n++)
            adapters[n].capacity = run.shared->fixed.adapter_frames[options.machine][n];
        zero_ns = options.zero_ns;
        keeping_time = true;
        wrong = options.trace ? trace_open(options.trace, options.points) : NULL;
        if (wrong)
            return wrong;
    }
    qemu.add_vm_change_state_handler(run_state_changed, NULL);
    qemu_on_translation(id, translated);
    return NULL;
}

__attribute__((visibility("default"))) int
qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    const char *wrong = install(id, argc, argv);
    if (wrong)
        fprintf(stderr, "sundial-clock: %s\n", wrong);
    return wrong ? -1 : 0;
}

// `sundial --version` looks for it in the built file.
__attribute__((used)) static const char release[] = "sundial-clock " SUNDIAL_VERSION;
