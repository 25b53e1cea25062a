/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* This machine as a node of MBCF, over eth0. */
#include <stddef.h>
#include <stdint.h>

struct mbcf;
struct task;

enum { NODE_ADAPTER = 0 };

void node_init(uint16_t node, uint32_t epoch, const uint8_t mac[6]);
void node_restart(void); /* forgets channels, connections and tasks; a new epoch */
struct mbcf *node_mbcf(void);
void node_received(const uint8_t *frame, size_t length);
void node_idle(void); /* before the CPU halts */

int node_task_open(struct task *task); /* -> the task's id, or a negative error */
void node_task_ended(struct task *task);

/* System calls SSS_MB_... */
long node_call(unsigned call, const uint64_t arguments[6]);
long node_operate_short(const uint64_t arguments[6]); /* SSS_MB_OPERATE_SHORT */
long node_operate(uint64_t operation); /* SSS_MB_OPERATE, separately: most calls are this one */
