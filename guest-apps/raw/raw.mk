# SPDX-License-Identifier: Apache-2.0

RAW = raw/header.c raw/channel.c

# Linked against the C library alone, which the image holds for rpcbind anyway.
$(OUT)/raw-%: raw/%.c $(RAW) $(COMMON) $(HEADERS) | $(OUT)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< $(RAW) $(COMMON) -l:libjansson.a -lpthread

$(OUT)/iperf3-%: raw/iperf3-%.c $(COMMON) $(HEADERS) | $(OUT)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< $(COMMON) -l:libjansson.a -lpthread
