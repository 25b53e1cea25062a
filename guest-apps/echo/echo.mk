# SPDX-License-Identifier: Apache-2.0

ECHO = $(wildcard echo/*.c echo/tirpc/*.c)
ECHO_GENERATED_OBJECT = $(OUT)/objects/echo_xdr.o
APPLETS += echo-client echo-server rpcbind
SOURCES += $(ECHO)
OBJECTS += $(ECHO_GENERATED_OBJECT)
LIBRARIES += -ltirpc

# The library's own type for XDR filters does not fit its own xdr_void.
TIRPC = /usr/include/tirpc
TIRPC_CFLAGS = -Iecho -Iecho/tirpc -I$(TIRPC) -Wno-cast-function-type

$(ECHO:%.c=$(OUT)/objects/%.o): CFLAGS += $(TIRPC_CFLAGS)
$(ECHO:%.c=$(OUT)/objects/%.o): $(OUT)/echo.h $(wildcard echo/tirpc/*.h)

$(OUT)/echo.h: echo/echo.x
	@mkdir -p $(@D)
	rm -f $@ && cd $(HERE)echo && rpcgen -h -o $(abspath $@) echo.x

$(OUT)/echo_xdr.c: echo/echo.x
	@mkdir -p $(@D)
	rm -f $@ && cd $(HERE)echo && rpcgen -c -o $(abspath $@) echo.x

# rpcgen declares a variable in every filter and uses it in none of ours.
$(ECHO_GENERATED_OBJECT): $(OUT)/echo_xdr.c $(OUT)/echo.h
	@mkdir -p $(@D)
	$(CC) $(filter-out $(WARNINGS),$(CFLAGS)) -Wno-unused-variable $(TIRPC_CFLAGS) \
		-ffile-prefix-map=$(abspath $(OUT))=. -c -o $@ $<
