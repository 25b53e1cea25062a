/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `app: command` on one machine: any programs, with options in argv[1] as
 * harness/sundial/workloads/command/plan.py writes them. One loop starts each program when what it
 * comes after has happened (here or on another machine), records what it writes, and ends services
 * when all jobs of the workload have ended. Exit status 0: all has been recorded, whatever the
 * programs did; else an error line says which program cannot go on.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "command.h"
#include "samples.h"

enum { MESSAGE = 480, LOOK_NS = NS_PER_MS, PATH_MOST = 256, NS_PER_S = 1000000000 };
enum { SHORT_NS = 100000 }; /* a wait that no drift makes too late */
static const uint64_t NEVER = UINT64_MAX;

static struct program programs[PROGRAMS_MOST];
static size_t program_count;
static bool happened[INSTANCES_MOST]; /* by instance: ready (service), ended (job) */
static bool idle[PEERS_MOST];         /* by machine */
static unsigned peers[PEERS_MOST];
static size_t peer_count;
static unsigned machine;
static int wire = -1, child_signals = -1;
static uint64_t zero_ns;
static bool peer_failed, stopping;

static uint64_t earlier(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static void say(unsigned what)
{
    for (size_t i = 0; i < peer_count; i++)
        tell(wire, peers[i], false, machine, what);
}

static void announce(struct program *program)
{
    const json_t *tells = json_object_get(program->options, "tells");
    size_t index;
    json_t *value;

    program->announced = happened[program->id] = true;
    json_array_foreach (tells, index, value)
        tell(wire, (unsigned)json_integer_value(value), false, machine, program->id);
}

/* What a program wrote last, in one line. */
static size_t last_words(const struct program *program, char *text, size_t size)
{
    size_t length = 0;

    for (int i = 1; i >= 0; i--)
        for (size_t k = 0; k < program->outputs[i].tail_length && length + 4 < size; k++) {
            char byte = program->outputs[i].tail[k];

            if (byte == '\n') {
                memcpy(text + length, " | ", 3);
                length += 3;
            } else {
                text[length++] = byte >= ' ' && byte < 0x7f ? byte : '?';
            }
        }
    text[length] = '\0';
    return length;
}

/* Whether a process is one that a program left to this one, which is the subreaper. */
static bool is_left(pid_t pid)
{
    for (size_t i = 0; i < program_count; i++)
        if (programs[i].pid == pid || programs[i].check == pid)
            return false;
    return true;
}

/* Processes whose parent this one is, with its programs or without; each gets `number`. */
static size_t children(bool left_alone, int number)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    size_t count = 0;

    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        char path[64];
        int parent = 0;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%.20s/stat", entry->d_name);
        if (atoi(entry->d_name) <= 0 || (file = fopen(path, "re")) == NULL)
            continue;
        if (fscanf(file, "%*d (%*[^)]) %*c %d", &parent) == 1 && parent == (int)getpid() &&
            (!left_alone || is_left(atoi(entry->d_name)))) {
            kill(atoi(entry->d_name), number);
            count++;
        }
        fclose(file);
    }
    if (processes != NULL)
        closedir(processes);
    return count;
}

/* All that the workload left behind on this machine, programs that took other process groups too.
 */
static void kill_all(void)
{
    for (size_t i = 0; i < program_count; i++)
        if (programs[i].pid > 0 && programs[i].state != PROGRAM_ENDED)
            program_kill(&programs[i]);
    while (children(false, SIGKILL) > 0)
        while (waitpid(-1, NULL, 0) < 0 && errno == EINTR)
            continue;
}

static _Noreturn void give_up(const struct program *program, const char *what)
{
    char words[TAIL];
    const char *comma = last_words(program, words, sizeof(words)) > 0 ? "; its last output: " : "";

    samples_put_error("program %s: %s%s%s", program->name, what, comma, words);
    say(TELL_FAILED | machine);
    kill_all();
    exit(1);
}

static bool may_start(const struct program *program, uint64_t now)
{
    const json_t *after = json_object_get(program->options, "after");
    size_t index;
    json_t *value;

    json_array_foreach (after, index, value) {
        if (!happened[json_integer_value(json_array_get(value, 1)) % INSTANCES_MOST])
            return false;
    }
    return now >= zero_ns + (uint64_t)command_number(program->options, "at_ns", 0);
}

