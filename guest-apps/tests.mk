# SPDX-License-Identifier: Apache-2.0
#
# Tests that run on the host. The applications are built again with sanitizers, under OUT/check.

# With the harness, whose model of the records checks what the applications write.
PYTHON ?= ../.venv/bin/python
CHECK = $(OUT)/check
UNIT_TESTS = common_test runner_test exec_test raw_test echo_test
# What the harness writes at its seams.
GOLDEN = $(HERE)../harness/tests/seams/golden
CHECK_CFLAGS = $(CFLAGS) $(SANITIZE) -I$(CHECK) -Icommon/tests

# Those of an application that has many; a copy of the sources may be without tests.
include $(wildcard */tests/tests.mk)

$(CHECK):
	mkdir -p $@

# The same applications, not stripped and with sanitizers.
APPS = $(CHECK)/apps
$(APPS):
	$(MAKE) OUT=$@ SANITIZED=1 $(patsubst %,$@/%,$(APPLETS) $(MBCF_APPS) $(COMMAND_APPS))

# Unit tests are linked with the applications' objects: nothing is compiled twice.
UNITS = $(UNIT_TESTS:%=$(CHECK)/%)
$(CHECK)/common_test: common/tests/common_test.c
$(CHECK)/runner_test: runner/tests/runner_test.c
$(CHECK)/exec_test: runner/tests/exec_test.c
$(CHECK)/raw_test: raw/tests/raw_test.c
$(CHECK)/echo_test: echo/tests/echo_test.c
$(CHECK)/runner_test $(CHECK)/exec_test: TESTED = $(RUNNER) $(JOB)
$(CHECK)/raw_test: TESTED = raw/header.c raw/values.c
$(CHECK)/echo_test: TESTED = echo/duplicates.c
$(patsubst %,$(CHECK)/%,common_test runner_test exec_test raw_test echo_test): $(APPS) | $(CHECK)
	$(CC) $(CHECK_CFLAGS) -I$(APPS) -Irunner -Iraw -Iecho -DGOLDEN='"$(GOLDEN)/jobs"' -o $@ $(filter %.c,$^) \
		$(patsubst %.c,$(APPS)/objects/%.o,$(TESTED) $(COMMON)) -ljansson -lpthread

CHECKS = units loopback options spare python registration
.PHONY: $(APPS) $(CHECKS:%=check-%)
check: $(CHECKS:%=check-%)

check-units: $(UNITS)
	for test in $^; do $$test || exit 1; done

check-loopback: $(APPS)
	$(PYTHON) tests/loopback.py $<

check-options: $(APPS)
	$(PYTHON) tests/options.py $< $(GOLDEN)/jobs

check-spare: $(APPS)
	$(PYTHON) tests/spare.py $<

check-python:
	$(PYTHON) -m pytest -q python/tests

check-registration: $(APPS)
	MAKEFLAGS= tests/registration.sh . $(abspath $(CHECK))/registration $(abspath $<)
