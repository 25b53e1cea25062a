/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Nodes with fake tasks on a fake wire under a fake clock. Everything is drawn from one seed, so a
 * test that fails once fails always. Pages are allocated one by one: the sanitizer sees each step
 * outside.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

enum {
    RIG_NODES = 4,
    RIG_SPACES = 8,   /* of a node */
    RIG_PAGES = 256,  /* of a space */
    RIG_FRAMES = 256, /* of a node */
    RIG_EVENTS = 4096,
    RIG_SIGNALS = 64,
};
#define RIG_BASE     0x100000ull
#define RIG_DELAY_NS 50000ull

struct rig_space {
    uint8_t *pages[RIG_PAGES];
    uint8_t protection[RIG_PAGES]; /* SSS_READ | SSS_WRITE */
    unsigned changed, failed, signals;
    uint64_t signalled[RIG_SIGNALS];
};

struct rig_node {
    struct rig *rig;
    struct mbcf *mbcf;
    uint16_t id;
    uint8_t mac[6];
    struct rig_space spaces[RIG_SPACES];
    struct sss_frame frames[RIG_FRAMES];
    struct sss_frame *free;
    unsigned frames_out;
    unsigned frame_limit; /* how many may be out at once */
    bool deaf, mute;      /* receives nothing, sends nothing */
    bool refuses;         /* the adapter takes nothing */
    unsigned window_opens;
};

struct rig_event {
    uint64_t at_ns, order;
    uint16_t to;
    uint16_t length;
    uint8_t *bytes;
};

struct rig {
    uint64_t now_ns, order, random;
    unsigned loss, duplication, reordering; /* of 1000 frames */
    struct mbcf_config config;              /* of nodes that start */
    struct rig_node nodes[RIG_NODES + 1];
    unsigned count;
    struct rig_event events[RIG_EVENTS];
    unsigned pending;
    /* Looks at each frame that a node hands over; false: it is lost. */
    bool (*tap)(struct rig *rig, uint16_t node, const uint8_t *frame, size_t length);
    void *tap_context;
    FILE *capture;
    uint64_t sent;
};

uint64_t rig_random(struct rig *rig);
bool rig_chance(struct rig *rig, unsigned of_1000);

/* `count` nodes that know each other; config (may be NULL) gives what is not the rig's own. */
struct rig *rig_new(unsigned count, uint64_t seed, const struct mbcf_config *config);
/* Frees it; false (and a line): a node has not given back all its buffers. */
bool rig_free(struct rig *rig);
/* The node forgets everything and comes back with another epoch. */
void rig_restart(struct rig *rig, unsigned node, uint32_t epoch);
/* A task with `pages` pages from RIG_BASE on, readable and writable -> its id. */
uint16_t rig_task(struct rig *rig, unsigned node, unsigned space, unsigned pages);
void rig_map(struct rig *rig, unsigned node, unsigned space, unsigned page, unsigned protection);
/* The byte at `address` of a space; NULL where there is none. */
void *rig_at(struct rig *rig, unsigned node, unsigned space, uint64_t address);
void rig_write(struct rig *rig, unsigned node, unsigned space, uint64_t address, const void *from,
               size_t length);
void rig_read(struct rig *rig, unsigned node, unsigned space, uint64_t address, void *to,
              size_t length);
uint32_t rig_word(struct rig *rig, unsigned node, unsigned space, uint64_t address);

/* The next event, a frame or a timeout, not later than `until_ns`; false: none. */
bool rig_step(struct rig *rig, uint64_t until_ns);
void rig_run(struct rig *rig, uint64_t for_ns);
/* A frame out of nowhere, to `node`, now. */
void rig_inject(struct rig *rig, unsigned node, const uint8_t *frame, size_t length);

/* A capture in classic pcap form, Ethernet, nanoseconds. */
FILE *rig_capture(const char *path);

/* ---- operations ---- */
/* mbcf_operate until it is taken; its result, or -SSS_EAGAIN when the world stands still first. */
int rig_operate(struct rig *rig, unsigned node, uint16_t task, struct mb_operation *operation);
/* Runs until the ack at `address` is done (at most `for_ns`) -> status, -1 if not. */
int rig_ack(struct rig *rig, unsigned node, unsigned space, uint64_t address, uint64_t for_ns);
uint64_t rig_ack_value(struct rig *rig, unsigned node, unsigned space, uint64_t address);
/* Takes the oldest record out of the FIFO at `fifo` -> its length, or -1. */
int rig_take(struct rig *rig, unsigned node, unsigned space, uint64_t fifo,
             struct mb_record *record, void *data, size_t size);