static void look_whether_ready(struct program *program, uint64_t now)
{
    char what[MESSAGE];
    const json_t *command = json_object_get(json_object_get(program->options, "ready"), "command");

    if (program_is_ready(program)) {
        program->ready_ns = now;
        program->state = PROGRAM_RUNS;
        announce(program);
        return;
    }
    if (now >= program->deadline_ns) {
        snprintf(what, sizeof(what), "not ready within %lld ms (%s)",
                 command_number(program->options, "timeout_ms", 0),
                 json_string_value(json_object_get(program->options, "rule")));
        give_up(program, what);
    }
    if (command != NULL && program->check == 0) {
        program->check = program_check(program);
        if (program->check < 0)
            give_up(program, strerror(errno));
    }
}

/* Ends what has run too long, and what a first signal did not end. */
static void look_at_end(struct program *program, uint64_t now)
{
    if (!program->service && program->kill_ns == 0 && now >= program->deadline_ns) {
        program->timed_out = true;
        program_end(program, now);
    }
    if (program->kill_ns != 0 && now >= program->kill_ns) {
        program_kill(program);
        program->kill_ns = NEVER;
    }
}

static void look_at(struct program *program, uint64_t now)
{
    switch (program->state) {
    case PROGRAM_WAITS:
        if (!may_start(program, now))
            return;
        program->again = false;
        if (!program_start(program, now)) {
            char what[MESSAGE];

            snprintf(what, sizeof(what), "%.300s: %s", program_word(program), strerror(errno));
            give_up(program, what);
        }
        if (program->service)
            look_whether_ready(program, now);
        return;
    case PROGRAM_STARTS:
        if (program->kill_ns == 0)
            look_whether_ready(program, now);
        else
            look_at_end(program, now);
        return;
    case PROGRAM_RUNS:
        look_at_end(program, now);
        return;
    case PROGRAM_ENDED:
        if (program->again && !stopping)
            program->state = PROGRAM_WAITS;
        else if (!program->announced && !program->service)
            announce(program);
    }
}

/* When a program is to be looked at again, if nothing happens before. */
static uint64_t next_look(const struct program *program, uint64_t now)
{
    uint64_t at = zero_ns + (uint64_t)command_number(program->options, "at_ns", 0);

    switch (program->state) {
    case PROGRAM_WAITS:
        return at > now ? at : NEVER;
    case PROGRAM_STARTS:
        if (program->kill_ns != 0)
            return program->kill_ns;
        return earlier(program->deadline_ns, clock_now_ns() + LOOK_NS);
    case PROGRAM_RUNS:
        if (program->kill_ns != 0)
            return program->kill_ns;
        return program->service ? NEVER : program->deadline_ns;
    default:
        return NEVER;
    }
}

/* A program has ended by itself. */
static void look_why_it_ended(struct program *program, bool starting)
{
    char what[MESSAGE];

    if (program_is_unknown(program)) {
        snprintf(what, sizeof(what), "%.300s: %s", program_word(program), strerror(ENOENT));
        give_up(program, what);
    }
    if (program->service && program->wait_status == 0)
        program->background = children(true, 0) > 0;
    if (starting)
        give_up(program, program->background
                             ? "went into the background before it was ready; a service must stay "
                               "in the foreground"
                             : "ended before it was ready");
}

static void reap(void)
{
    struct signalfd_siginfo info;
    int wait_status;
    pid_t pid;

    while (read(child_signals, &info, sizeof(info)) > 0)
        continue;
    while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0) {
        uint64_t now = clock_now_ns();

        for (size_t i = 0; i < program_count; i++) {
            struct program *program = &programs[i];
            bool starting = program->state == PROGRAM_STARTS;

            if (!program_reap(program, pid, wait_status, now))
                continue;
            for (int k = 0; k < 2; k++)
                while (program->outputs[k].file >= 0 && program_read(program, &program->outputs[k]))
                    continue;
            if (program->state == PROGRAM_ENDED && !program->hit && !stopping)
                look_why_it_ended(program, starting);
            if (program->state == PROGRAM_ENDED)
                events_end(program, now);
            break;
        }
    }
}

