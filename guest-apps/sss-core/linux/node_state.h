/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of this folder share, those first that use none of the others; node.c uses them,
 * and system.c uses node.c. One lock guards all nodes of the process; `moved` is
 * signalled when something may have changed for a thread that waits.
 */
#include <pthread.h>

#include "core.h"
#include "node.h"

enum { NODES_MOST = 16, REGIONS = 32, PAGE_BYTES = 4096 };

/* Memory of an EMPTY task: `bytes` at `address` are the process's memory at `memory`. */
struct region {
    uint64_t address, bytes;
    uint8_t *memory;
    unsigned protection;
};

struct node_task {
    struct node_task *next;
    struct node *node;
    uint16_t id;
    uint16_t creator; /* of an EMPTY task */
    bool empty;
    struct sss_info info;
    struct region regions[REGIONS]; /* EMPTY */
    unsigned region_count;
    /* signals */
    pthread_t signal_thread;
    void (*deliver)(void);
    bool signalled, delivering;
};

struct node {
    struct mbcf *core;
    size_t core_bytes;
    int socket; /* -1: on the wire of the group */
    uint8_t mac[6];
    struct node_task *tasks;
    struct sss_frame frames[SSS_FRAMES];
    struct sss_frame *free;
    uint8_t *buffers;
};

/* ---- memory.c ---- */
void *node_page(void *context, void *space, uint64_t address, bool write, int *why);
/* Memory of nodes, which no peer may reach. */
void *node_memory_alloc(size_t bytes);
void node_memory_free(void *memory, size_t bytes);
/* SSS_MEMORY_MAP to SSS_CSM_SHARE. */
long node_memory_call(long number, const uint64_t arguments[6]);
long node_memory_map_share(struct node_task *task, uint64_t id, uint64_t address,
                           uint64_t protection);

/* ---- records.c ---- */

/* Whole lines in one write, so that those of several processes never mix. */
int node_write(int fd, const char *text, size_t length);
int node_record(const char *text, size_t length);

/* ---- raw.c ---- */
int node_socket_open(const char *interface, uint8_t mac[6]);
bool node_socket_send(int socket, const struct sss_frame *frame);
/* -> length, 0 where nothing is there. */
size_t node_socket_receive(int socket, uint8_t *frame, size_t size);

/* ---- starts.c ---- */
#define NODE_STARTS "/run/sundial-mbcf-starts" /* a machine boots once in a run, and empties it */
/* Counts one more start; *starts: how many there have been. false: errno. */
bool node_count_start(const char *path, uint32_t *starts);

/* ---- wire.c: the wire of a group ---- */
void node_wire_send(const struct sss_frame *frame);
/* The oldest frame on it; false: none. */
bool node_wire_receive(uint8_t *frame, size_t *length);
void node_wire_faults(const struct node_faults *faults);

/* ---- node.c ---- */
void node_lock(void);
void node_unlock(void);
struct node_task *node_current(void);
struct node_task *node_task_find(struct node *node, uint16_t id);
/* With the lock: everything that can happen now happens. */
void node_drive(void);
/* With the lock: sleeps until something has happened, at most until `deadline_ns`. */
void node_sleep(uint64_t deadline_ns);
/* With the lock, which it releases meanwhile: handlers of the calling thread. */
void node_deliver_signals(void);
void node_become(struct node_task *task);
