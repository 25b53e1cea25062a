# SPDX-License-Identifier: Apache-2.0
#
# LWIP is the folder of lwIP 2.1.3's sources (the distribution's source package, unpacked), which stay as they are.

LWIP_CORE = init def inet_chksum ip mem memp netif pbuf tcp tcp_in tcp_out udp timeouts \
	ipv4/etharp ipv4/icmp ipv4/ip4 ipv4/ip4_addr ipv4/ip4_frag
LWIP_SOURCES = $(LWIP_CORE:%=$(LWIP)/src/core/%.c) $(LWIP)/src/netif/ethernet.c
LWIP_PORT_SOURCES = lwip/port.c
LWIP_INCLUDES = -I$(LWIP)/src/include -Ilwip -isystem lwip/shims
# lwIP leaves arguments unused where options are off.
LWIP_CFLAGS = $(LWIP_INCLUDES) -Wno-unused-parameter
