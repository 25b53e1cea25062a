# SPDX-License-Identifier: Apache-2.0
#
# The JSON reader and the job on the host: the golden jobs, what is refused and how, and damaged bytes.

JOB_CHECK = $(OUT)/check/job
JOB_GOLDEN = $(HERE)../../harness/tests/seams/golden/jobs
JOB_CFLAGS = -std=c11 -D_GNU_SOURCE $(HOST_SANITIZE) $(WARNINGS) -I. -Iinclude \
	-iquote kernel -iquote .. -DGOLDEN='"$(JOB_GOLDEN)"'
JOB_SOURCES = tests/job_test.c kernel/job_image.c $(wildcard ../job/*.c) lib/json.c
JOB_FUZZ ?= $(shell expr $(FUZZ) \* 30000)

check: check-job
.PHONY: check-job
check-job: $(JOB_CHECK)
	$(JOB_CHECK) $(JOB_FUZZ)

$(JOB_CHECK): $(JOB_SOURCES) kernel/job_image.h $(wildcard ../job/*.h ../job/tests/*.h ../common/tests/*.h) lib/json.h include/sss/abi.h
	@mkdir -p $(@D)
	$(CC) $(JOB_CFLAGS) -o $@ $(JOB_SOURCES)
