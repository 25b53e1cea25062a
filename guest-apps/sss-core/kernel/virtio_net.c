/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network adapters. A frame is one descriptor, the virtio header in front of it in the same buffer.
 * Receiving is driven by the interrupt; the end of a transmission interrupts nobody: sent frames
 * are collected when the next one is sent, or when the pool runs dry.
 *
 * No wake-up is lost: an MSI that comes while the handler runs is kept pending by the local APIC
 * and taken after it.
 */
#include "kernel.h"
#include "net.h"

enum { RECEIVE_QUEUE = 0, TRANSMIT_QUEUE = 1 };
#define VIRTIO_NET_F_MAC (1ull << 5)

struct net_adapter net_adapter_table[NET_ADAPTERS];
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

    if (virtq_has_used(queue))
        virtio_net_reclaim(adapter);
    /* The device finishes frames in any order it likes; the place must be free, not only one place.
     */
    if (adapter->sending[id] != NULL) {
        adapter->counters.refused++;
        return false;
    }
    frame->users++;
    adapter->sending[id] = frame;
    descriptor->address = (uint64_t)frame->bytes - NET_HEADER - DIRECT_MAP;
    descriptor->length = NET_HEADER + (uint32_t)frame->length;
    adapter->counters.frames_sent++;
    adapter->counters.bytes_sent += frame->length;
    queue->offered++; /* place k of the available ring always names descriptor k */
    virtq_publish(queue);
    return true;
}

void virtio_net_wait_sent(struct net_adapter *adapter, uint64_t limit_ns)
{
    uint64_t end = now_ns() + limit_ns;

    while (adapter->transmit.used->index != adapter->transmit.offered && now_ns() < end)
        compiler_barrier();
}

static void receive(unsigned number)
{
    struct net_adapter *adapter = &net_adapter_table[number];
    struct virtq *queue = &adapter->receive;

    while (virtq_has_used(queue)) {
        uint32_t length;
        uint16_t id = virtq_take(queue, &length);
        const uint8_t *buffer = adapter->buffers + (size_t)id * NET_BUFFER_BYTES +
                                NET_BUFFER_OFFSET;

        if (length >= NET_HEADER)
            net_received(number, buffer + NET_HEADER, length - NET_HEADER);
        virtq_offer(queue, id);
        if ((uint16_t)(queue->offered - queue->available->index) > queue->mask / 8)
            virtq_publish(queue); /* most of the ring is still the device's: no hurry */
    }
}

/* The handler of an interrupt is told nothing, so each adapter has one of its own. */
#define RECEIVER(number)                                                                           \
    static void receive_##number(void)                                                             \
    {                                                                                              \
        receive(number);                                                                           \
    }
RECEIVER(0)
RECEIVER(1)
RECEIVER(2)
RECEIVER(3)
RECEIVER(4)
RECEIVER(5)
RECEIVER(6)
RECEIVER(7)
static const interrupt_handler receivers[NET_ADAPTERS] = {
    receive_0, receive_1, receive_2, receive_3, receive_4, receive_5, receive_6, receive_7};

static const char *fill_receive_ring(struct net_adapter *adapter)
{
    struct virtq *queue = &adapter->receive;
    size_t buffers = (size_t)queue->mask + 1;

    adapter->buffers = pages_alloc(buffers * NET_BUFFER_BYTES / PAGE);
    if (adapter->buffers == NULL)
        return "gets no memory for its buffers";
    for (size_t i = 0; i < buffers; i++) {
        queue->descriptors[i] = (struct virtq_descriptor){
            .address = physical(adapter->buffers) + i * NET_BUFFER_BYTES + NET_BUFFER_OFFSET,
            .length = NET_BUFFER_BYTES - NET_BUFFER_OFFSET,
            .flags = VIRTQ_WRITE,
        };
        virtq_offer(queue, (uint16_t)i);
    }
    return NULL;
}

static const char *start(struct net_adapter *adapter, unsigned number, struct pci_function *pci)
{
    uint64_t agreed;
    const char *wrong = virtio_start(&adapter->device, pci, VIRTIO_NET_F_MAC, &agreed);

    if (wrong == NULL && (agreed & VIRTIO_NET_F_MAC) == 0)
        wrong = "has no address";
    if (wrong == NULL)
        wrong = virtio_queue(&adapter->device, &adapter->receive, RECEIVE_QUEUE, NET_QUEUE,
                             interrupt_allocate(receivers[number]));
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

unsigned virtio_net_init(void)
{
    struct pci_function *pci;

    for (unsigned i = 0; (pci = virtio_find(VIRTIO_NET, i)) != NULL; i++) {
        struct net_adapter *adapter = &net_adapter_table[adapter_count];
        const char *wrong;
        uint8_t mac[NET_MAC];

        if (adapter_count == NET_ADAPTERS) {
            kprintf("net: more than %d adapters; the others are not used\n", NET_ADAPTERS);
            break;
        }
        wrong = start(adapter, adapter_count, pci);
        if (wrong != NULL) {
            kprintf("net: adapter %u:%u.%u %s\n", pci->bus, pci->device, pci->function, wrong);
            continue;
        }
        for (unsigned byte = 0; byte < NET_MAC; byte++)
            mac[byte] = adapter->device.config[byte];
        net_set_mac(adapter_count++, mac);
    }
    return adapter_count;
}
