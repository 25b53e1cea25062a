/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The top of the receiving side: it names the protocols, and none of them names it. A switch, not a
 * table of registered functions: each frame of a remote call takes this way.
 */
#include "ethernet.h"

#include "net.h"
#include "node.h"
#include "sockets.h"
#include "vmmc.h"

#define BIG16(value) ((uint16_t)((value) >> 8 | ((value)&0xff) << 8))
#define MAC_MASK     0xffffffffffffull

static uint64_t load64(const uint8_t *bytes)
{
    uint64_t word;

    __builtin_memcpy(&word, bytes, sizeof(word));
    return word;
}

/* Adapters hear everything: segments deliver frames for other stations, and some deliver what this
 * node has sent. */
static bool is_foreign(const struct net_adapter *adapter, const uint8_t *frame)
{
    return ((frame[0] & 1) == 0 && (load64(frame) & MAC_MASK) != adapter->mac_word) ||
           load64(frame + NET_MAC - 2) >> 16 == adapter->mac_word;
}

static void deliver(struct net_adapter *adapter, const uint8_t *frame, size_t length)
{
    uint16_t type;

    adapter->counters.frames_received++;
    adapter->counters.bytes_received += length;
    if (length < ETHERNET_HEADER) {
        adapter->counters.malformed++;
        return;
    }
    __builtin_memcpy(&type, frame + ETHERNET_TYPE_AT, sizeof(type));
    /* MBCF looks at both addresses itself, for it knows its nodes by them. */
    if (type == BIG16(TYPE_MBCF) && (load64(frame) & MAC_MASK) == adapter->mac_word &&
        adapter->number == NODE_ADAPTER)
        node_received(frame, length);
    else if (is_foreign(adapter, frame))
        adapter->counters.foreign++;
    else if (type == BIG16(TYPE_IPV4) || type == BIG16(TYPE_ARP))
        sockets_received(adapter->number, frame, length);
    else if (type == BIG16(TYPE_CONTROL) && vmmc_received(frame, length)) {
        adapter->counters.frames_received--; /* no segment has seen it */
        adapter->counters.bytes_received -= length;
    } else
        adapter->counters.unknown++;
}

void ethernet_received(void *argument)
{
    struct net_adapter *adapter = argument;

    while (virtq_has_used(&adapter->receive)) {
        uint16_t id;
        size_t length;
        const uint8_t *frame = virtio_net_take(adapter, &id, &length);

        deliver(adapter, frame, length);
        virtio_net_give_back(adapter, id);
    }
}
