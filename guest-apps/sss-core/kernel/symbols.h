/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* The function that contains `address`, and the offset in it; NULL before the first. */
const char *symbol_at(uint64_t address, uint64_t *offset);
