# SPDX-License-Identifier: Apache-2.0
#
# Tests that run on the host. The applications are built again with sanitizers, under OUT/check.

# With the harness, whose model of the records checks what the applications write.
PYTHON ?= ../.venv/bin/python
CHECK = $(OUT)/check
UNIT_TESTS = common_test runner_test exec_test raw_test
# What the harness writes at its seams.
GOLDEN = $(HERE)../harness/tests/seams/golden
CHECK_CFLAGS = $(CFLAGS) $(SANITIZE) -I$(CHECK) -Icommon/tests

# Those of an application that has many; a copy of the sources may be without tests.
include $(wildcard */tests/tests.mk)

$(CHECK):
	mkdir -p $@

$(CHECK)/common_test: common/tests/common_test.c $(COMMON) $(HEADERS) | $(CHECK)
	$(CC) $(CHECK_CFLAGS) -o $@ $< $(COMMON) -ljansson -lpthread

$(CHECK)/runner_test: runner/tests/runner_test.c $(COMMON) $(RUNNER) $(JOB) $(HEADERS) | $(CHECK)
	$(CC) $(CHECK_CFLAGS) -Irunner -DGOLDEN='"$(GOLDEN)/jobs"' -o $@ $< $(RUNNER) $(JOB) $(COMMON) -ljansson -lpthread

$(CHECK)/exec_test: runner/tests/exec_test.c $(COMMON) $(RUNNER) $(JOB) $(HEADERS) | $(CHECK)
	$(CC) $(CHECK_CFLAGS) -Irunner -o $@ $< $(RUNNER) $(JOB) $(COMMON) -ljansson -lpthread

$(CHECK)/raw_test: raw/tests/raw_test.c raw/header.c raw/values.c $(COMMON) $(HEADERS) | $(CHECK)
	$(CC) $(CHECK_CFLAGS) -Iraw -o $@ $< raw/header.c raw/values.c $(COMMON) -ljansson -lpthread

# The same applications, not stripped and with sanitizers.
$(CHECK)/apps:
	$(MAKE) OUT=$(CHECK)/apps SANITIZED=1 all

.PHONY: $(CHECK)/apps
check: $(UNIT_TESTS:%=$(CHECK)/%) $(CHECK)/apps
	for test in $(UNIT_TESTS); do $(CHECK)/$$test || exit 1; done
	$(PYTHON) tests/loopback.py $(CHECK)/apps
	$(PYTHON) tests/options.py $(CHECK)/apps $(GOLDEN)/jobs
	$(PYTHON) tests/spare.py $(CHECK)/apps
	$(PYTHON) -m pytest -q python/tests
	tests/registration.sh . $(abspath $(CHECK))/registration
