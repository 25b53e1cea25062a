# SPDX-License-Identifier: Apache-2.0
#
# RPC over MBCF on the host, under sanitizers: both ends in one process, with the protocol core between them.

RPCMBCF_CHECK = $(OUT)/check/rpcmbcf
RPCMBCF_MODES = exactly_once at_most_once small_cache at_least_once
RPCMBCF_SOURCES = tests/rpcmbcf_rig.c tests/echo_rig.c $(wildcard linux/*.c) lib/mbcf_calls.c \
	tasks/linux/no_sockets.c tasks/linux/no_backplane.c ../common/clock.c ../common/pattern.c ../common/mix.c $(wildcard mbcf/*.c rpc/*.c)

check: check-rpcmbcf check-rpc-circles
.PHONY: check-rpcmbcf check-rpc-circles
check-rpc-circles: $(patsubst %.c,$(OUT)/tasks/%.o,$(wildcard rpc/*.c))
	python3 tests/circles.py $^

check-rpcmbcf: $(RPCMBCF_CHECK)/test $(RPCMBCF_CHECK)/faults_test
	timeout 300 $(RPCMBCF_CHECK)/test > $(RPCMBCF_CHECK)/log || { cat $(RPCMBCF_CHECK)/log; exit 1; }
	for mode in $(RPCMBCF_MODES); do \
		timeout 300 $(RPCMBCF_CHECK)/faults_test $$mode > $(RPCMBCF_CHECK)/log || { cat $(RPCMBCF_CHECK)/log; exit 1; }; done

$(RPCMBCF_CHECK)/test $(RPCMBCF_CHECK)/faults_test: $(RPCMBCF_CHECK)/%test: tests/rpcmbcf_%test.c $(RPCMBCF_SOURCES) \
		$(RPC_CHECK)/echo.h $(RPC_CHECK)/echo_xdr.c $(wildcard tests/*.h include/*/*.h rpc/*.h mbcf/*.h linux/*.h)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover $(WARNINGS) -Wno-cast-function-type \
		-Wno-unused-variable -D_GNU_SOURCE -DSSS_LINUX -I. -Iinclude -Irpc -Imbcf -Ilinux -I../common -I../common/tests -I$(RPC_CHECK) \
		-o $@ $(filter %.c,$^) -lpthread
