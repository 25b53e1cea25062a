/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The programs of a workload `command` on one machine: each is started when what it waits for has
 * come, watched, and ended. command.c has the loop; program.c what happens to one of them.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    PROGRAMS_MOST = 64,    /* on one machine */
    INSTANCES_MOST = 1024, /* in the workload */
    PEERS_MOST = 64,
    TAIL = 400, /* bytes of the last output that an error quotes */
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
    bool announced; /* that it is ready (service) or has ended (job) */
    struct output outputs[2];
};

/* A number of an object; `absent` where there is none. */
long long command_number(const json_t *object, const char *name, long long absent);

/* program.c */

/* Starts it. False: it cannot be executed, `errno` says why. */
bool program_start(struct program *program, uint64_t now);

/* Takes what an output has; false if it has nothing now. */
bool program_read(struct program *program, struct output *output);

/* Whether a service has become ready. */
bool program_is_ready(struct program *program);

/* Starts the process of its readiness command; -1: it cannot be executed. */
pid_t program_check(const struct program *program);

/* Sends its first signal to its process group; SIGKILL follows after the grace. */
void program_end(struct program *program, uint64_t now);

void program_kill(struct program *program);

/* Its process, or its check, has ended. False: `pid` is another. */
bool program_reap(struct program *program, pid_t pid, int wait_status, uint64_t now);

/* Its record. */
void program_report(const struct program *program);

/* tell.c: what machines say to one another, in frames that no wire carries. */

enum {
    TELL_IDLE = 0x8000,   /* plus the machine: all jobs there have ended */
    TELL_FAILED = 0xc000, /* plus the machine: the workload cannot go on */
};

/* The socket, or -1. */
int tell_open(void);

/* Asks `machine` for `what` (`need`), or says that it is so. */
void tell(int file, unsigned machine, bool need, unsigned from, unsigned what);

/* The next message; false if there is none. */
bool tell_receive(int file, bool *need, unsigned *from, unsigned *what);
