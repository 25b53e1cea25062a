# SPDX-License-Identifier: Apache-2.0
#
# What tasks do over VMMC, on the host: both ends in one process, under sanitizers.

VMMC_CHECK = $(OUT)/check/vmmc
VMMC_RIG = tests/vmmc_rig.c $(wildcard linux/*.c) lib/mbcf_calls.c ../common/clock.c $(wildcard mbcf/*.c)
VMMC_RIG_FLAGS = -D_GNU_SOURCE -DSSS_LINUX -I. -Iinclude -Imbcf -Ilinux -Itests -I../common -I../common/tests \
	-Wl,--wrap=sss_call
VMMC_CFLAGS = -std=gnu11 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover $(WARNINGS) $(VMMC_RIG_FLAGS)

check: check-vmmc
.PHONY: check-vmmc
check-vmmc: $(VMMC_CHECK)/pair_test
	timeout 100 $(VMMC_CHECK)/pair_test

$(VMMC_CHECK)/pair_test: tests/vmmc_pair_test.c lib/vmmc_pair.c $(VMMC_RIG) $(wildcard tests/vmmc_*.h include/sss/*.h linux/*.h)
	@mkdir -p $(@D)
	$(CC) $(VMMC_CFLAGS) -o $@ $(filter %.c,$^) -lpthread