static void listen_to_others(void)
{
    unsigned from, what;
    bool need;

    while (wire >= 0 && tell_receive(wire, &need, &from, &what)) {
        if (need) {
            bool is_so = what & TELL_IDLE ? idle[machine] : happened[what % INSTANCES_MOST];

            if (is_so)
                tell(wire, from, false, machine, what & TELL_IDLE ? TELL_IDLE | machine : what);
        } else if ((what & TELL_FAILED) == TELL_FAILED) {
            peer_failed = true;
        } else if (what & TELL_IDLE) {
            idle[(what & ~TELL_IDLE) % PEERS_MOST] = true;
        } else {
            happened[what % INSTANCES_MOST] = true;
        }
    }
}

/* A timer of a clock that is slow, by up to 10 %, ends late: what is left is waited for after it.
 */
static uint64_t wait_ns(uint64_t rest)
{
    return clocks_drift() && rest > SHORT_NS ? rest - rest / 8 : rest;
}

static void wait_until(uint64_t when)
{
    struct pollfd watched[2 * PROGRAMS_MOST + 2];
    struct program *writer[2 * PROGRAMS_MOST + 2];
    struct output *output[2 * PROGRAMS_MOST + 2];
    nfds_t count = 0;
    uint64_t now = clock_now_ns();
    uint64_t rest = wait_ns(when > now ? when - now : 0);
    struct timespec time = {.tv_sec = (time_t)(rest / NS_PER_S),
                            .tv_nsec = (long)(rest % NS_PER_S)};

    watched[count++] = (struct pollfd){.fd = child_signals, .events = POLLIN};
    watched[count++] = (struct pollfd){.fd = wire, .events = POLLIN};
    for (size_t i = 0; i < program_count; i++)
        for (int k = 0; k < 2; k++) {
            if (programs[i].outputs[k].file < 0)
                continue;
            writer[count] = &programs[i];
            output[count] = &programs[i].outputs[k];
            watched[count] = (struct pollfd){.fd = output[count]->file, .events = POLLIN};
            count++;
        }
    if (ppoll(watched, count, when == NEVER ? NULL : &time, NULL) <= 0)
        return;
    for (nfds_t i = 2; i < count; i++)
        if (watched[i].revents != 0)
            program_read(writer[i], output[i]);
    if (watched[0].revents != 0)
        reap();
}

/* Whether no job is left here, and every service serves. */
static bool nothing_is_left(void)
{
    for (size_t i = 0; i < program_count; i++) {
        const struct program *program = &programs[i];

        if (program->service ? program->state < PROGRAM_RUNS : program->state != PROGRAM_ENDED)
            return false;
    }
    return true;
}

static bool all_are_idle(void)
{
    for (size_t i = 0; i < peer_count; i++)
        if (!idle[peers[i]])
            return false;
    return idle[machine];
}

static bool all_have_ended(void)
{
    for (size_t i = 0; i < program_count; i++)
        if (programs[i].state != PROGRAM_ENDED)
            return false;
    return true;
}

static void stop_services(uint64_t now)
{
    stopping = true;
    for (size_t i = program_count; i-- > 0;)
        if (programs[i].state == PROGRAM_RUNS || programs[i].state == PROGRAM_STARTS) {
            programs[i].stopped = true;
            program_end(&programs[i], now);
        } else {
            programs[i].state = PROGRAM_ENDED; /* or it was about to start again */
        }
}

