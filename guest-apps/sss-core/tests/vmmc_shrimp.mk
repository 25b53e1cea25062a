# SPDX-License-Identifier: Apache-2.0
#
# ShrimpRPC over pairs, on the rig of VMMC.

SHRIMP_CHECK_STUBS = $(SHRIMP_CHECK)/echo_shrimp_client.c $(SHRIMP_CHECK)/echo_shrimp_server.c

check: check-shrimp
.PHONY: check-shrimp
check-shrimp: $(SHRIMP_CHECK)/test
	timeout 100 $<

$(SHRIMP_CHECK_STUBS) &: ../shrimp/echo.x $(wildcard ../shrimp/generator/*.py)
	$(PYTHON) ../shrimp/shrimpgen --out $(SHRIMP_CHECK) $<

$(SHRIMP_CHECK)/test: $(SHRIMP_CHECK_STUBS:$(SHRIMP_CHECK)/%.c=$(HOST)/generated/%.o) \
		$(call host_objects,tests/vmmc_shrimp_test.c $(wildcard ../shrimp/*.c) ../common/pattern.c $(VMMC_RIG))
	@mkdir -p $(@D)
	$(VMMC_LINK)
