/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Threads. All that the kernel keeps of one is here, nothing is on a stack. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sss/abi.h"
#include "timer.h"
#include "trap.h"

struct task;
struct wait_queue;
typedef long (*call_function)(const uint64_t arguments[6]);

enum thread_state {
    THREAD_RUNNING,  /* has the CPU */
    THREAD_RUNNABLE, /* in the run queue */
    THREAD_WAITING,  /* in SSS_WAIT */
    THREAD_ASLEEP,   /* in a wait queue, by thread_sleep */
};

struct wait_word {
    const volatile uint32_t *word; /* in the direct map */
    uint32_t seen;
    uint64_t address; /* in the task's address space */
};

/* What a thread runs: its own code, or its signal handler. */
struct context {
    struct trap_frame frame;
    struct thread *thread;
    void *fpu;           /* 512 bytes for fxsave; NULL until it uses the FPU */
    call_function again; /* of a system call that sleeps, or NULL */
    bool waiting;        /* in SSS_WAIT; a handler may have interrupted it */
    bool expired;        /* the wait has timed out */
    uint64_t progress;   /* of a system call that sleeps */
    struct timer timer;
    unsigned words;
    struct wait_word word[SSS_WAITS];
} __attribute__((aligned(16)));

struct thread {
    struct context own, handler;
    struct context *context; /* &own or &handler: handlers are not interrupted by handlers */
    struct task *task;
    struct thread *next_of_task;
    struct thread *next; /* in the run queue or a wait queue */
    struct wait_queue *asleep_in;
    enum thread_state state;
    uint16_t id;
    bool signalled;          /* the handler must be entered */
    uint64_t signal_handler; /* of the latest signal */
    uint64_t signal_trampoline, signal_stack;
    uint64_t run_ns;
};

/* A thread of the task that starts at `entry`; NULL if there are too many, or no memory. */
struct thread *thread_create(struct task *task, uint64_t entry, uint64_t stack_top,
                             uint64_t argument);
void thread_start(struct thread *thread);
void thread_end(struct thread *thread);

struct thread_row {
    uint16_t id, task;
    const char *state;
    uint64_t run_ns;
    uint64_t instruction; /* where it continues at user level */
};
/* For the monitor; false past the last one. */
bool thread_at(unsigned index, struct thread_row *row);
