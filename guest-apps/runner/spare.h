/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "job/job.h"

enum { SPARE_BYTES = JOB_BYTES + 4096 };

/* The order to a spare: this, then application, options and environment, each with its NUL. */
struct spare_order {
    uint32_t bytes;
    uint32_t speaks; /* its standard output is the pipe that it was given */
};
