# SPDX-License-Identifier: Apache-2.0

ECHO = $(wildcard echo/*.c echo/tirpc/*.c)
# The interfaces, of which rpcgen makes NAME.h and NAME_xdr.c.
INTERFACES = echo function_calls
INTERFACE_HEADERS = $(INTERFACES:%=$(OUT)/%.h)
ECHO_GENERATED_OBJECTS = $(INTERFACES:%=$(OUT)/objects/%_xdr.o)
APPLETS += echo-client echo-server rpcbind
SOURCES += $(ECHO)
OBJECTS += $(ECHO_GENERATED_OBJECTS)
LIBRARIES += -ltirpc

# The library's own type for XDR filters does not fit its own xdr_void.
TIRPC = /usr/include/tirpc
TIRPC_CFLAGS = -Iecho -Iecho/tirpc -I$(TIRPC) -Wno-cast-function-type

$(ECHO:%.c=$(OUT)/objects/%.o): CFLAGS += $(TIRPC_CFLAGS)
$(ECHO:%.c=$(OUT)/objects/%.o): $(INTERFACE_HEADERS) $(wildcard echo/tirpc/*.h)

$(INTERFACE_HEADERS): $(OUT)/%.h: echo/%.x
	@mkdir -p $(@D)
	rm -f $@ && cd $(HERE)echo && rpcgen -h -o $(abspath $@) $*.x

$(INTERFACES:%=$(OUT)/%_xdr.c): $(OUT)/%_xdr.c: echo/%.x
	@mkdir -p $(@D)
	rm -f $@ && cd $(HERE)echo && rpcgen -c -o $(abspath $@) $*.x

# rpcgen declares a variable in every filter and uses it in none of ours.
$(ECHO_GENERATED_OBJECTS): $(OUT)/objects/%_xdr.o: $(OUT)/%_xdr.c $(OUT)/%.h
	@mkdir -p $(@D)
	$(CC) $(filter-out $(WARNINGS),$(CFLAGS)) -Wno-unused-variable $(TIRPC_CFLAGS) \
		-ffile-prefix-map=$(abspath $(OUT))=. -c -o $@ $<
