/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Network adapters: their rings. net.h has what others use of them. */
#include "frames.h"
#include "interrupt.h"
#include "virtio.h"

enum { NET_ADAPTERS = 8, NET_MAC = 6, NET_QUEUE = 256 };

struct net_counters {
    uint64_t frames_sent, bytes_sent, frames_received, bytes_received;
    uint64_t refused; /* the transmit ring was full */
    uint64_t foreign; /* received: to another station, or sent by this node */
    uint64_t unknown; /* received: an EtherType without a protocol */
    uint64_t malformed;
};

struct net_adapter {
    struct virtq transmit, receive;
    struct sss_frame *sending[NET_QUEUE]; /* what each descriptor of the transmit ring holds */
    uint8_t *buffers;                     /* of the receive ring, FRAME_BUFFER_BYTES each */
    uint64_t mac_word;                    /* the station's address in the low 6 bytes */
    uint8_t mac[NET_MAC];
    uint8_t number; /* N of ethN */
    struct net_counters counters;
    struct virtio_device device;
};

extern struct net_adapter net_adapters[NET_ADAPTERS];

/* In PCI order. `received` is called in the interrupt, with the adapter. -> how many there are. */
unsigned virtio_net_init(interrupt_function received);
bool virtio_net_send(struct net_adapter *adapter, struct sss_frame *frame);
/* Gives sent frames back to the pool. */
void virtio_net_reclaim(struct net_adapter *adapter);

/* The oldest received frame. */
static inline const uint8_t *virtio_net_take(struct net_adapter *adapter, uint16_t *id,
                                             size_t *length)
{
    uint32_t bytes;

    *id = virtq_take(&adapter->receive, &bytes);
    *length = bytes < FRAME_HEADER ? 0 : bytes - FRAME_HEADER;
    return adapter->buffers + (size_t)*id * FRAME_BUFFER_BYTES + FRAME_BUFFER_OFFSET + FRAME_HEADER;
}

/* Its buffer may be filled again. */
static inline void virtio_net_give_back(struct net_adapter *adapter, uint16_t id)
{
    struct virtq *queue = &adapter->receive;

    virtq_offer(queue, id);
    /* Not at once: most of the ring is still the device's. */
    if ((uint16_t)(queue->offered - queue->available->index) > queue->mask / 8)
        virtq_publish(queue);
}
