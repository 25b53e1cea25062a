# SPDX-License-Identifier: Apache-2.0
#
# The core of DCE RPC by itself, with sanitizers; part of `make check`.

DCE_TESTS = golden_test queue_test wire_test
UNIT_TESTS += $(DCE_TESTS:%=dce_%)
DCE_RIG = dce/tests/rig.c $(DCE_CORE)

$(DCE_TESTS:%=$(CHECK)/dce_%): $(CHECK)/dce_%: dce/tests/%.c $(DCE_RIG) dce/tests/rig.h $(HEADERS) | $(CHECK)
	$(CC) $(CHECK_CFLAGS) -o $@ $< $(DCE_RIG)
