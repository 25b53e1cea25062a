# SPDX-License-Identifier: Apache-2.0
#
# The node in a Linux process with another process as its peer, under sanitizers.

LINUX_CHECK = $(OUT)/check/linux

check: check-linux check-linux-circles
.PHONY: check-linux check-linux-circles
check-linux: $(LINUX_CHECK)/threads
	timeout 300 $< > $(LINUX_CHECK)/log || { cat $(LINUX_CHECK)/log; exit 1; }

check-linux-circles: $(call host_objects,$(wildcard linux/*.c))
	python3 tests/circles.py $^

$(LINUX_CHECK)/threads: $(call host_objects,tests/linux_threads_test.c $(filter-out linux/raw.c,$(NODE)) ../common/mix.c)
	@mkdir -p $(@D)
	$(HOST_LINK)
