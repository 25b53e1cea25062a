/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The calls of sss/vmmc.h inside one Linux process, for tests: nodes are those of a group
 * (linux/node.h), bound pages are second mappings of the export's, a deliberate update is done
 * while its store is. A bound page therefore begins as what the export holds. What may differ from
 * a backplane: everything arrives at once.
 *
 * Links with linux/ and with -Wl,--wrap=sss_call, for sss_wait has to look at words that stores of
 * other threads change.
 */
#include "linux/node.h"
#include "sss/vmmc.h"

/* Nodes 1 to `count`. */
void vmmc_rig_start(unsigned count);
/* The calling thread is a new task of this node from now on -> its id. */
int vmmc_rig_task(uint16_t node);
/* The same with one of the well-known ids. */
int vmmc_rig_task_of(uint16_t node, uint16_t id);
/* As when the calling thread's task ends: its exports and imports do. */
void vmmc_rig_end(void);
/* As when the calling thread's node crashes, and starts again: no node is notified, and stores to
 * what it has exported are refused. */
void vmmc_rig_crash(void);
/* The next so many deliberate updates find no place, as where other tasks have them all. */
void vmmc_rig_busy(unsigned transfers);
/* From now on the node's tasks export no more than they do; or they may again. */
void vmmc_rig_full(uint16_t node, bool full);
/* How many exports and imports there are, of all nodes. */
unsigned vmmc_rig_exports(void);
unsigned vmmc_rig_imports(void);
