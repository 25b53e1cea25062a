// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

// How often threads of this process gave the CPU up or had it taken, so far.
inline long context_switches()
{
    struct rusage used = {};

    getrusage(RUSAGE_SELF, &used);
    return used.ru_nvcsw + used.ru_nivcsw;
}
