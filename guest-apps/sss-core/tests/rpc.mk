# SPDX-License-Identifier: Apache-2.0
#
# The RPC runtime on the host: XDR and messages against libtirpc, byte for byte.

RPC_RUNTIME = $(patsubst %,rpc/%.c,xdr xdr_mem xdr_rec xdr_size rpc_msg auth socket record calls xid client clnt_udp clnt_tcp \
	clnt_error clnt_create pmap svc transport svc_udp svc_tcp) tests/rpc/host_system.c
RPC_RUNTIME_OBJECTS = $(call host_objects,$(RPC_RUNTIME))
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

$(HOST)/tests/rpc/%.o: HOST_CFLAGS += -DRPC_OURS -Wno-unused-variable
$(HOST)/tests/rpc/stubs_main.o: HOST_CFLAGS += -Wno-unused-parameter -Wno-missing-prototypes

# What rpcgen writes has unused variables.
$(RPC_CHECK)/libtirpc_side.so: $(RPC_INTERFACES)
	$(CC) -std=gnu11 -g -O1 -w -I/usr/include/tirpc -fPIC -shared -o $@ $(filter %.c,$^) -ltirpc

# The sanitizer has functions of its own in front of those of XDR, which look for the real ones: hence libtirpc here, too.
$(RPC_CHECK)/xdr: $(HOST)/tests/rpc/xdr_main.o $(HOST)/generated/nasty_xdr.o $(HOST)/generated/echo_xdr.o $(RPC_RUNTIME_OBJECTS)
	$(HOST_LINK) -ldl -Wl,--no-as-needed -ltirpc

# The same server and caller with either library: each calls each.

check-rpc: check-rpc-calls
.PHONY: check-rpc-calls
check-rpc-calls: $(foreach side,ours theirs,$(RPC_CHECK)/server.$(side) $(RPC_CHECK)/caller.$(side))
	$(foreach caller,ours theirs,$(foreach server,ours theirs, \
		timeout 60 $(RPC_CHECK)/caller.$(caller) $(RPC_CHECK)/server.$(server) $(server) &&)) true

$(RPC_CHECK)/%.ours: $(HOST)/tests/rpc/%_main.o $(HOST)/generated/nasty_xdr.o $(RPC_RUNTIME_OBJECTS)
	$(HOST_LINK)

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
RPC_STUB_OBJECTS = $(foreach interface,plain styled,$(patsubst %,$(HOST)/generated/$(interface)_%.o,xdr clnt svc))

$(RPC_CHECK)/stubs: $(HOST)/tests/rpc/stubs_main.o $(RPC_STUB_OBJECTS) $(RPC_RUNTIME_OBJECTS)
	$(HOST_LINK)
