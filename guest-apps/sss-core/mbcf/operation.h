/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state.h"

/*
 * The acknowledgement that a task sees, at `address`: -> false where it is not mapped. Two pieces
 * where it crosses a page: `state` and `status`, then `value`.
 */
bool mbcf_ack_words(struct mbcf *mbcf, const struct mbcf_task *task, uint64_t address,
                    uint8_t *words[2]);
static inline void ack_store_state(uint8_t *words, uint32_t state)
{
    __atomic_store_n((uint32_t *)(void *)words, state, __ATOMIC_RELEASE);
}

/* Of the next operation in this slot. */
static inline uint32_t operation_name(const struct operation *operation, unsigned index)
{
    uint32_t generation = (operation->generation + 1) & (NAME_CONNECTION - 1) >> NAME_SLOT_BITS;

    return generation << NAME_SLOT_BITS | (index + 1);
}

/* By name as in op_id, or NULL. */
struct operation *mbcf_operation_named(struct mbcf *mbcf, uint32_t name);
/* The name that mbcf_operation_new will give. */
static inline uint32_t mbcf_operation_next_name(const struct mbcf *mbcf)
{
    unsigned index =
        mbcf->free_operations.slots[mbcf->free_operations.first & (mbcf->free_operations.size - 1)];

    return operation_name(&mbcf->operations[index], index);
}
/* There must be a free slot. */
struct operation *mbcf_operation_new(struct mbcf *mbcf, const struct mbcf_task *task,
                                     const struct connection *connection,
                                     const struct mb_operation *request, bool answered);
void mbcf_operation_free(struct mbcf *mbcf, struct operation *operation);
/* Ends it, with its acknowledgement, but not the slot of one that is still being sent. */
void mbcf_operation_complete(struct mbcf *mbcf, struct operation *operation, int status,
                             uint64_t value);

/* A frame that may execute it goes out. */
void mbcf_operation_sent(struct mbcf *mbcf, uint32_t name);
/* Its last frame has been acknowledged. */
void mbcf_operation_done(struct mbcf *mbcf, uint32_t name);
/* The same for one with an ack in one page. false: it is not that simple, and nothing has been
 * done. */
bool mbcf_operation_done_quick(struct mbcf *mbcf, uint32_t name);
/* The same for the one in mbcf->expected. */
bool mbcf_operation_done_expected(struct mbcf *mbcf);
/* It has, by an ack that was UNSURE. */
void mbcf_operation_undecided(struct mbcf *mbcf, uint32_t name);
/* The same for the RESULT of an atomic operation, or of a READ of one packet into one page, that
 * has gone well. */
bool mbcf_operation_result_quick(struct mbcf *mbcf, uint16_t node, const uint8_t *header);
void mbcf_operation_result(struct mbcf *mbcf, const struct packet *packet);

/* Everything that is undecided, or waits for a node: has succeeded, failed, or may have failed. */
void mbcf_operations_decide(struct mbcf *mbcf, uint16_t node);
void mbcf_operations_fail(struct mbcf *mbcf, uint16_t node, int status);
void mbcf_operations_doubt(struct mbcf *mbcf, uint16_t node, int status);
void mbcf_operations_forget(struct mbcf *mbcf, struct mbcf_task *task);
