/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame is one descriptor, with the virtio header before it in the same buffer. Received frames
 * interrupt; the end of a transmission does not: sent frames are collected when the next one is
 * sent, or when the pool is empty.
 *
 * No wake-up is lost: an MSI that comes while the handler runs is kept pending by the local APIC
 * and taken after it.
 */
#include "virtio_net.h"

#include "console.h"
#include "memory.h"

enum { RECEIVE_QUEUE = 0, TRANSMIT_QUEUE = 1 };
#define VIRTIO_NET_F_MAC (1ull << 5)

struct net_adapter net_adapters[NET_ADAPTERS];
static unsigned adapter_count;

void virtio_net_reclaim(struct net_adapter *adapter)
{
    while (virtq_has_used(&adapter->transmit)) {
        uint32_t length;
        uint16_t id = virtq_take(&adapter->transmit, &length);
        struct sss_frame *frame = adapter->sending[id];

        adapter->sending[id] = NULL;
        if (frame != NULL)
            frame_put(frame);
    }
}

bool virtio_net_send(struct net_adapter *adapter, struct sss_frame *frame)
{
    struct virtq *queue = &adapter->transmit;
    uint16_t id = queue->offered & queue->mask;
    struct virtq_descriptor *descriptor = &queue->descriptors[id];

    /* The device finishes frames in any order: this very place must be free. */
    if (adapter->sending[id] != NULL) {
        virtio_net_reclaim(adapter);
        if (adapter->sending[id] != NULL) {
            adapter->counters.refused++;
            return false;
        }
    }
    descriptor->address = (uint64_t)frame->bytes - FRAME_HEADER - DIRECT_MAP;
    descriptor->length = FRAME_HEADER + (uint32_t)frame->length;
    queue->offered++; /* place k of the available ring always names descriptor k */
    virtq_publish(queue);
    /* The rest while the frame is on its way. */
    adapter->sending[id] = frame;
    frame->users++;
    adapter->counters.frames_sent++;
    adapter->counters.bytes_sent += frame->length;
    if (virtq_has_used(queue))
        virtio_net_reclaim(adapter);
    return true;
}

static const char *fill_receive_ring(struct net_adapter *adapter)
{
    struct virtq *queue = &adapter->receive;
    size_t buffers = (size_t)queue->mask + 1;

    adapter->buffers = pages_alloc(buffers * FRAME_BUFFER_BYTES / PAGE);
    if (adapter->buffers == NULL)
        return "gets no memory for its buffers";
    for (size_t i = 0; i < buffers; i++) {
        queue->descriptors[i] = (struct virtq_descriptor){
            .address = physical(adapter->buffers) + i * FRAME_BUFFER_BYTES + FRAME_BUFFER_OFFSET,
            .length = FRAME_BUFFER_BYTES - FRAME_BUFFER_OFFSET,
            .flags = VIRTQ_WRITE,
        };
        virtq_offer(queue, (uint16_t)i);
    }
    return NULL;
}

static const char *start(struct net_adapter *adapter, struct pci_function *pci,
                         interrupt_function received)
{
    uint64_t agreed;
    const char *wrong = virtio_start(&adapter->device, pci, VIRTIO_NET_F_MAC, &agreed);

    if (wrong == NULL && (agreed & VIRTIO_NET_F_MAC) == 0)
        wrong = "has no address";
    if (wrong == NULL)
        wrong = virtio_queue(&adapter->device, &adapter->receive, RECEIVE_QUEUE, NET_QUEUE,
                             interrupt_allocate(received, adapter));
    if (wrong == NULL)
        wrong = virtio_queue(&adapter->device, &adapter->transmit, TRANSMIT_QUEUE, NET_QUEUE, 0);
    if (wrong == NULL)
        wrong = fill_receive_ring(adapter);
    if (wrong != NULL)
        return wrong;
    for (uint32_t i = 0; i <= adapter->transmit.mask; i++)
        adapter->transmit.available->ring[i] = (uint16_t)i;
    virtio_go(&adapter->device);
    virtq_publish(&adapter->receive);
    return NULL;
}

unsigned virtio_net_init(interrupt_function received)
{
    struct pci_function *pci;

    for (unsigned i = 0; (pci = virtio_find(VIRTIO_NET, i)) != NULL; i++) {
        struct net_adapter *adapter = &net_adapters[adapter_count];
        const char *wrong;

        if (adapter_count == NET_ADAPTERS) {
            kprintf("net: more than %d adapters; the others are not used\n", NET_ADAPTERS);
            break;
        }
        wrong = start(adapter, pci, received);
        if (wrong != NULL) {
            kprintf("net: adapter %u:%u.%u %s\n", pci->bus, pci->device, pci->function, wrong);
            continue;
        }
        adapter->number = (uint8_t)adapter_count++;
        for (unsigned byte = 0; byte < NET_MAC; byte++)
            adapter->mac[byte] = adapter->device.config[byte];
    }
    return adapter_count;
}
