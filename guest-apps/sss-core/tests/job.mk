# SPDX-License-Identifier: Apache-2.0
#
# The JSON reader and the job on the host: what is refused and how it is said, and bytes that nobody meant.

JOB_CHECK = $(OUT)/check/job
JOB_CFLAGS = -std=c11 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover $(WARNINGS) -I. -Iinclude -iquote kernel
JOB_FUZZ ?= 30000

check: check-job
.PHONY: check-job
check-job: $(JOB_CHECK)
	$(JOB_CHECK) $(JOB_FUZZ)

$(JOB_CHECK): tests/job_test.c kernel/job.c kernel/job.h lib/json.c lib/json.h kernel/format.h include/sss/abi.h
	@mkdir -p $(@D)
	$(CC) $(JOB_CFLAGS) -o $@ tests/job_test.c kernel/job.c lib/json.c
