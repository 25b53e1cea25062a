/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Virtual memory-mapped communication: what tasks ask for, what the adapter of the backplane tells,
 * and ends. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct task;

void vmmc_init(void);    /* looks for the adapter; where there is none, this is all that is done */
void vmmc_begin(void);   /* the job has come */
void vmmc_restart(void); /* forgets exports, imports and bindings, before the tasks vanish */
/* A control frame: false if it is not the adapter's. */
bool vmmc_received(const uint8_t *frame, size_t length);
/* System calls SSS_VMMC_... */
long vmmc_call(unsigned call, const uint64_t arguments[6]);
