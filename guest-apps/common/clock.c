/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

static enum clock_source chosen = CLOCK_SOURCE_MONOTONIC;

int clock_select(const char *name)
{
    if (strcmp(name, "tsc") == 0) {
        chosen = CLOCK_SOURCE_TSC;
        return 0;
    }
    if (strcmp(name, "monotonic") == 0) {
        chosen = CLOCK_SOURCE_MONOTONIC;
        return 0;
    }
    return -1;
}

int clock_select_from_environment(void)
{
    const char *name = getenv("SUNDIAL_CLOCK");

    return name == NULL ? 0 : clock_select(name);
}

const char *clock_name(void)
{
    return chosen == CLOCK_SOURCE_TSC ? "tsc" : "monotonic";
}

uint64_t clock_now_ns(void)
{
    struct timespec now;

    if (chosen == CLOCK_SOURCE_TSC)
        return __rdtsc();
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
