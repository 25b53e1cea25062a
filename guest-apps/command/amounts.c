/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a timeline takes from this machine: space of a file system by a file, and memory that stays
 * in this process, locked. It comes and goes in pieces, so that other events are not late. Each
 * change is recorded with what the kernel has as free and as taken, before it and after it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "clock.h"
#include "command.h"
#include "samples.h"

static const uint64_t NEVER = UINT64_MAX;
static const char FILE_NAME[] = ".sundial-taken";

enum {
    PIECE = 256 << 10,
    PAGE = 4096,
    BLOCK = 512,        /* of st_blocks */
    SPARE = 2 << 20,    /* of memory that is never taken: this process has to go on */
    NEVER_KILL = -1000, /* of oom_score_adj */
    TEXT = 320,
};

enum phase { WAITS, TAKES, HOLDS, RELEASES, DONE };

/* Free and taken bytes. */
struct reading {
    uint64_t free, taken, at_ns;
    long sleeps; /* of this process so far: others run then */
};

struct amount {
    const char *path; /* folder of the file system; NULL: memory */
    long long number, bytes, leave;
    uint64_t due_ns, over_ns; /* NEVER: it stays */
    enum phase phase;
    struct reading before;
    uint64_t wanted, got;
    char *memory;
    int file;
};

static struct amount amounts[EVENTS_MOST];
static size_t amount_count;
static uint64_t zero_ns;
static bool spared; /* this process is not killed where memory is short */

static _Noreturn void fail(const struct amount *amount, const char *what)
{
    samples_fail("timeline.%lld: %s: %s", amount->number, what, strerror(errno));
}

/* A number of kB in a file of /proc. */
static uint64_t bytes_of(const char *path, const char *field)
{
    char line[TEXT];
    unsigned long long number = 0;
    FILE *file = fopen(path, "re");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            number = strtoull(line + strlen(field), NULL, 10) * 1024;
    if (file != NULL)
        fclose(file);
    return number;
}

/* How readily the kernel kills this process where memory is short. */
static void set_score(int score)
{
    FILE *file = fopen("/proc/self/oom_score_adj", "we");

    if (file == NULL || fprintf(file, "%d", score) < 0 || fclose(file) != 0)
        samples_fail("oom_score_adj: %s", strerror(errno));
}

void amounts_leave_child(void)
{
    if (spared)
        set_score(0);
}

void amounts_take(const json_t *options, uint64_t zero)
{
    size_t index;
    json_t *value;

    zero_ns = zero;
    if (json_array_size(options) > EVENTS_MOST)
        samples_refuse("option amounts: up to %d", EVENTS_MOST);
    json_array_foreach (options, index, value) {
        struct amount *amount = &amounts[amount_count++];
        long long over = command_number(value, "over_ns", -1);

        *amount = (struct amount){
            .path = json_string_value(json_object_get(value, "path")),
            .number = command_number(value, "number", 0),
            .bytes = command_number(value, "bytes", -1),
            .leave = command_number(value, "leave", 0),
            .due_ns = zero_ns + (uint64_t)command_number(value, "at_ns", 0),
            .over_ns = over < 0 ? NEVER : zero_ns + (uint64_t)over,
            .file = -1,
        };
        spared = spared || amount->path == NULL;
    }
    if (spared)
        set_score(NEVER_KILL);
}

static struct reading read_amounts(const struct amount *amount)
{
    struct reading reading = {.at_ns = clock_now_ns()};
    struct statvfs space;
    struct stat held = {0};
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    reading.sleeps = usage.ru_nvcsw;
    if (amount->path == NULL) {
        reading.free = bytes_of("/proc/meminfo", "MemAvailable:");
        reading.taken = bytes_of("/proc/self/status", "VmLck:");
        return reading;
    }
    if (statvfs(amount->path, &space) != 0 ||
        (amount->file >= 0 && fstat(amount->file, &held) != 0))
        fail(amount, amount->path);
    reading.free = (uint64_t)space.f_bavail * space.f_frsize;
    reading.taken = (uint64_t)held.st_blocks * BLOCK;
    return reading;
}

