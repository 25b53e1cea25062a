# SPDX-License-Identifier: Apache-2.0
#
# The RPC runtime on the host: XDR and messages against libtirpc, byte for byte.

RPC_CHECK = $(OUT)/check/rpc
RPC_HOST_CFLAGS = -std=gnu11 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover -fvisibility=hidden $(WARNINGS) \
	-Wno-cast-function-type -Iinclude -I$(RPC_CHECK)
RPC_XDR_SOURCES = rpc/xdr.c rpc/xdr_mem.c rpc/xdr_rec.c rpc/xdr_size.c rpc/rpc_msg.c rpc/auth.c
RPC_INTERFACES = $(RPC_CHECK)/nasty.h $(RPC_CHECK)/nasty_xdr.c $(RPC_CHECK)/echo.h $(RPC_CHECK)/echo_xdr.c

check: check-rpc
.PHONY: check-rpc
check-rpc: $(RPC_CHECK)/xdr $(RPC_CHECK)/libtirpc_side.so
	$(RPC_CHECK)/xdr $(RPC_CHECK)/libtirpc_side.so

define RPC_INTERFACE
$(RPC_CHECK)/$(notdir $(1)).h: $(1).x
	@mkdir -p $$(@D)
	rm -f $$@ && cd $(dir $(1)) && rpcgen -N -h -o $$(abspath $$@) $(notdir $(1)).x

$(RPC_CHECK)/$(notdir $(1))_xdr.c: $(1).x
	@mkdir -p $$(@D)
	rm -f $$@ && cd $(dir $(1)) && rpcgen -N -c -o $$(abspath $$@) $(notdir $(1)).x
endef
$(eval $(call RPC_INTERFACE,tests/rpc/nasty))
$(eval $(call RPC_INTERFACE,../echo/echo))

# What rpcgen writes has unused variables.
$(RPC_CHECK)/libtirpc_side.so: $(RPC_INTERFACES)
	$(CC) -std=gnu11 -g -O1 -w -I/usr/include/tirpc -fPIC -shared -o $@ $(filter %.c,$^) -ltirpc

# The sanitizer has functions of its own in front of those of XDR, which look for the real ones: hence libtirpc here, too.
$(RPC_CHECK)/xdr: tests/rpc/xdr_main.c $(RPC_XDR_SOURCES) $(RPC_INTERFACES) $(wildcard include/rpc/*.h)
	$(CC) $(RPC_HOST_CFLAGS) -Wno-unused-variable -o $@ $(filter %.c,$^) -ldl -Wl,--no-as-needed -ltirpc

# The same server and caller with either library: each calls each.

RPC_RUNTIME = $(RPC_XDR_SOURCES) $(patsubst %,rpc/%.c,socket record calls xid client clnt_udp clnt_tcp clnt_error clnt_create \
	pmap svc transport svc_udp svc_tcp) tests/rpc/host_system.c

check-rpc: check-rpc-calls
.PHONY: check-rpc-calls
check-rpc-calls: $(foreach side,ours theirs,$(RPC_CHECK)/server.$(side) $(RPC_CHECK)/caller.$(side))
	$(foreach caller,ours theirs,$(foreach server,ours theirs, \
		timeout 60 $(RPC_CHECK)/caller.$(caller) $(RPC_CHECK)/server.$(server) $(server) &&)) true

$(RPC_CHECK)/%.ours: tests/rpc/%_main.c $(RPC_CHECK)/nasty_xdr.c $(RPC_RUNTIME) $(wildcard include/rpc/*.h rpc/*.h) $(RPC_INTERFACES)
	$(CC) $(RPC_HOST_CFLAGS) -DRPC_OURS -Wno-unused-variable -o $@ $< $(RPC_CHECK)/nasty_xdr.c $(RPC_RUNTIME)

$(RPC_CHECK)/%.theirs: tests/rpc/%_main.c $(RPC_CHECK)/nasty_xdr.c $(RPC_INTERFACES)
	$(CC) -std=gnu11 -g -O1 $(WARNINGS) -Wno-cast-function-type -Wno-unused-variable -I/usr/include/tirpc -I$(RPC_CHECK) \
		-o $@ $< $(RPC_CHECK)/nasty_xdr.c -ltirpc

# Stubs of both sides as rpcgen writes them: -M returns results in the caller's memory, -N takes several arguments.

check-rpc: check-rpc-stubs
.PHONY: check-rpc-stubs
check-rpc-stubs: $(RPC_CHECK)/stubs
	timeout 60 $<

# $(1): the interface, $(2): flags; a header, filters, and the stubs of the client and the server.
define RPC_STUBS
$(RPC_CHECK)/$(1).h $(RPC_CHECK)/$(1)_xdr.c $(RPC_CHECK)/$(1)_clnt.c $(RPC_CHECK)/$(1)_svc.c &: tests/rpc/$(1).x
	@mkdir -p $$(@D)
	rm -f $$(RPC_CHECK)/$(1).h $$(RPC_CHECK)/$(1)_xdr.c $$(RPC_CHECK)/$(1)_clnt.c $$(RPC_CHECK)/$(1)_svc.c
	cd tests/rpc && rpcgen -C $(2) -h -o $$(abspath $$(RPC_CHECK))/$(1).h $(1).x
	cd tests/rpc && rpcgen -C $(2) -c -o $$(abspath $$(RPC_CHECK))/$(1)_xdr.c $(1).x
	cd tests/rpc && rpcgen -C $(2) -l -o $$(abspath $$(RPC_CHECK))/$(1)_clnt.c $(1).x
	cd tests/rpc && rpcgen -C $(2) -m -o $$(abspath $$(RPC_CHECK))/$(1)_svc.c $(1).x
endef
$(eval $(call RPC_STUBS,plain,-M))
$(eval $(call RPC_STUBS,styled,-N))
RPC_STUB_SOURCES = $(foreach interface,plain styled,$(patsubst %,$(RPC_CHECK)/$(interface)_%.c,xdr clnt svc))

# What rpcgen writes leaves variables and arguments unused and calls functions by pointers of other types.
$(RPC_CHECK)/stubs: tests/rpc/stubs_main.c $(RPC_STUB_SOURCES) $(RPC_RUNTIME) $(wildcard include/rpc/*.h rpc/*.h)
	$(CC) $(RPC_HOST_CFLAGS) -Wno-unused-variable -Wno-unused-parameter -Wno-missing-prototypes -o $@ $(filter %.c,$^)
