# SPDX-License-Identifier: Apache-2.0
#
# The kernel's part in a backplane on the host, with an adapter, tasks and memory of the test's own: whatever other nodes' kernels say.

BACKPLANE_CHECK = $(OUT)/check/backplane
BACKPLANE_SOURCES = tests/backplane_test.c $(patsubst %,kernel/vmmc%.c,_export _import _bind _memory) kernel/vmmc.c
BACKPLANE_CFLAGS = -std=c11 -D_GNU_SOURCE $(HOST_SANITIZE) $(WARNINGS) -Iinclude \
	-iquote kernel -iquote ..
BACKPLANE_FUZZ ?= $(shell expr $(FUZZ) \* 200000)

check: check-backplane
.PHONY: check-backplane
check-backplane: $(BACKPLANE_CHECK)
	$(BACKPLANE_CHECK) $(BACKPLANE_FUZZ)

$(BACKPLANE_CHECK): $(BACKPLANE_SOURCES) tests/backplane_world.h $(wildcard kernel/*.h include/sss/vmmc*) include/sss/abi.h
	@mkdir -p $(@D)
	$(CC) $(BACKPLANE_CFLAGS) -o $@ $(BACKPLANE_SOURCES)
