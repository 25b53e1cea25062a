/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The job's text, from fw_cfg. */
#include "job_image.h"

#define JOB_FILE "opt/sundial/job"

/* Whether this machine has a job at all. */
bool jobfile_find(void);
/* Waits until the job begins, having said ready. -> NULL, or what is wrong; `error` is room for it.
 */
const char *jobfile_receive(struct job *job, char error[JOB_ERROR]);
/* What was received, without padding; NULL if nothing was. */
const char *job_text(size_t *length);
