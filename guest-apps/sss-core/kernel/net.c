/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: their pool, where received ones go, and Sundial's control frames. */
#include "net.h"

#include "kernel.h"

#define BIG16(value) ((uint16_t)((value) >> 8 | ((value)&0xff) << 8))
enum {
    ETHERNET_HEADER = 14,
    TYPE_AT = 12,
    TYPE_IPV4 = 0x0800,
    TYPE_ARP = 0x0806,
    TYPE_CONTROL = 0x88b5,
    TYPE_MBCF = 0x88b6,
    MBCF_ADAPTER = 0,
};
#define MAC_MASK 0xffffffffffffull

static struct sss_frame frames[SSS_FRAMES];
static struct sss_frame *free_frames;
static unsigned free_count;
static unsigned adapters;

/* ---- the pool ---- */
struct sss_frame *frame_get(void)
{
    struct sss_frame *frame;

    if (free_frames == NULL) /* those that were sent meanwhile have not been collected */
        for (unsigned i = 0; i < adapters; i++)
            virtio_net_reclaim(&net_adapter_table[i]);
    frame = sss_frame_take(&free_frames);
    if (frame != NULL)
        free_count--;
    return frame;
}

void frame_put(struct sss_frame *frame)
{
    if (sss_frame_release(&free_frames, frame))
        free_count++;
}

unsigned net_frames_free(void)
{
    return free_count;
}

static void frames_init(void)
{
    uint8_t *memory = pages_alloc((size_t)SSS_FRAMES * NET_BUFFER_BYTES / PAGE);

    if (memory == NULL)
        panic("no memory for the pool of frames");
    for (unsigned i = 0; i < SSS_FRAMES; i++) {
        /* Zeroed pages: the virtio header is there for good. */
        frames[i].bytes = memory + (size_t)i * NET_BUFFER_BYTES + NET_BUFFER_OFFSET + NET_HEADER;
        frames[i].users = 1;
        frame_put(&frames[i]);
    }
}

void net_reclaim_frames(void)
{
    free_frames = NULL;
    free_count = 0;
    for (unsigned i = 0; i < SSS_FRAMES; i++)
        frames[i].users = 0;
    for (unsigned i = 0; i < adapters; i++)
        for (unsigned place = 0; place < NET_QUEUE; place++)
            if (net_adapter_table[i].sending[place] != NULL)
                net_adapter_table[i].sending[place]->users++;
    for (unsigned i = 0; i < SSS_FRAMES; i++) {
        if (frames[i].users == 0) {
            frames[i].users = 1;
            frame_put(&frames[i]);
        }
    }
}

/* ---- adapters ---- */
void net_init(void)
{
    frames_init();
    adapters = virtio_net_init();
}

unsigned net_adapters(void)
{
    return adapters;
}

const uint8_t *net_mac(unsigned adapter)
{
    return net_adapter_table[adapter].mac;
}

void net_set_mac(unsigned adapter, const uint8_t mac[6])
{
    struct net_adapter *own = &net_adapter_table[adapter];

    own->mac_word = 0;
    for (unsigned i = 0; i < NET_MAC; i++) {
        own->mac[i] = mac[i];
        own->mac_word |= (uint64_t)mac[i] << 8 * i;
    }
}

const struct net_counters *net_counters(unsigned adapter)
{
    return &net_adapter_table[adapter].counters;
}

bool net_transmit(unsigned adapter, struct sss_frame *frame)
{
    return adapter < adapters && virtio_net_send(&net_adapter_table[adapter], frame);
}

void net_collect(unsigned adapter)
{
    if (adapter < adapters && virtq_has_used(&net_adapter_table[adapter].transmit))
        virtio_net_reclaim(&net_adapter_table[adapter]);
}

static uint64_t load64(const uint8_t *bytes)
{
    uint64_t word;

    __builtin_memcpy(&word, bytes, sizeof(word));
    return word;
}

void net_received(unsigned adapter, const uint8_t *frame, size_t length)
{
    struct net_adapter *own = &net_adapter_table[adapter];
    uint16_t type;

    own->counters.frames_received++;
    own->counters.bytes_received += length;
    if (length < ETHERNET_HEADER) {
        own->counters.malformed++;
        return;
    }
    /* The adapter hears everything; segments deliver what is for others, and some deliver what we
     * sent ourselves. */
    if (((frame[0] & 1) == 0 && (load64(frame) & MAC_MASK) != own->mac_word) ||
        load64(frame + 4) >> 16 == own->mac_word) {
        own->counters.foreign++;
        return;
    }
    __builtin_memcpy(&type, frame + TYPE_AT, sizeof(type));
    if (type == BIG16(TYPE_MBCF) && adapter == MBCF_ADAPTER)
        node_received(frame, length);
    else if (type == BIG16(TYPE_IPV4) || type == BIG16(TYPE_ARP))
        sockets_received(adapter, frame, length);
    else
        own->counters.unknown++;
}

/* ---- control frames: ARCHITECTURE.md, "Fabric configuration" ---- */
bool net_send_control(const void *payload, size_t length)
{
    struct sss_frame *frame = adapters > 0 ? frame_get() : NULL;
    bool sent;

    if (frame == NULL)
        return false;
    __builtin_memset(frame->bytes, 0xff, NET_MAC);
    __builtin_memcpy(frame->bytes + NET_MAC, net_mac(0), NET_MAC);
    frame->bytes[TYPE_AT] = TYPE_CONTROL >> 8;
    frame->bytes[TYPE_AT + 1] = TYPE_CONTROL & 0xff;
    __builtin_memcpy(frame->bytes + ETHERNET_HEADER, payload, length);
    /* Not padded: the control frame of the Linux guest is as long as what it says. */
    frame->length = (uint16_t)(ETHERNET_HEADER + length);
    sent = net_transmit(0, frame);
    frame_put(frame);
    return sent;
}
