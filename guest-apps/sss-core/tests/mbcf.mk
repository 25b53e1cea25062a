# SPDX-License-Identifier: Apache-2.0
#
# The protocol of MBCF on a fake wire, the node in a Linux process, and frames that nobody should send.
#
#   make golden          rewrites the captures of tests/golden
#   make wire-tables     rewrites what wiregen.py makes of the tables of bytes and numbers
#   make explore         the search through all states within larger bounds: a minute
#   make fuzz            libFuzzer, for FUZZ_SECONDS (wants clang and its runtime)
#   MBCF_FUZZ=N          frames of the built-in fuzzer in `make check`

MBCF_CHECK = $(OUT)/check/mbcf
MBCF_FUZZ ?= $(shell expr $(FUZZ) \* 200000)
MBCF_TESTS = wire rules ends faults certainty restarts
MBCF_TABLES = $(wildcard mbcf/*.def include/sss/*.def include/rpc/*.def)
MBCF_HEADERS = $(wildcard mbcf/*.h include/sss/*.h tests/mbcf_*.h) $(MBCF_TABLES) $(lastword $(MAKEFILE_LIST))
MBCF_INCLUDES = -Iinclude -Imbcf -Itests -I../common -I../common/tests
MBCF_CORE = $(wildcard mbcf/*.c)
MBCF_RIG = tests/mbcf_rig.c $(MBCF_CORE)
MBCF_RIG_OBJECTS = $(call host_objects,$(MBCF_RIG))
MBCF_STEPS_OBJECTS = $(patsubst %.c,$(MBCF_CHECK)/steps-%.o,$(notdir tests/mbcf_steps.c $(MBCF_CORE)))
# What a WRITE of 4 bytes with its ack may cost in the core, both nodes together, with what is done while a frame is on the wire.
MBCF_STEPS_MOST ?= 820

# Bounds of the search through all states. Each must pass; what PLANT breaks must be found, by its own.
MBCF_EXPLORE = "--ops w,w --loss 0 --copies 0 --timeouts 0 --restarts 0,0" \
	"--ops w --restarts 1,0 --loss 0 --copies 1 --timeouts 0" \
	"--ops ew --restarts 0,0 --loss 1 --copies 1 --timeouts 0" \
	"--ops a --restarts 0,1 --loss 0 --copies 1 --timeouts 0 --fair-every 8" \
	"--ops w --restarts 1,1 --loss 1 --copies 1 --timeouts 0 --fair-every 64"
MBCF_EXPLORE_ALL = "--ops w --restarts 1,0 --loss 1 --copies 1 --timeouts 1 --fair-every 64" \
	"--ops ww --restarts 1,0 --loss 1 --copies 0 --timeouts 0 --fair-every 64" \
	"--ops wew --restarts 0,0 --loss 1 --copies 1 --timeouts 1 --fair-every 64" \
	"--ops aw --restarts 0,1 --loss 1 --copies 1 --timeouts 0 --fair-every 64"
MBCF_PLANTS = 1 2 3
MBCF_PLANT_1 = --ops w --restarts 1,0 --loss 0 --copies 1 --timeouts 0 --fair-every 64
MBCF_PLANT_2 = --ops ew --restarts 0,0 --loss 1 --copies 0 --timeouts 0 --fair-every 64
MBCF_PLANT_3 = --ops w --restarts 0,0 --loss 0 --copies 1 --timeouts 0 --fair-every 64

MBCF_PARTS = order ways tests explore fuzz golden steps
check: check-mbcf
.PHONY: check-mbcf $(MBCF_PARTS:%=check-mbcf-%) golden wire-tables fuzz explore
check-mbcf: $(MBCF_PARTS:%=check-mbcf-%)

check-mbcf-order: $(MBCF_CHECK)/table $(MBCF_STEPS_OBJECTS)
	$(MBCF_CHECK)/table > $(MBCF_CHECK)/table.txt && python3 wiregen.py --against $(MBCF_CHECK)/table.txt
	python3 tests/mbcf_order.py $(MBCF_CORE:mbcf/%.c=$(MBCF_CHECK)/steps-%.o)
	python3 tests/circles.py --upcall mbcf_channel_event $(MBCF_CORE:mbcf/%.c=$(MBCF_CHECK)/steps-%.o)

check-mbcf-ways: $(MBCF_CHECK)/ways-short $(MBCF_CHECK)/ways-long
	for ways in short long; do $(MBCF_CHECK)/ways-$$ways $(MBCF_CHECK)/ways-$$ways.pcap > $(MBCF_CHECK)/ways-$$ways.txt || exit 1; done
	cmp $(MBCF_CHECK)/ways-short.pcap $(MBCF_CHECK)/ways-long.pcap && diff $(MBCF_CHECK)/ways-short.txt $(MBCF_CHECK)/ways-long.txt

check-mbcf-tests: $(patsubst %,$(MBCF_CHECK)/%,$(MBCF_TESTS) linux target)
	for test in $^; do $$test || exit 1; done

check-mbcf-explore: $(MBCF_CHECK)/explore-0 $(MBCF_PLANTS:%=$(MBCF_CHECK)/explore-%)
	for bounds in $(MBCF_EXPLORE) $(if $(NIGHT),$(MBCF_EXPLORE_ALL)); do $(MBCF_CHECK)/explore-0 $$bounds || exit 1; done
	$(foreach plant,$(MBCF_PLANTS),! $(MBCF_CHECK)/explore-$(plant) $(MBCF_PLANT_$(plant)) > $(MBCF_CHECK)/explore-$(plant).txt && grep -q "explore fail" $(MBCF_CHECK)/explore-$(plant).txt && ) true

check-mbcf-fuzz: $(MBCF_CHECK)/fuzz
	$< --frames $(MBCF_FUZZ)

check-mbcf-golden: $(MBCF_CHECK)/golden
	mkdir -p $(MBCF_CHECK)/captures && $< $(MBCF_CHECK)/captures
	for capture in tests/golden/*.pcap; do cmp $$capture $(MBCF_CHECK)/captures/$${capture##*/} || exit 1; done

