# SPDX-License-Identifier: Apache-2.0

ECHO_GENERATED = $(OUT)/echo.h $(OUT)/echo_xdr.c
ECHO_CLIENT = echo/settings.c echo/caller.c echo/binding.c echo/sends.c
ECHO_SERVER = echo/duplicates.c

$(OUT)/echo.h: echo/echo.x | $(OUT)
	rm -f $@ && cd $(HERE)echo && rpcgen -h -o $(abspath $@) echo.x

$(OUT)/echo_xdr.c: echo/echo.x | $(OUT)
	rm -f $@ && cd $(HERE)echo && rpcgen -c -o $(abspath $@) echo.x

# rpcgen declares a variable in every filter and uses it in none of ours.
$(OUT)/echo_xdr.o: $(OUT)/echo_xdr.c $(OUT)/echo.h
	$(CC) $(filter-out $(WARNINGS),$(CFLAGS)) -Wno-unused-variable $(TIRPC_CFLAGS) \
		-ffile-prefix-map=$(abspath $(OUT))=. -c -o $@ $<

$(OUT)/echo-client: echo/client.c $(ECHO_CLIENT) $(OUT)/echo_xdr.o $(COMMON) $(HEADERS)
	$(CC) $(CFLAGS) $(TIRPC_CFLAGS) $(LDFLAGS) -o $@ echo/client.c $(ECHO_CLIENT) \
		$(OUT)/echo_xdr.o $(COMMON) -l:libjansson.a $(TIRPC_LIBS) -lpthread

$(OUT)/echo-server: echo/server.c $(ECHO_SERVER) $(OUT)/echo_xdr.o $(COMMON) $(HEADERS)
	$(CC) $(CFLAGS) $(TIRPC_CFLAGS) $(LDFLAGS) -o $@ echo/server.c $(ECHO_SERVER) \
		$(OUT)/echo_xdr.o $(COMMON) -l:libjansson.a $(TIRPC_LIBS)

$(OUT)/rpcbind: echo/rpcbind.c $(COMMON) $(HEADERS) | $(OUT)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ echo/rpcbind.c $(COMMON) -l:libjansson.a -lpthread
