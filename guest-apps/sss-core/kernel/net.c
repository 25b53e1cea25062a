/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

static unsigned adapter_count;

unsigned net_adapter_count(void)
{
    return adapter_count;
}

const uint8_t *net_mac(unsigned adapter)
{
    return net_adapters[adapter].mac;
}

void net_set_mac(unsigned number, const uint8_t mac[NET_MAC])
{
    struct net_adapter *adapter = &net_adapters[number];

    adapter->mac_word = 0;
    for (unsigned i = 0; i < NET_MAC; i++) {
        adapter->mac[i] = mac[i];
        adapter->mac_word |= (uint64_t)mac[i] << 8 * i;
    }
}

const struct net_counters *net_counters(unsigned adapter)
{
    return &net_adapters[adapter].counters;
}

bool net_transmit(unsigned adapter, struct sss_frame *frame)
{
    return adapter < adapter_count && virtio_net_send(&net_adapters[adapter], frame);
}

void net_collect(unsigned adapter)
{
    if (adapter < adapter_count && virtq_has_used(&net_adapters[adapter].transmit))
        virtio_net_reclaim(&net_adapters[adapter]);
}

static void collect_all(void)
{
    for (unsigned i = 0; i < adapter_count; i++)
        virtio_net_reclaim(&net_adapters[i]);
}

void net_reclaim_frames(void)
{
    frames_forget_users();
    for (unsigned i = 0; i < adapter_count; i++)
        for (unsigned place = 0; place < NET_QUEUE; place++)
            if (net_adapters[i].sending[place] != NULL)
                net_adapters[i].sending[place]->users++;
    frames_free_unused();
}

void net_init(interrupt_function received)
{
    frames_init();
    frames_on_empty(collect_all);
    adapter_count = virtio_net_init(received);
    for (unsigned i = 0; i < adapter_count; i++)
        net_set_mac(i, net_mac(i));
}

/* harness/schemas/README.md, "Fabric configuration" */
bool net_send_control(const void *payload, size_t length)
{
    struct sss_frame *frame = adapter_count > 0 ? frame_get() : NULL;
    bool sent;

    if (frame == NULL)
        return false;
    __builtin_memset(frame->bytes, 0xff, NET_MAC);
    __builtin_memcpy(frame->bytes + NET_MAC, net_mac(0), NET_MAC);
    frame->bytes[ETHERNET_TYPE_AT] = TYPE_CONTROL >> 8;
    frame->bytes[ETHERNET_TYPE_AT + 1] = TYPE_CONTROL & 0xff;
    __builtin_memcpy(frame->bytes + ETHERNET_HEADER, payload, length);
    /* Not padded, as in the Linux guest. */
    frame->length = (uint16_t)(ETHERNET_HEADER + length);
    sent = net_transmit(0, frame);
    frame_put(frame);
    return sent;
}
