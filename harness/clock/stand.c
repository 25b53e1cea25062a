// SPDX-License-Identifier: GPL-2.0-or-later
#include "stand.h"

#include "member.h"
#include "qemu.h"
#include "sync.h"

static void *cpu; // NULL: it has never stood
static bool stands;
static void (*arm_gate_now)(void);
static uint64_t next_stop_ns; // it has stood wherever it had to before this

uint64_t stand_next_ns(void)
{
    uint64_t stop_ns = run.shared->fixed.stop_ns;
    return stop_ns < next_stop_ns ? SYNC_NEVER : stop_ns;
}

// Whether the instant has not moved. `now_ns`: since zero.
static bool stays(uint64_t now_ns)
{
    struct sync_member *me = &run.shared->machine[options.machine];
    lock();
    bool stay = run.shared->fixed.stop_ns < next_stop_ns;
    me->waiting = stay ? SYNC_STANDING : SYNC_RUNNING;
    if (stay) {
        me->own_ns = now_ns;
        sync_quiet(&run);
    }
    release_and_unlock();
    return stay;
}

// Work of the CPU's thread between two instructions. Not the gate itself: QEMU waits for timers
// that run with its lock held, so they must not give it away, and without it no monitor answers.
static void stand(void *here, uint64_t unused)
{
    (void)here;
    (void)unused;
    int64_t clock_ns = qemu.clock_get_ns(QEMU_CLOCK_VIRTUAL);
    // A CPU that sleeps must not jump from here. From here the machine goes on, too: by one more
    // gate, which knows where it stands next.
    arm_gate_now();
    stands = true;
    qemu.unlock();
    bool stay;
    // QEMU stops the CPU where a debugger wants it, and waits for this thread.
    while ((stay = stays((uint64_t)(clock_ns - zero_ns))) && qemu.runstate_is_running())
        nap(false, false);
    qemu.lock(__FILE__, __LINE__);
    stands = stay;
}

// QEMU marks a CPU that a breakpoint stops, and has the main loop stop the machine. Until then the
// CPU counts as idle, and the main loop would jump to its next timer first: so that is now.
static void before_jump(struct notifier *notifier, void *data)
{
    (void)notifier;
    (void)data;
    if (qemu.cpu_is_stopped(cpu) && qemu.runstate_is_running())
        arm_gate_now();
}

void stand_soon(void *here, void (*arm_now)(void))
{
    static struct notifier jumps = {.notify = before_jump};
    if (!here || !qemu.unlock || !qemu.async_run_on_cpu)
        broken("this QEMU has no way to stand");
    arm_gate_now = arm_now;
    if (!cpu)
        qemu.main_loop_poll_add_notifier(&jumps);
    cpu = here;
    next_stop_ns = run.shared->fixed.stop_ns + 1;
    qemu.async_run_on_cpu(cpu, stand, 0);
}

bool stand_again(void)
{
    if (stands)
        qemu.async_run_on_cpu(cpu, stand, 0);
    return stands;
}
