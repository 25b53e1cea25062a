/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Of options that every measuring client takes: limits, and the default of total_timeout_ms. */
enum {
    SIZES_MOST = 64,
    CALLS_LIMIT = 1000000,
    NUMBER_LIMIT = 0x7fffffff,
    TIMEOUT_LIMIT_MS = 3600 * 1000,
    TOTAL_DEFAULT_MS = 25000,
};
#define NS_PER_MS 1000000ull
