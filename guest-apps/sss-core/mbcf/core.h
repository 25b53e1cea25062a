/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The MBCF protocol of one node, pure: time and frames come as arguments, and everything it does to
 * the world goes through the functions below. The kernel, the Linux endpoint and the tests on
 * the host compile the same files. No libc but memcpy, memset, memcmp; no allocation: the state is
 * one struct whose size mbcf_size tells.
 *
 * Receiving completes in mbcf_receive (SSS-CORE: in the receive interrupt), user memory included.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sss/frame.h"
#include "sss/mbcf.h"
#include "wire.h"

struct mbcf;

/* ---- surroundings ----
 * What the protocol asks of the world around it. A program that has a node defines these, and where
 * all is compiled as one (the kernel) they become part of the protocol's own functions; through a
 * const table of pointers GCC calls them directly, but does not inline them, which costs 120
 * instructions of a WRITE and its ack. `context` is what mbcf_init was given.
 */
/* A buffer with users == 1 (the core's), or NULL. */
struct sss_frame *surroundings_frame_get(void *context);
/* The core's reference ends. */
void surroundings_frame_put(void *context, struct sss_frame *frame);
/* Hands it to the adapter, which holds a reference of its own until it has been sent. May
 * refuse (adapter full): false; the core treats it as lost. */
bool surroundings_transmit(void *context, struct sss_frame *frame);
/*
 * The byte at `address` of a task's memory, good up to the end of its 4096-byte page, or NULL
 * with *why = MB_FAULT or MB_READONLY. `space` is what mbcf_task_open was given.
 */
void *surroundings_page(void *context, void *space, uint64_t address, bool write, int *why);
/* Memory of this task was changed: threads that wait for its words look again. */
void surroundings_changed(void *context, void *space);
/* A signal record was put into the task's signal queue: start the handler when it may run. */
void surroundings_signalled(void *context, void *space, uint64_t handler);
/* Places in a send window came free: operations that got -SSS_EAGAIN may be tried again. */
void surroundings_window_open(void *context);
/* An operation of the task failed: its ack, where it has one, says so already. Or a connection
 * of the task broke. */
void surroundings_failed(void *context, void *space);

struct mbcf_config {
    uint16_t node;  /* own id, 1..SSS_NODES */
    uint32_t epoch; /* of this incarnation, not 0; another one after each start */
    uint8_t mac[6];
    uint32_t rto_least_ns, rto_most_ns; /* 0: the defaults */
    uint32_t ack_delay_ns;              /* 0: the default */
    uint32_t ack_every;                 /* frames that one ACK may cover; 0: the default */
    /* numbering begins behind this; 0, but for tests of its wrap */
    uint32_t first_seq;
};

size_t mbcf_size(void);
void mbcf_init(struct mbcf *mbcf, const struct mbcf_config *config, void *context);
uint16_t mbcf_node(const struct mbcf *mbcf);
/* Another node of the cluster. Frames whose source node and source MAC do not belong together are
 * counted and dropped. */
int mbcf_add_node(struct mbcf *mbcf, uint16_t node, const uint8_t mac[6]);

/* ---- time ---- */
void mbcf_receive(struct mbcf *mbcf, uint64_t now_ns, const uint8_t *frame, size_t length);
/* When mbcf_timeout is to be called next; UINT64_MAX: not. */
uint64_t mbcf_next_timeout(const struct mbcf *mbcf);
void mbcf_timeout(struct mbcf *mbcf, uint64_t now_ns);

/* ---- tasks; all return 0 or more, or a negative enum sss_error ---- */
/* A task begins; `space` is handed back in the calls above. -> task id (16 bits, with a
 * generation), or -SSS_EAGAIN. */
int mbcf_task_open(struct mbcf *mbcf, void *space);
/* The same with a given id (well-known tasks); -SSS_EEXIST. */
int mbcf_task_open_as(struct mbcf *mbcf, uint16_t task, void *space);
/* A task ends: its connections close, its outstanding results are dropped, peers' operations get
 * NOTASK. */
void mbcf_task_close(struct mbcf *mbcf, uint16_t task, uint64_t now_ns);
int mbcf_key(struct mbcf *mbcf, uint16_t task, unsigned slot, uint64_t key, unsigned permission);
int mbcf_taskque(struct mbcf *mbcf, uint16_t task, uint64_t fifo, uint64_t bytes);
int mbcf_fifo(struct mbcf *mbcf, uint16_t task, uint64_t fifo, uint64_t bytes);
int mbcf_fifo_remove(struct mbcf *mbcf, uint16_t task, uint64_t fifo);
int mbcf_signal(struct mbcf *mbcf, uint16_t task, const uint64_t *handlers, unsigned count,
                uint64_t queue, uint64_t bytes);

/* ---- connections and operations of a task ---- */
int mbcf_connect(struct mbcf *mbcf, uint16_t task, uint16_t node, uint16_t peer, uint64_t key);
int mbcf_close(struct mbcf *mbcf, uint16_t task, int ltn, uint64_t now_ns);
int mbcf_connection(struct mbcf *mbcf, uint16_t task, int ltn, struct mb_connection *info);

/*
 * Begins or goes on with an operation: copies as much of the data as the window takes. `progress`
 * is 0 at first and kept by the caller between calls. -> 0: all of it is on its way; -SSS_EAGAIN:
 * call again after window_open; other errors: over, nothing more will be sent (what was sent of a
 * segment is made void). operation->data and ->ack are addresses in `task`'s space.
 */
int mbcf_operate(struct mbcf *mbcf, uint16_t task, struct mb_operation *operation,
                 uint64_t *progress, uint64_t now_ns);

/* ---- what the monitor and the tests look at ---- */
struct mbcf_counters {
    uint64_t frames_sent, frames_received, bytes_sent, bytes_received;
    uint64_t operations_sent, operations_executed, results_sent;
    uint64_t retransmitted, timeouts, duplicates, gaps, acks_sent, resets_sent;
    /* refused by status, on this node */
    uint64_t malformed, foreign, stale_epoch, refused[MB_LAST_REMOTE + 1];
};
const struct mbcf_counters *mbcf_counters(const struct mbcf *mbcf);
enum mbcf_channel_state { MBCF_IDLE, MBCF_OPENING, MBCF_OPEN, MBCF_DEAD };
struct mbcf_channel_info {
    uint16_t node;
    uint16_t state;
    uint32_t epoch, peer_epoch, next_seq, acked, received, in_flight;
    uint64_t rto_ns, srtt_ns;
};
/* -> false: there is none of that index. Connections and FIFOs likewise. */
bool mbcf_channel_at(const struct mbcf *mbcf, unsigned index, struct mbcf_channel_info *info);
struct mbcf_connection_at {
    uint16_t task;
    int ltn;
    struct mb_connection connection;
};
bool mbcf_connection_at(const struct mbcf *mbcf, unsigned index, struct mbcf_connection_at *info);
struct mbcf_fifo_at {
    uint16_t task;
    uint16_t kind; /* 0 FIFO, 1 TASKQUE, 2 signal queue */
    uint64_t address, size, used;
};
bool mbcf_fifo_at(const struct mbcf *mbcf, unsigned index, struct mbcf_fifo_at *info);
