# SPDX-License-Identifier: Apache-2.0
#
# ShrimpRPC over pairs, on the rig of VMMC.

SHRIMP_CHECK = $(OUT)/check/shrimp
SHRIMP_CHECK_STUBS = $(SHRIMP_CHECK)/echo_shrimp_client.c $(SHRIMP_CHECK)/echo_shrimp_server.c

check: check-shrimp
.PHONY: check-shrimp
check-shrimp: $(SHRIMP_CHECK)/test
	timeout 100 $<

$(SHRIMP_CHECK)/echo_shrimp_client.c $(SHRIMP_CHECK)/echo_shrimp_server.c &: ../shrimp/echo.x $(wildcard ../shrimp/generator/*.py)
	$(PYTHON) ../shrimp/shrimpgen --out $(SHRIMP_CHECK) $<

$(SHRIMP_CHECK)/test: tests/vmmc_shrimp_test.c $(wildcard ../shrimp/*.c) $(SHRIMP_CHECK_STUBS) lib/vmmc_pair.c ../common/pattern.c $(VMMC_RIG) \
		$(wildcard ../shrimp/*.h tests/vmmc_*.h include/sss/*.h linux/*.h)
	@mkdir -p $(@D)
	$(CC) $(VMMC_CFLAGS) -I../shrimp -I$(SHRIMP_CHECK) -o $@ $(filter %.c,$^) -lpthread
