/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What mbcf-server and mbcf-client tell each other. The client asks over the server's TASKQUE
 * (found by the binder as the program below); the server WRITEs where its memory is, and afterwards
 * what its own counts are.
 */
#include <stdint.h>

enum {
    MBCF_TARGET_PROGRAM = 0x20001999, /* from the range that RFC 5531 section 13 leaves to users */
    MBCF_TARGET_VERSION = 1,
    MBCF_TARGET_MEMORY = 131072, /* bytes for WRITE and READ */
    MBCF_TARGET_RING = 524288,   /* of the FIFO, and of the signal queue */
    MBCF_TARGET_MAGIC = 0x54424d53,
    /* of both tasks; the first ones are the RPC library's, which asks the binder */
    MBCF_TARGET_KEY_SLOT = 3,
};

enum mbcf_target_question { MBCF_TARGET_OPEN = 1, MBCF_TARGET_COUNTS = 2 };

struct mbcf_target_query {
    uint32_t magic;
    uint32_t question;
    uint64_t answer; /* the asker's memory */
};

struct mbcf_target_place {
    uint64_t key;
    uint64_t memory;
    uint64_t fifo;
    uint64_t handler;
    uint64_t word; /* 8-byte aligned, for the atomic operations; 0 at each OPEN */
    volatile uint32_t answered;
    uint32_t reserved;
};

/* Of one client since its OPEN. Records are checked against the payload pattern in the order in
 * which they came. */
struct mbcf_target_counts {
    uint64_t fifo_records, fifo_bytes, fifo_wrong;
    uint64_t signals, signal_bytes, signal_wrong;
    uint64_t word;
    volatile uint32_t answered;
    uint32_t reserved;
};
