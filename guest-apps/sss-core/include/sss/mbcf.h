/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory-Based Communication Facility: what a task does with another task's memory. The terms are
 * those of kamesawa98 section 2. The same calls exist on SSS-CORE (system calls) and on Linux
 * (linux/, a node in a process).
 *
 * A task names another one by a logical task number (ltn), an entry of its own connection table.
 * Operations on one connection are executed exactly once and in order, or fail with a status that
 * says whether they may have been executed. Nothing is received by a call: data arrive in memory,
 * and `sss_wait` sleeps until a word of it changes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"

/* ---- status of an operation; also on the wire (RESULT), up to MB_LAST_REMOTE ---- */
enum mb_status {
#define MB_STATUS(name, number, text) MB_##name = (number),
#include "mbcf_status.def"
    MB_LAST_REMOTE = MB_BUSY,
    MB_MAYBE = 128, /* added to a status: the operation may have been executed */
};
const char *mb_status_text(int status);

enum { MB_READ_ALLOWED = 1, MB_WRITE_ALLOWED = 2 };

/*
 * The user-visible acknowledgement: an operation that names one gets its status there when it has
 * been executed (or has failed). `state` goes 1 when the operation is taken, then 2. 8-byte
 * aligned.
 */
struct mb_ack {
    volatile uint32_t state;
    volatile uint32_t status;
    volatile uint64_t value; /* the old value, of swap, compare and swap, fetch and add */
};
enum { MB_ACK_IDLE = 0, MB_ACK_PENDING = 1, MB_ACK_DONE = 2 };

/* ---- memory-based FIFO, TASKQUE and signal queue: one layout, in the owner's memory ---- */
struct mb_fifo {
    uint32_t magic;         /* MB_FIFO_MAGIC */
    uint32_t size;          /* bytes of the ring behind this header: a power of two, at least 256 */
    volatile uint32_t head; /* bytes ever put in; written by the kernel */
    /* bytes ever taken out; written by the owner. A hint to the kernel, range-checked */
    volatile uint32_t tail;
    volatile uint32_t events;  /* grows when something can be taken: the word to wait for */
    volatile uint32_t refused; /* segments refused with MB_FULL */
    uint32_t reserved[10];
};
enum { MB_FIFO_MAGIC = 0x4f464942, MB_FIFO_HEADER = 64, MB_FIFO_LEAST = 256 };
_Static_assert(sizeof(struct mb_fifo) == MB_FIFO_HEADER, "layout");

/*
 * A record in a ring: this, then `length` bytes, padded to 16. Records are 16-aligned and never
 * wrap: where one does not fit before the end, a SKIP record fills the rest. A segment of several
 * packets is RESERVED until its last part is there, and VOID when its sender is gone before. The
 * kernel keeps its own head; it never believes a word of the user.
 */
struct mb_record {
    uint32_t length;
    uint8_t kind;           /* enum mb_record_kind */
    volatile uint8_t state; /* enum mb_record_state */
    uint16_t node;          /* who wrote it */
    uint16_t task;
    uint16_t ltn; /* the reader's connection to the writer, 0 where it has none */
    uint32_t reserved;
};
_Static_assert(sizeof(struct mb_record) == 16, "layout");
enum mb_record_kind { MB_DATA = 1, MB_SKIP = 2 };
enum mb_record_state { MB_RESERVED = 1, MB_COMPLETE = 2, MB_VOID = 3 };

/* Data of a record in a TASKQUE begin with this; ltn is the connection that the write has made. */
struct mb_taskque_head {
    uint64_t key; /* the writer's accesskey */
    uint32_t permission;
    uint32_t reserved;
};
/* Data of a record in a signal queue begin with this. */
struct mb_signal_head {
    uint64_t handler;
    uint64_t argument[4];
};

/* ---- what a task declares (all return 0 or a negative enum sss_error) ---- */

/* Sets one of the MB_KEYS accesskeys; key 0 clears the slot. A remote operation must bring one that
 * permits it. */
int mb_key(unsigned slot, uint64_t key, unsigned permission);
int mb_key_of(uint16_t task, unsigned slot, uint64_t key, unsigned permission);

/* Declares the use of the TASKQUE, a FIFO of `bytes` in all; NULL declares that it is not used (the
 * state at start). */
int mb_taskque(void *memory, size_t bytes);

/* Makes `memory` (64-byte aligned, MB_FIFO_HEADER + a power of two) a FIFO that others may write
 * into. */
int mb_fifo(void *memory, size_t bytes);
/* in a dummy task's address space; already mapped there */
int mb_fifo_of(uint16_t task, uint64_t address, size_t bytes);
int mb_fifo_remove(void *memory);

/*
 * Memory-based SIGNAL. A signal names one of `handlers`; its data go to `queue`, and the handler is
 * started at user level, on `stack`, when the thread that called mb_signal runs at user level or
 * waits. Until the handler returns further signals only queue, so it drains the queue.
 * `handler(record)` gets the oldest record that has not been taken.
 */
typedef void (*mb_handler)(struct mb_record *record);
struct mb_signal_setup {
    const mb_handler *handlers;
    uint64_t count;
    struct mb_fifo *queue;
    uint64_t queue_bytes;
    void *stack_top;  /* 16-aligned */
    void *trampoline; /* filled in by the library */
};
int mb_signal(struct mb_signal_setup *setup);

/* ---- connections ---- */

