/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The programs of a workload `command` on one machine: each is started when what it waits for has
 * come, watched, and ended. command.c has the loop; program.c what happens to one of them; events.c
 * what a timeline does to them; clocks.c what it does to the machine's clock.
 */
#include <jansson.h>
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    PROGRAMS_MOST = 64,    /* on one machine */
    INSTANCES_MOST = 1024, /* in the workload */
    PEERS_MOST = 64,
    EVENTS_MOST = 1000,
    TAIL = 400,       /* bytes of the last output that an error quotes */
    LINE_MOST = 4096, /* bytes of a line that patterns are compared with */
    NS_PER_MS = 1000000,
};

/* One of the two outputs of a program. */
struct output {
    const char *name;
    int file;       /* reading end; -1: closed */
    uint64_t bytes; /* written by the program */
    uint64_t kept;  /* of them, recorded */
    uint64_t sum;   /* FNV-1a of those that are kept */
    char tail[TAIL];
    size_t tail_length;
    char line[LINE_MOST + 1]; /* the one that has not ended */
    size_t line_length;
};

enum state {
    PROGRAM_WAITS,  /* for others, or for its time */
    PROGRAM_STARTS, /* a service that is not ready */
    PROGRAM_RUNS,
    PROGRAM_ENDED,
};

struct program {
    const json_t *options;
    const char *name;
    unsigned id; /* number of the instance in the workload */
    bool service;
    enum state state;
    pid_t pid;
    pid_t check;                         /* the process that runs its readiness command; 0: none */
    uint64_t start_ns, ready_ns, end_ns; /* 0: not yet */
    uint64_t deadline_ns;                /* for its end (job) or its readiness (service) */
    uint64_t kill_ns; /* when SIGKILL follows the first signal; 0: no signal was sent */
    int wait_status;
    bool timed_out, stopped, line_seen;
    bool background; /* its first process ended, and others went on */
    bool announced;  /* that it is ready (service) or has ended (job) */
    bool paused;
    bool hit;   /* an event sent it a signal that ends programs */
    bool again; /* it starts again after its end */
    regex_t ready_line;
    json_t *lives; /* those before this one */
    struct output outputs[2];
};

/* A number of an object; `absent` where there is none. */
long long command_number(const json_t *object, const char *name, long long absent);

/* program.c */

/* Takes its options; `value` stays with the caller. */
void program_take(struct program *program, const json_t *value);

/* A pattern of the options (POSIX, extended). */
void pattern_take(regex_t *pattern, const char *text);

bool pattern_matches(const regex_t *pattern, const char *line);

/* From now on this process is not delayed by programs that are busy. */
void program_never_delays(void);

/* Starts it, or starts it again. False: it cannot be executed, `errno` says why. */
bool program_start(struct program *program, uint64_t now);

/* Takes what an output has; false if it has nothing now. */
bool program_read(struct program *program, struct output *output);

/* Whether a service has become ready. */
bool program_is_ready(struct program *program);

/* Starts the process of its readiness command; -1: it cannot be executed. */
pid_t program_check(const struct program *program);

/* What it executes. */
const char *program_word(const struct program *program);

/* Whether it has ended because neither its PATH nor busybox has such a program. */
bool program_is_unknown(const struct program *program);

/* Sends its first signal to its process group; SIGKILL follows after the grace. */
void program_end(struct program *program, uint64_t now);

void program_kill(struct program *program);

/* Sends a signal to its process group. */
void program_signal(const struct program *program, int number);

/* Its process, or its check, has ended. False: `pid` is another. */
bool program_reap(struct program *program, pid_t pid, int wait_status, uint64_t now);

/* Its record. */
void program_report(const struct program *program);

/* events.c */

/* `programs`: all of this machine. */
void events_take(const json_t *options, struct program *programs, size_t count, uint64_t zero);

/* Carries out what is due; false if nothing was. */
bool events_look(uint64_t now);

/* When the next one is due; UINT64_MAX: none is. */
uint64_t events_next(void);

/* A program has written a line. */
void events_line(const struct program *program, const char *line, uint64_t now);

/* A program has ended. */
void events_end(const struct program *program, uint64_t now);

/* clocks.c */

/* `options`: the changes, in time. */
void clocks_take(const json_t *options, uint64_t zero);

/* Makes the changes that are due; false if none was. */
bool clocks_look(uint64_t now);

/* When the next one is due; UINT64_MAX: none is. */
uint64_t clocks_next(void);

/* Whether timers of this machine may be fast or slow. */
bool clocks_drift(void);

/* Records what the clock is in the end, if there were changes. */
void clocks_end(void);

/* amounts.c */

/* `options`: what is filled and taken, in time. */
void amounts_take(const json_t *options, uint64_t zero);

/* Fills, takes or releases a piece of what is due; false if nothing was. */
bool amounts_look(uint64_t now);

/* When the next one is due; UINT64_MAX: none is. */
uint64_t amounts_next(void);

/* In a program's process: the kernel may kill it again where memory is short. */
void amounts_leave_child(void);

/* tell.c: what machines say to one another, in frames that no wire carries. */

enum {
    TELL_IDLE = 0x8000,   /* plus the machine: all jobs there have ended */
    TELL_FAILED = 0xc000, /* plus the machine: the workload cannot go on */
};

/* The socket, or -1. Messages of other workloads are not for it: a machine may be in the next. */
int tell_open(unsigned workload);

/* Asks `machine` for `what` (`need`), or says that it is so. */
void tell(int file, unsigned machine, bool need, unsigned from, unsigned what);

/* The next message; false if there is none. */
bool tell_receive(int file, bool *need, unsigned *from, unsigned *what);
