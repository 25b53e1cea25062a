/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Tasks and threads as task.c, schedule.c, space.c and syscall.c know them; everybody else has
 * kernel.h. */
#include "kernel.h"
#include "trap.h"

enum { TRANSLATION_BITS = 6, TRANSLATIONS = 1 << TRANSLATION_BITS };

/* A page of the task and where it is in the direct map: the way of a remote operation to memory, a
 * few instructions long. */
struct translation {
    /* its address: for reading, for writing; TRANSLATION_NONE where it is not to be had */
    uint64_t page[2];
    uint64_t offset; /* from an address to where it is in the direct map */
    uint64_t unused; /* a power of two is quicker to index */
};
enum { TRANSLATION_NONE = 1 /* no address of a page */ };

struct task {
    uint16_t id, creator; /* creator 0: the kernel */
    bool empty;           /* a dummy: memory, and no thread ever */
    enum sss_task_state state;
    uint64_t *pml4;
    struct translation translations[TRANSLATIONS];
    struct thread *threads;
    struct thread *signal_thread; /* the one that runs the handlers, or NULL */
    struct sss_info *info;        /* its information page */
    size_t pages;                 /* mapped */
    unsigned csm;                 /* mappings of CSM: others may change its memory */
    struct task *next_sharing;    /* of those with CSM */
    uint64_t heap_next;           /* address of the next anonymous mapping */
    uint64_t run_ns;              /* of threads that have ended */
    char name[SSS_NAME];
};

enum thread_state {
    THREAD_RUNNING,  /* has the CPU */
    THREAD_RUNNABLE, /* in the run queue */
    THREAD_WAITING,  /* SSS_WAIT: for a word, or the time */
    THREAD_ASLEEP,   /* in a wait queue, by thread_sleep */
};

struct wait_word {
    const volatile uint32_t *word; /* in the direct map */
    uint32_t seen;
    uint64_t address; /* the task's own */
};

/* What a thread does: its own business, or its signal handler. */
struct context {
    struct trap_frame frame;
    struct thread *thread;
    void *fpu;         /* 512 bytes for fxsave; NULL until it uses the FPU */
    bool again;        /* its system call is to be called anew */
    bool waiting;      /* in SSS_WAIT, maybe interrupted by a handler */
    bool expired;      /* the time of the wait is up */
    uint64_t progress; /* of a system call that is called anew */
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
    bool signalled;          /* the handler is to be started */
    uint64_t signal_handler; /* for which the last signal came */
    uint64_t signal_trampoline, signal_stack;
    uint64_t run_ns;
};

/* ---- task.c ---- */
extern struct task *tasks[SSS_TASKS];
void task_clock(uint32_t clock); /* SSS_CLOCK_TSC or _CALL: how tasks ask for the time */
/* Counts a change of any task's state in all information pages. */
void tasks_changed(void);
long task_status(uint16_t id, struct sss_task_status *status);
void task_drop_translations(struct task *task, uint64_t address, uint64_t bytes);

/* ---- elf.c: maps the segments of a static executable -> its entry, or 0 with *why ---- */
uint64_t elf_load(struct task *task, const void *file, size_t length, const char **why);

/* ---- csm.c ---- */
int csm_share(struct task *task, uint64_t address, uint64_t bytes);
int csm_map(struct task *task, int id, uint64_t address, unsigned protection);
/* What its owner no longer has can be mapped by nobody any more; who has mapped it keeps it. */
void csm_unmapped(const struct task *task, uint64_t address, uint64_t bytes);
void csm_task_gone(struct task *task);
struct task *csm_tasks(void); /* the first of those with CSM; the others by next_sharing */
bool csm_page(const void *page);

/* ---- schedule.c ---- */
/* a system call does not return straight to its thread; entry.S looks at it */
extern bool schedule_needed;
/* A thread of the task that starts at `entry`; NULL where there is no place or memory. */
struct thread *thread_create(struct task *task, uint64_t entry, uint64_t stack_top,
                             uint64_t argument);
void thread_start(struct thread *thread);
/* Takes it out of every queue and frees it. */
void thread_end(struct thread *thread);
/* The frame to go on with, after halting where no thread can run. */
struct trap_frame *schedule_next(void);
struct trap_frame *syscall_finish(long result);
/* in an interrupt: it came while the CPU halted for want of threads, and there is one now */
bool schedule_halt_over(void);
void schedule_yield(void);
/* SSS_WAIT; an array of the current task */
long thread_wait(uint64_t waits, uint64_t count, uint64_t timeout_ns);
long thread_signal_return(void);
/* Pages of the task have gone: who waits for a word there fails. */
void waits_check_mapped(struct task *task);
bool fpu_fault(void); /* false: no memory for it */

/* ---- syscall.c ---- */
typedef long (*syscall_handler)(const uint64_t arguments[6]);
extern const syscall_handler syscall_table[SSS_CALLS];
