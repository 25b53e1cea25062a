/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The job as this kernel takes it. init and the tasks read the checked text again. Pure: the tests
 * on the host compile the same file.
 */
#include "job/job.h"

/* `task_exists` knows the names of the image's tasks. False: `error` says in one line what is
 * wrong. */
bool job_parse(const char *text, size_t length, bool (*task_exists)(const char *name),
               struct job *job, char error[JOB_ERROR]);
