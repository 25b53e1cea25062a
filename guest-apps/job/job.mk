# SPDX-License-Identifier: Apache-2.0
#
# No application: the parser of the job, which the runner and the kernel of SSS-CORE share.

JOB = job/job.c job/addresses.c job/fields.c sss-core/lib/json.c
SOURCES += $(JOB)
