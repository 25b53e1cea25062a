# SPDX-License-Identifier: Apache-2.0
#
# The node in a Linux process with another process as its peer, under sanitizers.

LINUX_CHECK = $(OUT)/check/linux

check: check-linux check-linux-circles
.PHONY: check-linux check-linux-circles
check-linux: $(LINUX_CHECK)/threads
	timeout 300 $< > $(LINUX_CHECK)/log || { cat $(LINUX_CHECK)/log; exit 1; }

check-linux-circles: $(patsubst linux/%.c,$(LINUX_CHECK)/%.o,$(wildcard linux/*.c))
	python3 tests/circles.py $^

$(LINUX_CHECK)/threads: tests/linux_threads_test.c $(filter-out linux/raw.c,$(wildcard linux/*.c)) lib/mbcf_calls.c \
		../common/clock.c ../common/mix.c $(wildcard mbcf/*.c mbcf/*.h include/sss/*.h linux/*.h)
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all $(WARNINGS) -DSSS_LINUX \
		-I. -Iinclude -Imbcf -Ilinux -I../common -I../common/tests -o $@ $(filter %.c,$^) -lpthread

$(LINUX_CHECK)/%.o: linux/%.c $(wildcard mbcf/*.h include/sss/*.h linux/*.h)
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -O1 $(WARNINGS) -DSSS_LINUX -I. -Iinclude -Imbcf -Ilinux -I../common -c -o $@ $<
