/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "job/job.h"

enum { SERVICES_LIMIT = 32 };

/* What this image takes in a job. */
extern const struct job_image linux_image;
