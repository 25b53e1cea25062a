/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a timeline does to the clock of this machine: CLOCK_REALTIME is set, or runs fast or slow
 * with CLOCK_MONOTONIC. clock_now_ns() reads a clock that none of it meets. Each change is recorded
 * with what CLOCK_REALTIME was ahead of that one before and after it.
 */
#include <errno.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>

#include "clock.h"
#include "command.h"
#include "samples.h"

static const uint64_t NEVER = UINT64_MAX;

enum {
    TICK_US = 10000,        /* of the kernel's clock at its own rate, at 100 ticks a second */
    PPB_PER_TICK = 100000,  /* one more us a tick */
    UNITS_PER_PPM = 1 << 16 /* of a frequency, as adjtimex(2) takes it */
};

struct change {
    uint64_t due_ns;
    long long number, by_ns, ppb;
    bool rates;
    bool done;
};

/* What CLOCK_REALTIME is ahead, and how far that may be off. */
struct reading {
    int64_t ahead_ns;
    uint64_t at_ns, within_ns;
};

static struct change changes[EVENTS_MOST];
static size_t change_count;
static uint64_t zero_ns;

void clocks_take(const json_t *options, uint64_t zero)
{
    size_t index;
    json_t *value;

    zero_ns = zero;
    if (json_array_size(options) > EVENTS_MOST)
        samples_refuse("option clocks: up to %d", EVENTS_MOST);
    json_array_foreach (options, index, value) {
        struct change *change = &changes[change_count++];

        *change = (struct change){
            .due_ns = zero_ns + (uint64_t)command_number(value, "at_ns", 0),
            .number = command_number(value, "number", 0),
            .by_ns = command_number(value, "by_ns", 0),
            .ppb = command_number(value, "ppb", 0),
            .rates = json_object_get(value, "ppb") != NULL,
        };
    }
}

static struct reading read_clock(void)
{
    uint64_t before = clock_now_ns();
    struct timespec now;
    uint64_t after;

    clock_gettime(CLOCK_REALTIME, &now);
    after = clock_now_ns();
    return (struct reading){
        .ahead_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - (int64_t)before,
        .at_ns = before,
        .within_ns = after - before,
    };
}

static int set_clock(long long by_ns)
{
    struct timex set = {.modes = ADJ_SETOFFSET | ADJ_NANO};

    set.time.tv_sec = (time_t)(by_ns / 1000000000);
    set.time.tv_usec = (suseconds_t)(by_ns % 1000000000);
    if (set.time.tv_usec < 0) { /* the fraction is never negative */
        set.time.tv_usec += 1000000000;
        set.time.tv_sec--;
    }
    return adjtimex(&set);
}

static int set_rate(long long ppb)
{
    long ticks = (long)(ppb / PPB_PER_TICK);
    struct timex set = {.modes = ADJ_TICK | ADJ_FREQUENCY};

    set.tick = TICK_US + ticks;
    set.freq = (long)((ppb - (long long)ticks * PPB_PER_TICK) * UNITS_PER_PPM / 1000);
    return adjtimex(&set);
}

static void record(const char *verb, const struct change *change, struct reading before,
                   struct reading after)
{
    json_t *line = samples_object("clock");
    uint64_t now = after.at_ns;

    json_object_set_new(line, "verb", json_string(verb));
    if (change != NULL) {
        json_object_set_new(line, "number", json_integer(change->number));
        json_object_set_new(line, "due", json_integer((json_int_t)(change->due_ns - zero_ns)));
        json_object_set_new(line, "late", json_integer((json_int_t)(now - change->due_ns)));
    }
    json_object_set_new(line, "at", json_integer((json_int_t)now));
    json_object_set_new(line, "before", json_integer(before.ahead_ns));
    json_object_set_new(line, "after", json_integer(after.ahead_ns));
    json_object_set_new(line, "within",
                        json_integer((json_int_t)(before.within_ns + after.within_ns)));
    json_object_set_new(line, "took", json_integer((json_int_t)(after.at_ns - before.at_ns)));
    samples_put(line);
}

bool clocks_look(uint64_t now)
{
    bool any = false;

    for (size_t i = 0; i < change_count; i++) {
        struct change *change = &changes[i];
        struct reading before;

        if (change->done || now < change->due_ns)
            continue;
        change->done = any = true;
        before = read_clock();
        if (change->rates ? set_rate(change->ppb) < 0 : set_clock(change->by_ns) < 0)
            samples_fail("timeline.%lld: adjtimex: %s", change->number, strerror(errno));
        record(change->rates ? "drift_clock" : "step_clock", change, before, read_clock());
    }
    return any;
}

uint64_t clocks_next(void)
{
    uint64_t next = NEVER;

    for (size_t i = 0; i < change_count; i++)
        if (!changes[i].done && changes[i].due_ns < next)
            next = changes[i].due_ns;
    return next;
}

bool clocks_drift(void)
{
    for (size_t i = 0; i < change_count; i++)
        if (changes[i].rates)
            return true;
    return false;
}

void clocks_end(void)
{
    struct reading last;

    if (change_count == 0)
        return;
    last = read_clock();
    record("end", NULL, last, last);
}
