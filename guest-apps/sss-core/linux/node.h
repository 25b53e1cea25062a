/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A node of MBCF in a Linux process: the protocol core and the user library of SSS-CORE, with the
 * process in the place of the kernel. What tasks call is the same (include/sss/mbcf.h, system.h);
 * this header is what comes before it.
 *
 * A node has tasks; each thread acts for one. A task's memory is the memory of the process as it is
 * mapped (without the nodes' own state), or, of an EMPTY task, what sss_csm_map has put there.
 * Frames are received while a thread waits (sss_wait and everything over it), calls an operation,
 * or calls node_poll; handlers of signals run then, too, in the thread that has called mb_signal.
 */
#include <stdbool.h>
#include <stdint.h>

#include "sss/mbcf.h"
#include "sss/system.h"

struct node;

struct node_peer {
    uint16_t node;
    uint8_t mac[6];
};

struct node_config {
    uint16_t node; /* own id */
    /* not 0; node_open_raw adds how many have been opened on the machine, for each is an
     * incarnation */
    uint32_t epoch;
    const char *machine; /* name in SSS_INFO; may be NULL */
    const struct node_peer *peers;
    unsigned peer_count;
    uint32_t rto_least_ns; /* 0: the default. Where hosts are scheduled coarsely, more */
};

/* A node on a network interface; -> NULL and errno. Needs CAP_NET_RAW. */
struct node *node_open_raw(const char *interface, const struct node_config *config);

/* `count` nodes (ids 1..) in this process that see each other over a wire which loses nothing,
 * unless faults are asked for. */
int node_open_group(struct node **nodes, unsigned count);

/* What that wire does from now on to frames, of 1000; drawn from `seed`. NULL: nothing any more. */
struct node_faults {
    uint64_t seed;
    unsigned lost, duplicated, reordered;
};
void node_group_faults(const struct node_faults *faults);

/* Ends it and all of its tasks, after what is under way has been acknowledged or for at most 100
 * ms. */
void node_close(struct node *node);

/*
 * Opens a task on the node and makes the calling thread act for it: id 0 lets the node
 * choose, 1..15 are the well-known ones (1: the binder). -> task id or a negative enum sss_error.
 * Threads made by sss_thread act for their creator's task.
 */
int node_task(struct node *node, uint16_t id);

/* Receives what is there, lets timers expire, runs handlers of signals. */
void node_poll(void);

/* A task of a node by its id, for tests; and the protocol's own counters. */
struct mbcf *node_core(struct node *node);