static void record(const struct amount *amount, const char *verb, uint64_t due)
{
    struct reading after = read_amounts(amount);
    json_t *line = samples_object("amount");

    json_object_set_new(line, "number", json_integer(amount->number));
    json_object_set_new(line, "verb", json_string(verb));
    json_object_set_new(line, "at", json_integer((json_int_t)after.at_ns));
    json_object_set_new(line, "due", json_integer((json_int_t)(due - zero_ns)));
    json_object_set_new(line, "late", json_integer((json_int_t)(amount->before.at_ns - due)));
    json_object_set_new(line, "before", json_integer((json_int_t)amount->before.free));
    json_object_set_new(line, "after", json_integer((json_int_t)after.free));
    json_object_set_new(line, "held", json_integer((json_int_t)amount->before.taken));
    json_object_set_new(line, "holds", json_integer((json_int_t)after.taken));
    json_object_set_new(line, "sleeps", json_integer(after.sleeps - amount->before.sleeps));
    samples_put(line);
}

/* Makes what holds it: a file without a name, or an address range. */
static void begin(struct amount *amount)
{
    struct statvfs space;
    char path[TEXT];
    uint64_t free;

    if (amount->path != NULL && statvfs(amount->path, &space) == 0 && space.f_blocks == 0) {
        errno = ENOTSUP;
        fail(amount, "a file system without a size");
    }
    amount->before = read_amounts(amount);
    free = amount->before.free;
    amount->wanted = amount->bytes >= 0
                         ? (uint64_t)amount->bytes
                         : free - (free < (uint64_t)amount->leave ? free : (uint64_t)amount->leave);
    amount->wanted = (amount->wanted + PAGE - 1) / PAGE * PAGE;
    if (amount->path == NULL ? amount->wanted + SPARE > free : amount->wanted > free)
        samples_fail("timeline.%lld: %llu bytes cannot be taken: %llu are free", amount->number,
                     (unsigned long long)amount->wanted, (unsigned long long)free);
    amount->phase = TAKES;
    if (amount->wanted == 0)
        return;
    if (amount->path == NULL) {
        amount->memory = mmap(NULL, amount->wanted, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (amount->memory == MAP_FAILED ||
            madvise(amount->memory, amount->wanted, MADV_DONTFORK) != 0)
            fail(amount, "mmap");
        return;
    }
    snprintf(path, sizeof(path), "%s/%s-%lld", amount->path, FILE_NAME, amount->number);
    amount->file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (amount->file < 0 || unlink(path) != 0)
        fail(amount, path);
}

static uint64_t piece_of(const struct amount *amount)
{
    return amount->wanted - amount->got < PIECE ? amount->wanted - amount->got : PIECE;
}

static void take_piece(struct amount *amount)
{
    uint64_t piece = piece_of(amount);

    if (piece > 0) {
        if (amount->path == NULL
                ? mlock(amount->memory + amount->got, piece) != 0
                : fallocate(amount->file, 0, (off_t)amount->got, (off_t)piece) != 0)
            fail(amount, amount->path == NULL ? "mlock" : "fallocate");
        amount->got += piece;
    }
    if (amount->got < amount->wanted)
        return;
    record(amount, "take", amount->due_ns);
    amount->phase = amount->over_ns == NEVER ? DONE : HOLDS;
}

static void release_piece(struct amount *amount)
{
    uint64_t piece = amount->got < PIECE ? amount->got : PIECE;

    if (piece > 0) {
        amount->got -= piece;
        if (amount->path == NULL ? munmap(amount->memory + amount->got, piece) != 0
                                 : ftruncate(amount->file, (off_t)amount->got) != 0)
            fail(amount, "release");
    }
    if (amount->got > 0)
        return;
    record(amount, "release", amount->over_ns);
    if (amount->file >= 0)
        close(amount->file);
    amount->phase = DONE;
}

bool amounts_look(uint64_t now)
{
    for (size_t i = 0; i < amount_count; i++) {
        struct amount *amount = &amounts[i];

        if (amount->phase == WAITS && now >= amount->due_ns) {
            begin(amount);
        } else if (amount->phase == TAKES) {
            take_piece(amount);
        } else if (amount->phase == HOLDS && now >= amount->over_ns) {
            amount->before = read_amounts(amount);
            amount->phase = RELEASES;
        } else if (amount->phase == RELEASES) {
            release_piece(amount);
        } else {
            continue;
        }
        return true;
    }
    return false;
}

uint64_t amounts_next(void)
{
    uint64_t next = NEVER;

    for (size_t i = 0; i < amount_count; i++) {
        const struct amount *amount = &amounts[i];
        uint64_t at = amount->phase == WAITS   ? amount->due_ns
                      : amount->phase == HOLDS ? amount->over_ns
                                               : NEVER;

        if (at < next)
            next = at;
    }
    return next;
}
