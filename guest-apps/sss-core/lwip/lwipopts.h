/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * lwIP as this kernel uses it: raw interface only, one context (the kernel is never preempted), no
 * timers of its own (port.c calls each protocol's timer only while it has something to wait for).
 */
#define NO_SYS               1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_TIMERS          0
#define LWIP_SOCKET          0
#define LWIP_NETCONN         0
#define LWIP_STATS           0
#define LWIP_NOASSERT        1

#define LWIP_IPV4 1
#define LWIP_IPV6 0
#define LWIP_ARP  1
#define LWIP_ICMP 1
#define LWIP_RAW  0
#define LWIP_UDP  1
#define LWIP_TCP  1
#define LWIP_DHCP 0
#define LWIP_DNS  0
#define LWIP_IGMP 0

/* Every peer of the segments is a static entry; SSS_NODES of them, and others that ask. 127 is
 * lwIP's limit. */
#define ARP_TABLE_SIZE                127
#define ETHARP_SUPPORT_STATIC_ENTRIES 1
#define ARP_QUEUEING                  1
#define ARP_QUEUE_LEN                 MEMP_NUM_ARP_QUEUE
#define LWIP_NETIF_HWADDRHINT         1 /* each connection remembers its place in the table */

/* Tasks of one node talk over the node's own address, too. */
#define LWIP_HAVE_LOOPIF        1
#define LWIP_NETIF_LOOPBACK     1
#define LWIP_LOOPBACK_MAX_PBUFS 0

/* The IP header of a received frame is 8-byte aligned, and so does what the kernel keeps of lwIP.
 */
#define MEM_ALIGNMENT 8
#define ETH_PAD_SIZE  2

/* A datagram of 65507 bytes is 45 frames, in one buffer on its way out. */
#define MEM_SIZE           (1024 * 1024)
#define PBUF_POOL_SIZE     384
#define PBUF_POOL_BUFSIZE  1536
#define IP_REASSEMBLY      1
#define IP_FRAG            1
#define IP_REASS_MAX_PBUFS 276 /* six datagrams of the largest size at once */
#define MEMP_NUM_REASSDATA 32
#define MEMP_NUM_FRAG_PBUF 64
#define MEMP_NUM_PBUF      64

#define MEMP_NUM_UDP_PCB        64
#define MEMP_NUM_TCP_PCB        64
#define MEMP_NUM_TCP_PCB_LISTEN 16
#define MEMP_NUM_TCP_SEG        1024
#define MEMP_NUM_ARP_QUEUE      32

/*
 * MSS: of the interface, at most this. Windows of 128 KiB hold two records of the RPC library's 64
 * KiB. Timestamps as Linux sends them, so that both systems put the same bytes on the wire.
 */
#define TCP_MSS             1460
#define LWIP_WND_SCALE      1
#define TCP_RCV_SCALE       2
#define TCP_WND             131072
#define TCP_SND_BUF         131072
#define TCP_SND_QUEUELEN    512
#define TCP_SNDLOWAT        16384
#define LWIP_TCP_TIMESTAMPS 1
#define TCP_QUEUE_OOSEQ     1
#define TCP_LISTEN_BACKLOG  1
#define LWIP_TCP_KEEPALIVE  0
/*
 * A tick of TCP is 100 ms, of delayed acknowledgements 50 ms (lwIP's own 500 and 250 ms are for
 * slow processors): the first retransmission comes after 200 to 300 ms, as on Linux.
 */
#define TCP_TMR_INTERVAL  50
#define LWIP_TCP_RTO_TIME 1000 /* RFC 6298 section 2.1, until there is a measurement */
#define TCP_MSL           5000 /* ms: half of TIME_WAIT; the wires here hold no frame that long */

#define LWIP_CHKSUM                                  port_checksum
#define LWIP_HOOK_FILENAME                           "hooks.h"
#define LWIP_HOOK_TCP_ISN                            port_initial_sequence
#define LWIP_HOOK_TCP_OUT_TCPOPT_LENGTH(pcb, length) (length)
#define LWIP_HOOK_TCP_OUT_ADD_TCPOPTS(p, header, pcb, options)                                     \
    port_segment_out(header, pcb, options)

#define SO_REUSE 1 /* a server may listen again while old connections are in TIME_WAIT */
