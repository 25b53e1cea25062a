/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Tasks: an address space, threads, and an id that other nodes know. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"
#include "sss/abi.h"
#include "thread.h"

struct trap_frame;

enum { TRANSLATION_BITS = 6, TRANSLATIONS = 1 << TRANSLATION_BITS };

/* A page of the task and where it is in the direct map: remote operations find memory in a few
 * instructions. */
struct translation {
    /* its address: for reading, for writing; TRANSLATION_NONE if that is not permitted */
    uint64_t page[2];
    uint64_t offset; /* from an address of the task to the direct map */
    uint64_t unused; /* pads to a power of two, which is faster to index */
};
enum { TRANSLATION_NONE = 1 /* not the address of a page */ };

struct task {
    uint16_t id, creator; /* creator 0: the kernel */
    bool empty;           /* a dummy: memory without threads */
    enum sss_task_state state;
    page_source new_page; /* of its memory, its page tables and its threads */
    uint64_t *pml4;
    struct translation translations[TRANSLATIONS];
    struct thread *threads;
    struct thread *signal_thread; /* runs the signal handlers, or NULL */
    struct sss_info *info;        /* its information page */
    size_t pages;                 /* mapped */
    bool csm;                     /* it has shared memory, or mapped CSM: others may change it */
    struct task *next_sharing;    /* in the list of those with CSM */
    uint64_t heap_next;           /* address of the next anonymous mapping */
    uint64_t run_ns;              /* of threads that have ended */
    char name[SSS_NAME];
};

/* Other threads may wait for what its threads write. */
static inline bool task_shares_memory(const struct task *task)
{
    return task->csm || (task->threads != NULL && task->threads->next_of_task != NULL);
}

/* From `name` in the initrd; creator NULL: the kernel. -> id or a negative error. */
int task_create(const char *name, const char *options, unsigned flags, struct task *creator);
void task_end(struct task *task, int status);
/* The task ends because of this fault; console and records report it. */
void task_fault(struct task *task, const struct trap_frame *frame, const char *what);
/* As in a crash of the node: all tasks and threads vanish, and task_on_end's functions are not
 * called. */
void tasks_forget(void);

/* `open` gives a new task its id, or a negative error. */
void task_ids_from(int (*open)(struct task *task));
/* `ended` is called for each task that ends, in the order of registration; its threads are gone. */
void task_on_end(void (*ended)(struct task *task));

long task_status(uint16_t id, struct sss_task_status *status);
struct task_row {
    uint16_t id, creator; /* creator 0: the kernel */
    enum sss_task_state state;
    unsigned threads;
    size_t pages;
    uint64_t run_ns;
    const char *name;
};
/* For the monitor; false past the last one. */
bool task_at(unsigned index, struct task_row *row);
