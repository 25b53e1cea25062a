/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What vmmc-client and vmmc-server have in common: transfers over a pair (sss/vmmc_pair.h), which
 * one side stores or sends and the other finds in its memory.
 *
 * The data pages are slots of whole pages. The n-th transfer of a batch is in slot n, modulo their
 * number, and ends with it: bytes of the payload pattern of call n, and a flag as the last word, by
 * which it is known to be there, since it was the last to be written. So what is combined leaves
 * with the end of its page, and not by the timer.
 *
 * Before a batch the client stores what it is into VMMC_TARGET_BATCH of the control page; the
 * server stores the same word there when it is ready.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sss/vmmc_pair.h"

enum {
    VMMC_TARGET_PAGES = 64, /* data pages of each side */
    VMMC_TARGET_MOST = 65536,
    VMMC_TARGET_WORD = 8,
    /* Words of the control page. */
    VMMC_TARGET_BATCH = VMMC_PAIR_OWN / VMMC_TARGET_WORD,
    VMMC_TARGET_TAKEN, /* server, in a stream: transfers of this batch that it has checked */
};
#define VMMC_TARGET_HASH UINT64_C(0x766d6d632e746731) /* of the above */

enum vmmc_operation { VMMC_AU, VMMC_AU_COMBINED, VMMC_DU, VMMC_OPERATIONS };
extern const char *const vmmc_operation_names[]; /* as transports are called; ended by NULL */

/* A batch as one word: number 16, stream 4, transfers 24, size 20 bits. */
struct vmmc_batch {
    uint32_t number; /* of the pair, from 1 */
    bool stream;
    uint32_t transfers;
    uint32_t size;
};
uint64_t vmmc_batch_word(const struct vmmc_batch *batch);
struct vmmc_batch vmmc_batch_of(uint64_t word);

struct vmmc_target {
    struct vmmc_pair pair;
    enum vmmc_operation operation;
    struct vmmc_batch batch;
    uint8_t *message; /* what is sent, at the same places as there */
    uint32_t done;    /* transfers of the batches before */
    uint64_t polls;   /* turns of waiting loops */
    int source;       /* of deliberate updates */
};

/* The setup of a pair for this operation, without a timeout. */
struct vmmc_pair_setup vmmc_target_setup(enum vmmc_operation operation);
/* Memory for messages, when the pair is open -> 0 or an error. */
int vmmc_target_prepare(struct vmmc_target *target);
void vmmc_target_close(struct vmmc_target *target);

/* How many transfers there is room for. */
uint32_t vmmc_target_slots(uint32_t size);
/* A stream's server stores VMMC_TARGET_TAKEN after each of so many, and after the last. */
uint32_t vmmc_target_acknowledged(uint32_t size);

/* Makes the n-th transfer of the batch ready; then sends it. */
void vmmc_target_fill(struct vmmc_target *target, uint32_t number);
void vmmc_target_send(struct vmmc_target *target, uint32_t number);
/* Waits until the peer's n-th transfer, or a word of its control page (of VMMC_TARGET_TAKEN:
 * `least` or more), is there -> false where the peer is gone or it is too late. */
bool vmmc_target_await(struct vmmc_target *target, uint32_t number, uint64_t deadline_ns);
bool vmmc_target_await_word(struct vmmc_target *target, unsigned word, uint64_t least,
                            uint64_t deadline_ns);
/* Whether each byte of it is what it must be. */
bool vmmc_target_is_right(const struct vmmc_target *target, uint32_t number);
/* The batch is over. */
void vmmc_target_end(struct vmmc_target *target);

static inline volatile uint64_t *vmmc_target_word(volatile uint8_t *buffer, unsigned word)
{
    return (volatile uint64_t *)buffer + word;
}
