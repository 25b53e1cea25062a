# SPDX-License-Identifier: Apache-2.0
#
# RPC over MBCF on the host, under sanitizers: both ends in one process, with the protocol core between them.

RPCMBCF_CHECK = $(OUT)/check/rpcmbcf
RPCMBCF_MODES = exactly_once at_most_once small_cache at_least_once
RPCMBCF_SOURCES = tests/rpcmbcf_rig.c tests/echo_rig.c tasks/linux/no_sockets.c tasks/linux/no_backplane.c \
	../common/pattern.c ../common/mix.c $(NODE) $(wildcard rpc/*.c)

check: check-rpcmbcf check-rpc-circles
.PHONY: check-rpcmbcf check-rpc-circles
check-rpc-circles: $(call host_objects,$(wildcard rpc/*.c))
	python3 tests/circles.py $^

check-rpcmbcf: $(RPCMBCF_CHECK)/test $(RPCMBCF_CHECK)/faults_test
	timeout 300 $(RPCMBCF_CHECK)/test > $(RPCMBCF_CHECK)/log || { cat $(RPCMBCF_CHECK)/log; exit 1; }
	for mode in $(RPCMBCF_MODES); do \
		timeout 300 $(RPCMBCF_CHECK)/faults_test $$mode > $(RPCMBCF_CHECK)/log || { cat $(RPCMBCF_CHECK)/log; exit 1; }; done

$(RPCMBCF_CHECK)/test $(RPCMBCF_CHECK)/faults_test: $(RPCMBCF_CHECK)/%test: $(HOST)/tests/rpcmbcf_%test.o \
		$(HOST)/generated/echo_xdr.o $(call host_objects,$(RPCMBCF_SOURCES))
	@mkdir -p $(@D)
	$(HOST_LINK)
