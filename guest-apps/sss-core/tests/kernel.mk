# SPDX-License-Identifier: Apache-2.0
#
# The kernel's core with tests/boot_main.c in place of devices, and an archive of small tasks, for tests/test_kernel.py.

CHECK = $(OUT)/check
CORE = boot.S entry.S boot_info.c memory.c paging.c kmalloc.c gates.c interrupt.c timer.c runqueue.c space.c user.c csm.c \
	wait.c signal.c fpu.c thread.c schedule.c task_table.c task_info.c initrd.c elf.c task.c trap.c syscall.c records.c \
	panic.c symbols.c kformat.c
CORE_OBJECTS = $(patsubst %,$(OUT)/kernel/kernel/%.o,$(basename $(CORE))) $(OUT)/kernel/lib/string.o \
	$(OUT)/kernel/lib/format.o $(OUT)/kernel/lib/json.o $(OUT)/kernel/tests/boot_main.o
TEST_TASKS = $(patsubst tests/tasks/%.c,%,$(wildcard tests/tasks/*.c)) hello

$(CHECK)/core.o: $(CORE_OBJECTS)
	@mkdir -p $(@D)
	$(JOIN_KERNEL)

$(CHECK)/core.plain: $(CHECK)/core.o kernel/kernel.ld
	echo | LC_ALL=C awk -f kernel/symbols.awk > $(CHECK)/no-symbols.S
	$(CC) -c -o $(CHECK)/no-symbols.o $(CHECK)/no-symbols.S
	$(LINK_KERNEL) $(filter %.o,$^) $(CHECK)/no-symbols.o

$(CHECK)/core: $(CHECK)/core.plain kernel/symbols.awk
	$(call NAMES,$<) > $(CHECK)/symbols.S
	$(CC) -c -o $(CHECK)/symbols.o $(CHECK)/symbols.S
	$(LINK_KERNEL) $(CHECK)/core.o $(CHECK)/symbols.o

# One program of several sources.
$(CHECK)/bin/backplane: $(patsubst %.c,$(OUT)/tasks/%.o,$(wildcard tests/tasks/backplane/*.c))

$(CHECK)/bin/%: $(OUT)/tasks/tests/tasks/%.o $(OUT)/tasks/lib/crt0.o $(SHRIMP_LIBRARY) $(LIBRARY) lib/task.ld
	@mkdir -p $(@D)
	$(LINK_TASK)

$(CHECK)/bin/%: $(OUT)/tasks/tasks/%.o $(OUT)/tasks/lib/crt0.o $(LIBRARY) lib/task.ld
	@mkdir -p $(@D)
	$(LINK_TASK)

$(CHECK)/tasks.cpio: $(TEST_TASKS:%=$(CHECK)/bin/%)
	$(call ARCHIVE,$(CHECK)/bin,$(TEST_TASKS))

# No files of kernel/ name each other in a circle. Those that need lwIP's headers are left out where there are none.
KERNEL_CIRCLE = $(filter-out $(if $(LWIP),,$(LWIP_USERS)),$(patsubst %.c,$(OUT)/kernel/%.o,$(wildcard kernel/*.c)))

# Its reader of archives on the host, for tests/test_initrd.py.
$(CHECK)/initrd: tests/initrd_main.c kernel/initrd.c kernel/initrd.h
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -g -O1 -fsanitize=address,undefined -fno-sanitize-recover $(WARNINGS) -iquote . -iquote kernel -o $@ $<

check: check-python check-kernel-circles
.PHONY: check-python check-kernel-circles
check-python:
	$(PYTHON) -m pytest -q -m 'not vm' tests/test_circles.py tests/test_initrd.py

check-kernel-circles: $(KERNEL_CIRCLE)
	python3 tests/circles.py $^
