// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include "options.h"

#include "sync.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static char complaint[256];

static const char *say(const char *format, const char *what)
{
    snprintf(complaint, sizeof complaint, format, what);
    return complaint;
}

static bool number(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || v < least || v > most)
        return false;
    *value = v;
    return true;
}

static bool mode(const char *text, enum mode *value)
{
    static const char *const NAMES[] = {
        [MODE_RUN] = "run", [MODE_BOOT] = "boot", [MODE_WATCH] = "watch", [MODE_CHECK] = "check"};
    for (unsigned i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strcmp(text, NAMES[i]) == 0) {
            *value = (enum mode)i;
            return true;
        }
    return false;
}

// NODE:BYTES:NS:NS:BPS:BPS:BYTES, see README.md.
static bool backplane(char *text, struct vmmc_config *vmmc)
{
    enum { FIELDS = 7 };
    uint64_t values[FIELDS];
    for (unsigned i = 0; i < FIELDS; i++) {
        char *colon = strchr(text, ':');
        if (!colon != (i == FIELDS - 1))
            return false;
        if (colon)
            *colon = '\0';
        if (!number(text, 0, UINT32_MAX, &values[i]))
            return false;
        text = colon + 1;
    }
    *vmmc = (struct vmmc_config){.node = (uint16_t)(values[0] <= VMMC_NODES ? values[0] : 0),
                                 .combine_bytes = (uint32_t)values[1],
                                 .combine_timeout_ns = values[2],
                                 .setup_ns = values[3],
                                 .link_rate_bps = values[4],
                                 .dma_rate_bps = values[5],
                                 .fifo_bytes = (uint32_t)values[6]};
    return true;
}

// One argument; false: not understood.
static bool take(struct options *o, const char *name, char *value, uint64_t *supervisor)
{
    uint64_t v = 0;
    if (strcmp(name, "mode") == 0)
        return mode(value, &o->mode);
    const struct {
        const char *name;
        const char **path;
    } paths[] = {
        {"shm", &o->shm}, {"report", &o->report}, {"trace", &o->trace}, {"points", &o->points}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strcmp(name, paths[i].name) == 0) {
            *paths[i].path = strdup(value); // QEMU frees its arguments
            return *paths[i].path && *value;
        }
    if (strcmp(name, "supervisor") == 0)
        return number(value, 1, INT32_MAX, supervisor);
    if (strcmp(name, "machine") == 0 && number(value, 0, SYNC_MACHINES - 1, &v))
        return o->machine = (unsigned)v, true;
    if (strcmp(name, "nics") == 0 && number(value, 1, SYNC_NICS, &v))
        return o->nics = (unsigned)v, true;
    if (strcmp(name, "zero") == 0 && number(value, 0, INT64_MAX / 2, &v))
        return o->zero_ns = (int64_t)v, true;
    if (strcmp(name, "off") == 0 && number(value, 1, SYNC_NEVER, &v))
        return o->off_ns = v, true;
    if (strcmp(name, "shift") == 0 && number(value, 0, 10, &v))
        return o->instruction_ns = UINT64_C(1) << v, true;
    if (strcmp(name, "spins") == 0 && number(value, 0, 100000000, &v))
        return o->spins = (unsigned)v, true;
    if (strcmp(name, "vmmc") == 0 && backplane(value, &o->vmmc))
        return o->backplane = true;
    if (strcmp(name, "looks") == 0 && number(value, 0, 1, &v))
        return o->looks = v, true;
    if (strcmp(name, "jitter") == 0 && number(value, 1, 1000000000, &v))
        return o->jitter_ns = v, true;
    return false;
}

const char *options_parse(struct options *o, int argc, char **argv)
{
    *o = (struct options){.mode = MODE_RUN,
                          .nics = 1,
                          .zero_ns = -1,
                          .off_ns = SYNC_NEVER,
                          .instruction_ns = 1,
                          .spins = 3000,
                          .looks = true,
                          .supervisor_fd = -1};
    uint64_t supervisor = 0;
    for (int i = 0; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (!equals)
            return say("argument %s has no value", argv[i]);
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)(equals - argv[i]), argv[i]);
        if (!take(o, name, equals + 1, &supervisor))
            return say(
                "cannot use %s; known: mode=run|boot|watch|check, shm=, report=, machine=, nics=, "
                "zero=, off=, shift=, spins=, "
                "supervisor=, jitter=, looks=, trace=, points=, vmmc=",
                argv[i]);
    }
    if (o->mode == MODE_RUN && !o->shm)
        return "shm= is needed";
    if (o->mode == MODE_RUN && o->zero_ns < 0)
        return "zero= is needed";
    if (o->off_ns != SYNC_NEVER && o->mode != MODE_RUN)
        return "only mode=run has off=";
    if (o->zero_ns < 0)
        o->zero_ns = 0;
    if (!o->trace != !o->points)
        return "trace= and points= need each other";
    if (o->trace && o->mode != MODE_RUN)
        return "only mode=run can be traced";
    if (o->backplane && o->mode != MODE_RUN)
        return "only mode=run has a backplane";
    if (o->backplane && o->nics < 2)
        return "a backplane's adapter needs a NIC beside it";
    const char *wrong = o->backplane ? vmmc_check(&o->vmmc) : NULL;
    if (wrong)
        return wrong;
    if (o->mode == MODE_BOOT && !o->report)
        return "report= is needed";
    if (supervisor) {
        o->supervisor_fd = (int)syscall(SYS_pidfd_open, (pid_t)supervisor, 0);
        if (o->supervisor_fd < 0)
            return "the supervisor is gone";
    }
    return NULL;
}
