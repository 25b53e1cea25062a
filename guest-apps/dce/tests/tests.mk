# SPDX-License-Identifier: Apache-2.0
#
# The core of DCE RPC by itself, with sanitizers; part of `make check`.
#
#   make fuzz-dce        libFuzzer, FUZZ_RUNS inputs for each target (wants clang and its runtime: libclang-rt-14-dev on Debian 12)
#   DCE_FUZZ=N           inputs of the built-in fuzzer in `make check`, for each target

DCE_TESTS = golden_test twelve_test queue_test states_test wire_test order_test places_test
DCE_TARGETS = pdu fack ndr tower client server twelve
DCE_FUZZ ?= 20000
FUZZ_RUNS ?= 10000000
DCE_RIG = dce/tests/rig.c $(DCE_CORE) common/functions.c
DCE_RIG_OBJECTS = $(DCE_RIG:%.c=$(CHECK)/objects/%.o)

UNIT_TESTS += $(DCE_TESTS:%=dce_%)

# Compiled once for all of them.
$(DCE_RIG_OBJECTS): $(CHECK)/objects/%.o: %.c dce/tests/rig.h $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CHECK_CFLAGS) -c -o $@ $<

$(DCE_TESTS:%=$(CHECK)/dce_%) $(CHECK)/dce_fuzz: $(CHECK)/dce_%: dce/tests/%.c $(DCE_RIG_OBJECTS) | $(CHECK)
	$(CC) $(CHECK_CFLAGS) -o $@ $< $(DCE_RIG_OBJECTS)

$(CHECK)/dce_states_test: private CHECK_CFLAGS += -DSTATES='"$(HERE)dce/tests/states.txt"'

# Scapy, which the harness's environment has, and tshark.
check-dce-interop: $(CHECK)/apps $(CHECK)/dce_golden_test
	$(PYTHON) dce/tests/interop.py $(CHECK)/apps $(CHECK)/dce_golden_test

.PHONY: check-dce-loopback check-dce-interop check-dce-fuzz fuzz-dce
check: check-dce-loopback check-dce-interop check-dce-fuzz

# The markers are looked for in what guests get.
check-dce-loopback: $(CHECK)/apps
	$(MAKE) OUT=$(CHECK)/guest $(DCE:%.c=$(CHECK)/guest/objects/%.o)
	$(PYTHON) dce/tests/loopback.py $(CHECK)/apps $(CHECK)/guest/objects/dce

check-dce-fuzz: $(CHECK)/dce_fuzz
	for target in $(DCE_TARGETS); do $< $$target $(DCE_FUZZ) || exit 1; done

fuzz-dce: | $(CHECK)
	@test -e "$$(clang -print-file-name=libclang_rt.fuzzer-x86_64.a)" || \
		{ echo "make fuzz-dce: packages clang and libclang-rt-14-dev (libFuzzer) are needed" >&2; exit 3; }
	for target in $(DCE_TARGETS); do \
		mkdir -p $(CHECK)/corpus-$$target && \
		clang -std=c11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
			-DDCE_LIBFUZZER=fuzz_$$target -Icommon -Icommon/tests -o $(CHECK)/libfuzzer-$$target dce/tests/fuzz.c $(DCE_RIG) && \
		$(CHECK)/libfuzzer-$$target -runs=$(FUZZ_RUNS) -max_len=4096 $(CHECK)/corpus-$$target || exit 1; \
	done
