# SPDX-License-Identifier: Apache-2.0
#
# Objects of the tests that run on the host, under ASan and UBSan. Each source is compiled once, however many programs use it.
#
#   FUZZ=N      inputs of the built-in fuzzers, N times as many (10 at night)

FUZZ ?= $(if $(NIGHT),10,1)
HOST = $(OUT)/check/host
HOST_SANITIZE = -g1 -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
# Where generators write (rpc.mk, vmmc_shrimp.mk).
RPC_CHECK = $(OUT)/check/rpc
SHRIMP_CHECK = $(OUT)/check/shrimp

# libtirpc has functions by the names of the RPC runtime: hence hidden.
HOST_CFLAGS = -std=gnu11 $(HOST_SANITIZE) -fvisibility=hidden $(WARNINGS) -Wno-cast-function-type -MMD -MP -D_GNU_SOURCE -DSSS_LINUX \
	-I. -Iinclude -Irpc -Imbcf -Ilinux -Itests -I../common -I../common/tests -I../shrimp -I$(RPC_CHECK) -I$(SHRIMP_CHECK)
# A node in a Linux process.
NODE = $(wildcard linux/*.c mbcf/*.c) lib/mbcf_calls.c ../common/clock.c

# $(1): sources in this folder or beside it.
host_objects = $(patsubst %.c,$(HOST)/%.o,$(patsubst ../%,beside/%,$(1)))
HOST_LINK = $(CC) $(HOST_SANITIZE) -o $@ $(filter %.o,$^) -lpthread

# Generated headers come first; later the compiler's own lists (-MMD) decide what is compiled again.
HOST_GENERATED = $(patsubst %,$(RPC_CHECK)/%.h,echo nasty plain styled) $(SHRIMP_CHECK)/echo_shrimp_client.c
$(HOST)/%.o: %.c Makefile tests/host.mk | $(HOST_GENERATED)
	@mkdir -p $(@D)
	$(CC) $(HOST_CFLAGS) -c -o $@ $<

$(HOST)/beside/%.o: ../%.c Makefile tests/host.mk | $(HOST_GENERATED)
	@mkdir -p $(@D)
	$(CC) $(HOST_CFLAGS) -c -o $@ $<

$(HOST)/generated/%.o: $(SHRIMP_CHECK)/%.c
	@mkdir -p $(@D)
	$(CC) $(HOST_CFLAGS) -c -o $@ $<

# What rpcgen writes leaves variables and arguments unused and declares too little.
$(HOST)/generated/%.o: $(RPC_CHECK)/%.c | $(HOST_GENERATED)
	@mkdir -p $(@D)
	$(CC) $(HOST_CFLAGS) -Wno-unused-variable -Wno-unused-parameter -Wno-missing-prototypes -c -o $@ $<
