/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Machines restored from one snapshot share all the kernel's entropy; this makes each one's random
 * numbers (TCP sequence numbers, ports, transaction numbers) its own, and the same in each run.
 */
int entropy_mix(uint64_t seed, const char *machine);