static void run(void)
{
    while (!(stopping && all_have_ended())) {
        uint64_t now = clock_now_ns();
        uint64_t next = NEVER;

        listen_to_others();
        if (peer_failed) {
            kill_all();
            exit(0);
        }
        for (size_t i = 0; i < program_count; i++)
            look_at(&programs[i], now);
        if (!stopping && (events_look(now) || clocks_look(now) || amounts_look(now)))
            continue;
        /* A program may wait for one that stands behind it in the list. */
        for (size_t i = 0; i < program_count; i++)
            if ((programs[i].state == PROGRAM_WAITS && may_start(&programs[i], now)) ||
                (programs[i].state == PROGRAM_ENDED && programs[i].again && !stopping))
                next = now;
        if (!idle[machine] && nothing_is_left()) {
            idle[machine] = true;
            say(TELL_IDLE | machine);
        }
        if (!stopping && all_are_idle()) {
            stop_services(now);
            continue;
        }
        for (size_t i = 0; i < program_count; i++)
            next = earlier(next, next_look(&programs[i], now));
        if (!stopping)
            next = earlier(earlier(next, amounts_next()), earlier(events_next(), clocks_next()));
        wait_until(next);
    }
    kill_all();
    clocks_end();
    for (size_t i = 0; i < program_count; i++) {
        for (int k = 0; k < 2; k++)
            while (programs[i].outputs[k].file >= 0 &&
                   program_read(&programs[i], &programs[i].outputs[k]))
                continue;
        program_report(&programs[i]);
    }
}

static void write_file(const char *path, const json_t *content)
{
    char folder[PATH_MOST];
    FILE *file;

    snprintf(folder, sizeof(folder), "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0755);
        *slash = '/';
    }
    file = fopen(path, "we");
    if (file == NULL || fputs(json_string_value(content), file) < 0 || fclose(file) != 0 ||
        chmod(path, 0755) != 0)
        samples_fail("file %s: %s", path, strerror(errno));
}

static void take_options(const json_t *options)
{
    const json_t *list = json_object_get(options, "programs");
    const json_t *events = json_object_get(options, "events");
    const json_t *clocks = json_object_get(options, "clocks");
    const json_t *taken = json_object_get(options, "amounts");
    const char *zero = getenv("SUNDIAL_ZERO_NS");
    const char *path;
    size_t index;
    json_t *value;

    if (json_array_size(list) == 0 || json_array_size(list) > PROGRAMS_MOST)
        samples_refuse("option programs: must be 1 to %d", PROGRAMS_MOST);
    machine = (unsigned)command_number(options, "machine", 0) % PEERS_MOST;
    json_array_foreach (json_object_get(options, "peers"), index, value)
        peers[peer_count++ % PEERS_MOST] = (unsigned)json_integer_value(value) % PEERS_MOST;
    json_object_foreach (json_object_get(options, "files"), path, value)
        write_file(path, value);
    json_array_foreach (list, index, value)
        program_take(&programs[program_count++], value);
    zero_ns = zero == NULL ? clock_now_ns() : strtoull(zero, NULL, 10);
    events_take(events, programs, program_count, zero_ns);
    clocks_take(clocks, zero_ns);
    amounts_take(taken, zero_ns);
    if (json_array_size(events) + json_array_size(clocks) + json_array_size(taken) > 0)
        program_never_delays();
}

/* Asks for all that may have happened before anyone here could hear of it. */
static void ask(void)
{
    for (size_t i = 0; i < peer_count; i++)
        tell(wire, peers[i], true, machine, TELL_IDLE | peers[i]);
    for (size_t i = 0; i < program_count; i++) {
        const json_t *after = json_object_get(programs[i].options, "after");
        size_t index;
        json_t *value;

        json_array_foreach (after, index, value) {
            unsigned where = (unsigned)json_integer_value(json_array_get(value, 0));

            if (where != machine)
                tell(wire, where, true, machine,
                     (unsigned)json_integer_value(json_array_get(value, 1)));
        }
    }
}

int main(int argc, char **argv)
{
    json_error_t error;
    json_t *options = json_loads(argc > 1 ? argv[1] : "{}", JSON_ALLOW_NUL, &error);
    sigset_t children;

    if (!json_is_object(options))
        samples_refuse("options: %s", error.text);
    if (clock_select_from_environment() != 0)
        samples_fail("SUNDIAL_CLOCK: must be tsc or monotonic");
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    signal(SIGPIPE, SIG_IGN);
    child_signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_TIMERSLACK, 1);
    take_options(options);
    if (peer_count > 0) {
        wire = tell_open((unsigned)command_number(options, "workload", 0));
        if (wire < 0)
            samples_fail("cannot hear of other machines: %s", strerror(errno));
        ask();
    }
    run();
    json_decref(options);
    return 0;
}
