/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* One 64-bit number out of a seed, a name and an index; the same wherever it is computed. */
uint64_t mix_seed(uint64_t seed, const char *name, uint64_t index);