/* A connection to a task whose key is known beforehand -> ltn, or a negative error. Never discarded
 * by mb_close_served. */
int mb_connect(uint16_t node, uint16_t task, uint64_t key);

/*
 * Client side: discards any connection. Server side: only one that was made by a TASKQUE write;
 * SSS_EPERM for others. The peer's operations on it fail with MB_CLOSED from then on.
 */
int mb_close(int ltn);

struct mb_connection {
    uint16_t node;
    uint16_t task;
    uint32_t state;   /* enum mb_connection_state */
    uint32_t taskque; /* 1: made by a TASKQUE write of the peer */
    /* the first status of an operation that failed and had no ack, 0 none; reading clears it */
    uint32_t error;
    uint32_t unfinished; /* operations taken and not known to be executed */
    uint32_t reserved;
};
enum mb_connection_state { MB_CONNECTION_OPEN = 1, MB_CONNECTION_BROKEN = 2 };
int mb_connection(int ltn, struct mb_connection *info);

/* ---- operations ---- */
enum mb_op {
    MB_OP_TASKQUE = 0x10,
    MB_OP_WRITE = 0x11,
    MB_OP_READ = 0x12,
    MB_OP_FIFO = 0x13,
    MB_OP_SIGNAL = 0x14,
    MB_OP_SWAP = 0x15,
    MB_OP_CAS = 0x16,
    MB_OP_FETCH_ADD = 0x17,
};
enum {
    MB_WIDE = 1,    /* atomics on 8 bytes, else 4 */
    MB_NO_WAIT = 2, /* EAGAIN where the window is full, else sleep */
    /* the ack may wait for a frame that comes from the peer anyway, some milliseconds at most */
    MB_LAZY = 4,
};

struct mb_operation {
    uint16_t op;
    uint16_t flags;
    int32_t ltn;     /* TASKQUE: filled in with the new connection */
    uint64_t remote; /* address in the peer; handler for SIGNAL */
    void *data;      /* WRITE, FIFO, SIGNAL, TASKQUE: what to send; READ: where to put it */
    uint64_t length;
    struct mb_ack *ack; /* NULL: none is asked for */
    /* SIGNAL: arguments; SWAP and FETCH_ADD: [0]; CAS: expected, new; TASKQUE: own key, permission
     */
    uint64_t argument[4];
    uint16_t node; /* TASKQUE: whom to write to */
    uint16_t task;
    /* SIGNAL: how many of `argument` it brings, 4 at most; the handler sees 0 in the others */
    uint32_t arguments;
};

/* What these need to know is in front of `argument[1]`: it fits into registers. */
static inline bool mb_is_short(uint64_t op)
{
    const uint64_t ops = 1u << MB_OP_WRITE | 1u << MB_OP_READ | 1u << MB_OP_FIFO |
                         1u << MB_OP_SWAP | 1u << MB_OP_FETCH_ADD;

    return op < 64 && (ops >> op & 1) != 0;
}

/*
 * All return 0 when the operation is on its way and the data may be reused, -SSS_EAGAIN,
 * -SSS_EINVAL (longer than MB_SEGMENT), -SSS_EFAULT (own memory), or -(MB_... + MB_STATUS_BASE) for
 * a connection that is broken.
 */
enum { MB_STATUS_BASE = 1000 };
int mb_operate(struct mb_operation *operation);

/* WRITE TASKQUE: makes the connection and hands over `data` -> ltn. */
int mb_taskque_write(uint16_t node, uint16_t task, uint64_t own_key, unsigned permission,
                     const void *data, size_t length, struct mb_ack *ack);
int mb_write(int ltn, uint64_t remote, const void *data, size_t length, struct mb_ack *ack);
/* ack needed */
int mb_read(int ltn, uint64_t remote, void *data, size_t length, struct mb_ack *ack);
int mb_fifo_write(int ltn, uint64_t fifo, const void *data, size_t length, struct mb_ack *ack);
/* With all four arguments, or none where `argument` is NULL. */
int mb_signal_send(int ltn, uint64_t handler, const uint64_t argument[4], const void *data,
                   size_t length, struct mb_ack *ack);
int mb_swap(int ltn, uint64_t remote, uint64_t value, unsigned flags, struct mb_ack *ack);
int mb_compare_and_swap(int ltn, uint64_t remote, uint64_t expected, uint64_t value, unsigned flags,
                        struct mb_ack *ack);
int mb_fetch_add(int ltn, uint64_t remote, uint64_t addend, unsigned flags, struct mb_ack *ack);

/* Sleeps until the ack is done -> its status; -SSS_ETIMEDOUT. */
int mb_ack_wait(struct mb_ack *ack, uint64_t timeout_ns);

/* ---- taking from a FIFO: pure user code ---- */

/* The oldest complete record, or NULL; its data follow it in place. Skips SKIP and VOID records. */
struct mb_record *mb_fifo_peek(struct mb_fifo *fifo);
static inline void *mb_record_data(struct mb_record *record)
{
    return record + 1;
}
/* Gives the record that mb_fifo_peek returned back to the ring. */
void mb_fifo_pop(struct mb_fifo *fifo);
/* Sleeps until mb_fifo_peek has one -> 0; -SSS_ETIMEDOUT. */
int mb_fifo_wait(struct mb_fifo *fifo, uint64_t timeout_ns);

/* This task. */
void mb_self(uint16_t *node, uint16_t *task);
