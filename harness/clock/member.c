// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include "member.h"

#include "qemu.h"
#include "trace.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

struct options options;
struct sync run;
struct counts count;
unsigned cores;
int64_t zero_ns, armed_ns, instructions_before;
pthread_mutex_t state_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

// ---- Leaving ----------------------------------------------------------------------------------

void report(const char *status)
{
    if (!options.report)
        return;
    char temporary[4096];
    snprintf(temporary, sizeof temporary, "%s.partial", options.report);
    FILE *f = fopen(temporary, "w");
    if (!f)
        return;
    fprintf(f,
            "{\"version\":1,\"status\":\"%s\",\"qemu\":\"%d.%d\",\"zero_ns\":%lld,\"virtual_ns\":%"
            "lld,\"gates\":%llu,\"looks\":%llu,\"splits\":%llu,\"translations\":%llu,"
            "\"waits\":%llu,\"sleeps\":%llu,\"room_waits\":%llu,\"sent\":%llu,\"delivered\":%llu,"
            "\"overruns\":%llu,"
            "\"stops\":%llu,\"stamps\":%llu,\"stamps_checked\":%llu,"
            "\"instructions\":%lld,\"max_overshoot_ns\":%llu}\n",
            status, qemu.major, qemu.minor, (long long)zero_ns,
            (long long)(armed_ns ? armed_ns - zero_ns : 0), (unsigned long long)count.gates,
            (unsigned long long)count.looks, (unsigned long long)count.splits,
            (unsigned long long)count.translations, (unsigned long long)count.waits,
            (unsigned long long)count.sleeps, (unsigned long long)count.room_waits,
            (unsigned long long)count.sent, (unsigned long long)count.delivered,
            (unsigned long long)count.overruns, (unsigned long long)count.stops,
            (unsigned long long)count.stamps, (unsigned long long)count.stamps_checked,
            // the supervisor may go first
            (long long)(qemu.icount_get_raw ? qemu.icount_get_raw() - instructions_before : 0),
            (unsigned long long)count.overshoot_ns);
    fclose(f);
    rename(temporary, options.report);
}

_Noreturn void leave(const char *status, enum exit_status code)
{
    trace_close();
    report(status);
    _exit(code);
}

_Noreturn void broken(const char *invariant)
{
    fprintf(stderr, "sundial-clock: invariant broken: %s\n", invariant);
    if (run.shared)
        sync_abort(&run);
    leave("invariant broken", EXIT_INVARIANT);
}

// Ends the machine as soon as its supervisor is gone, whatever the machine is doing.
static void *watch_supervisor(void *unused)
{
    (void)unused;
    struct pollfd supervisor = {.fd = options.supervisor_fd, .events = POLLIN};
    while (poll(&supervisor, 1, -1) < 0 && errno == EINTR)
        continue;
    leave("supervisor gone", EXIT_ABORTED);
}

bool leave_with_supervisor(void)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, watch_supervisor, NULL) == 0 &&
           pthread_detach(thread) == 0;
}

unsigned count_cores(void)
{
    cpu_set_t mine;
    return sched_getaffinity(0, sizeof mine, &mine) == 0 ? (unsigned)CPU_COUNT(&mine) : 1;
}

// ---- Waiting for others -------------------------------------------------------------------------

void lock(void)
{
    if (!sync_lock(&run))
        leave("aborted", EXIT_ABORTED);
}

void release_and_unlock(void)
{
    struct sync_wake_set wake = sync_release(&run);
    sync_unlock(&run);
    sync_wake(&run, wake);
}

// Pauses of a wait that is expected to be long, or has no core to itself.
static const unsigned SPINS_LEAST = 300;
// Above 0: most waits that stayed awake for longer were let go meanwhile.
static int spins_won = 1;

// How long a wait stays awake, in pauses (some ten ns). Waking a thread on an idle core costs fifty
// microseconds, so where every machine can have a core of its own it is worth waiting for another's
// quantum. It is not where the other does not run: on a host with other work the spinner keeps it
// from its core. That shows by waits that fall asleep all the same.
static unsigned spins(bool worth_it)
{
    static const unsigned TRY_AGAIN = 32;
    static unsigned waits;
    if (!worth_it || run.machines > cores)
        return SPINS_LEAST;
    return spins_won > 0 || ++waits % TRY_AGAIN == 0 ? options.spins : SPINS_LEAST;
}

enum sync_nap nap(bool brief, bool state_is_free)
{
    static const int WON_MOST = 16, WON_LEAST = -4;
    if (state_is_free)
        pthread_mutex_unlock(&state_lock);
    bool slept;
    unsigned awake = spins(brief);
    enum sync_nap how = sync_nap(&run, awake, &slept);
    if (how == SYNC_ABORTED)
        leave("aborted", EXIT_ABORTED);
    if (state_is_free)
        pthread_mutex_lock(&state_lock);
    count.sleeps += slept;
    if (awake > SPINS_LEAST)
        spins_won = slept ? spins_won - 2 : spins_won + 1;
    spins_won = spins_won > WON_MOST ? WON_MOST : spins_won < WON_LEAST ? WON_LEAST : spins_won;
    return how;
}
