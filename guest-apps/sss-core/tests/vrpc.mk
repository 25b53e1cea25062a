# SPDX-License-Identifier: Apache-2.0
#
# vRPC on the host, under sanitizers: its rings alone, and both ends in one process over VMMC's rig and over MBCF.

VRPC_CHECK = $(OUT)/check/vrpc
VRPC_SOURCES = tests/echo_rig.c $(VMMC_RIG) lib/vmmc_pair.c tasks/linux/no_sockets.c ../common/pattern.c ../common/mix.c $(wildcard rpc/*.c)

check: check-vrpc
.PHONY: check-vrpc
check-vrpc: $(VRPC_CHECK)/ring_test $(VRPC_CHECK)/vrpc_test
	timeout 100 $(VRPC_CHECK)/ring_test
	for wait in poll notify; do timeout 300 $(VRPC_CHECK)/vrpc_test $$wait > $(VRPC_CHECK)/log || { cat $(VRPC_CHECK)/log; exit 1; }; done

$(VRPC_CHECK)/ring_test: tests/ring_test.c rpc/ring.c rpc/ring.h
	@mkdir -p $(@D)
	$(CC) $(VMMC_CFLAGS) -Irpc -o $@ $(filter %.c,$^)

$(VRPC_CHECK)/vrpc_test: tests/vrpc_test.c $(VRPC_SOURCES) $(RPC_CHECK)/echo.h $(RPC_CHECK)/echo_xdr.c \
		$(wildcard tests/vmmc_*.h tests/echo_rig.h include/*/*.h rpc/*.h mbcf/*.h linux/*.h)
	@mkdir -p $(@D)
	$(CC) $(VMMC_CFLAGS) -Wno-cast-function-type -Wno-unused-variable -Irpc -I$(RPC_CHECK) -o $@ $(filter %.c,$^) -lpthread
