/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between net.c (frames, EtherTypes) and virtio_net.c (adapters); what others use of them is in
 * kernel.h. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sss/frame.h"
#include "virtio.h"

enum {
    NET_ADAPTERS = 8,
    NET_MTU = 1500,
    NET_MAC = 6,
    /* virtio_net_hdr with num_buffers (virtio 1.1, 5.1.6): zeros, as nothing is offloaded */
    NET_HEADER = 12,
    /* a buffer's piece of a page; the Ethernet payload begins at its byte 32 */
    NET_BUFFER_BYTES = 2048,
    NET_BUFFER_OFFSET = 6, /* of the virtio header in it: 6 + 12 + 14 = 32 */
    NET_QUEUE = 256,
};

struct net_counters {
    uint64_t frames_sent, bytes_sent, frames_received, bytes_received;
    uint64_t refused; /* the transmit ring was full */
    uint64_t foreign; /* received: to another station, or our own */
    uint64_t unknown; /* received: an EtherType of nobody here */
    uint64_t malformed;
};

struct net_adapter {
    struct virtq transmit, receive;
    struct sss_frame *sending[NET_QUEUE]; /* what each descriptor of the transmit ring holds */
    uint8_t *buffers;                     /* of the receive ring, NET_BUFFER_BYTES each */
    /* the station's address in the low 6 bytes, as frames have it */
    uint64_t mac_word;
    uint8_t mac[NET_MAC];
    struct net_counters counters;
    struct virtio_device device;
};

extern struct net_adapter net_adapter_table[NET_ADAPTERS];

void net_init(void); /* the pool of frames, then every adapter in PCI order: eth0, eth1, ... */
/*
 * Gives sent frames back. The end of a transmission interrupts nobody, so whoever asks whether a
 * frame is still in the adapter (users > 1) calls this before.
 */
void net_collect(unsigned adapter);
const struct net_counters *net_counters(unsigned adapter);
unsigned net_frames_free(void);
/* After a restart nobody knows the frames that he holds any more: all return that no adapter is
 * sending. */
void net_reclaim_frames(void);
/* A frame of Sundial's own, EtherType 0x88B5, never forwarded: to broadcast on eth0. */
bool net_send_control(const void *payload, size_t length);

/* virtio_net.c */
unsigned virtio_net_init(void); /* -> how many adapters work */
bool virtio_net_send(struct net_adapter *adapter, struct sss_frame *frame);
void virtio_net_reclaim(struct net_adapter *adapter); /* gives sent frames back */
void virtio_net_wait_sent(struct net_adapter *adapter, uint64_t limit_ns);
