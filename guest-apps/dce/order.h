/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which of a table's places is due next: a binary heap (Williams 1964) of the instants at which
 * they are.
 */
struct dce_order {
    uint64_t *due_ns; /* of each place */
    uint16_t *heap;   /* places; none is due before the one at half its index */
    uint16_t *at;     /* where each place is in the heap */
    uint16_t *found;  /* by dce_order_due */
    unsigned count;   /* places that have an instant */
};

/* Bytes of memory for so many places. */
size_t dce_order_memory(unsigned places);
/* `memory`: aligned as malloc does it. */
void dce_order_init(struct dce_order *order, unsigned places, uint8_t *memory);
/* `place` is due at `due_ns`; it has been given before, or is the next one. */
void dce_order_set(struct dce_order *order, unsigned place, uint64_t due_ns);
/* When the first of all is due; DCE_NEVER: none is. */
uint64_t dce_order_first(const struct dce_order *order);
/* All that are due at `now`, in the order of the table, as `found`; how many. */
unsigned dce_order_due(struct dce_order *order, uint64_t now);
