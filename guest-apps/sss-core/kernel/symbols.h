/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* The function that `address` lies in, and how far; NULL where it is before the first. */
const char *symbol_at(uint64_t address, uint64_t *offset);
