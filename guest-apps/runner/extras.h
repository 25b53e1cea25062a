/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "job/job.h"

/*
 * The part of the image that few jobs need (iperf3, tcpdump, tc, the bridge, and the libraries they
 * bring along) is compressed in the root file system, so that a machine of 96 MiB has room to
 * boot and a cold boot does not pay for it. Python, where the image has it, is another such
 * part, with the programs in C++.
 */

/* Whether the job needs that part, for itself or for one of the EXTRAS that the .mk files name. */
bool extras_are_needed(const struct job *job);

/* Unpacks those parts that the job needs, each once; 0 also where that has been done before. */
int extras_unpack(const struct job *job);

/*
 * Whether the kernel looks for modules. For a job that needs no extras it must not, since all that
 * could be loaded are among them. Else it starts modprobe in vain for what it lacks (rpcbind asks
 * for IPv6): 730,000 instructions and 2,600 translated blocks before the first call.
 */
void extras_let_load(bool load);