check-mbcf-steps: $(MBCF_CHECK)/steps
	$< --most $(MBCF_STEPS_MOST)

explore: $(MBCF_CHECK)/explore-0
	for bounds in $(MBCF_EXPLORE_ALL); do $< $$bounds || exit 1; done

$(MBCF_CHECK)/explore-%: tests/mbcf_explore.c $(MBCF_CORE) $(MBCF_HEADERS)
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -O2 $(WARNINGS) $(MBCF_INCLUDES) -DPLANT=$* -o $@ $<

golden: $(MBCF_CHECK)/golden
	$< tests/golden

wire-tables:
	python3 wiregen.py

$(MBCF_TESTS:%=$(MBCF_CHECK)/%): $(MBCF_CHECK)/%: $(HOST)/tests/mbcf_%_test.o $(MBCF_RIG_OBJECTS)
	@mkdir -p $(@D)
	$(HOST_LINK)

$(MBCF_CHECK)/table: $(HOST)/tests/mbcf_table.o
$(MBCF_CHECK)/fuzz $(MBCF_CHECK)/golden: $(MBCF_CHECK)/%: $(HOST)/tests/mbcf_%.o $(MBCF_RIG_OBJECTS)
$(MBCF_CHECK)/linux: $(call host_objects,tests/mbcf_linux_test.c $(NODE))
$(HOST)/tests/mbcf_target_test.o: HOST_CFLAGS += -iquote tasks/common
$(MBCF_CHECK)/target: $(call host_objects,tests/mbcf_target_test.c ../common/pattern.c $(NODE))
$(MBCF_CHECK)/ways-short: $(HOST)/tests/mbcf_ways.o $(MBCF_RIG_OBJECTS)
$(MBCF_CHECK)/ways-long: $(HOST)/tests/mbcf_ways.o $(MBCF_CHECK)/mbcf-long.o $(filter-out %/mbcf/mbcf.o,$(MBCF_RIG_OBJECTS))
$(patsubst %,$(MBCF_CHECK)/%,table fuzz golden linux target ways-short ways-long):
	@mkdir -p $(@D)
	$(HOST_LINK)

$(MBCF_CHECK)/mbcf-long.o: mbcf/mbcf.c $(MBCF_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(HOST_CFLAGS) -DMBCF_SHORT_WAYS=0 -c -o $@ $<

# As the kernel compiles the core: as one, in a relocatable object, with the kernel's own memcpy.
MBCF_STEPS_CFLAGS = -std=c11 -D_GNU_SOURCE -O2 -fno-pie -mgeneral-regs-only -fno-stack-protector -fcf-protection=none \
	$(WARNINGS) $(MBCF_INCLUDES)
$(MBCF_CHECK)/steps-%.o: mbcf/%.c $(MBCF_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(MBCF_STEPS_CFLAGS) $(WHOLE) -c -o $@ $<
$(MBCF_CHECK)/steps-%.o: tests/%.c $(MBCF_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(MBCF_STEPS_CFLAGS) $(WHOLE) -c -o $@ $<
$(MBCF_CHECK)/steps: $(MBCF_STEPS_OBJECTS) lib/string.c
	$(CC) $(filter-out $(WARNINGS),$(MBCF_STEPS_CFLAGS)) $(WHOLE) -w -r -flinker-output=nolto-rel -nostdlib -o $@.o $(MBCF_STEPS_OBJECTS)
	$(CC) $(MBCF_STEPS_CFLAGS) -fno-builtin -fno-tree-loop-distribute-patterns -no-pie -static -o $@ $@.o lib/string.c

FUZZ_SECONDS ?= 60
fuzz: tests/mbcf_fuzz.c $(MBCF_RIG) $(MBCF_HEADERS)
	@mkdir -p $(MBCF_CHECK)/corpus
	clang -std=c11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -DMBCF_LIBFUZZER \
		$(MBCF_INCLUDES) -o $(MBCF_CHECK)/libfuzzer tests/mbcf_fuzz.c $(MBCF_RIG)
	$(MBCF_CHECK)/libfuzzer -max_total_time=$(FUZZ_SECONDS) -max_len=8192 $(MBCF_CHECK)/corpus
