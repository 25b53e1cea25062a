# SPDX-License-Identifier: Apache-2.0
#
# vRPC on the host, under sanitizers: its rings alone, and both ends in one process over VMMC's rig and over MBCF.

VRPC_CHECK = $(OUT)/check/vrpc
VRPC_SOURCES = tests/vrpc_test.c tests/echo_rig.c $(VMMC_RIG) tasks/linux/no_sockets.c ../common/pattern.c ../common/mix.c \
	$(wildcard rpc/*.c)

check: check-vrpc
.PHONY: check-vrpc
check-vrpc: $(VRPC_CHECK)/ring_test $(VRPC_CHECK)/vrpc_test
	timeout 100 $(VRPC_CHECK)/ring_test
	for wait in poll notify; do timeout 300 $(VRPC_CHECK)/vrpc_test $$wait > $(VRPC_CHECK)/log || { cat $(VRPC_CHECK)/log; exit 1; }; done

$(VRPC_CHECK)/ring_test: $(call host_objects,tests/ring_test.c rpc/ring.c)
	@mkdir -p $(@D)
	$(HOST_LINK)

$(VRPC_CHECK)/vrpc_test: $(HOST)/generated/echo_xdr.o $(call host_objects,$(VRPC_SOURCES))
	@mkdir -p $(@D)
	$(VMMC_LINK)
