# SPDX-License-Identifier: Apache-2.0
#
# What tasks do over VMMC, on the host: both ends in one process, under sanitizers.

VMMC_CHECK = $(OUT)/check/vmmc
VMMC_RIG = tests/vmmc_rig.c lib/vmmc_pair.c $(NODE)
VMMC_LINK = $(HOST_LINK) -Wl,--wrap=sss_call

check: check-vmmc
.PHONY: check-vmmc
check-vmmc: $(VMMC_CHECK)/pair_test
	timeout 100 $(VMMC_CHECK)/pair_test

$(VMMC_CHECK)/pair_test: $(call host_objects,tests/vmmc_pair_test.c $(VMMC_RIG))
	@mkdir -p $(@D)
	$(VMMC_LINK)
