/* SPDX-License-Identifier: Apache-2.0 */
#include "port.h"

#include <string.h>

#include "hooks.h"
#include "kernel/net.h"
#include "kernel/panic.h"
#include "kernel/timer.h"
#include "lwip/etharp.h"
#include "lwip/init.h"
#include "lwip/ip4_frag.h"
#include "lwip/netif.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/prot/etharp.h"
#include "lwip/sys.h"
#include "netif/ethernet.h"

enum {
    ADAPTERS = 8,
    NS_PER_MS = 1000000,
    ETHERNET_LEAST = 60, /* bytes without FCS, IEEE 802.3 clause 4 */
    /* seconds: longer than lwIP keeps an entry that was learnt (ARP_MAXAGE) */
    DYNAMIC_ARP_TICKS = 320,
    REASSEMBLY_TICKS = IP_REASS_MAXAGE + 2,
    ISN_NS = 4000, /* RFC 6528: the clock of initial sequence numbers */
};

/* A periodic duty of lwIP that is armed only while there is something to do. */
struct duty {
    struct timer timer;
    uint64_t period_ns;
    void (*tick)(void);
    bool (*needed)(void);
    unsigned ticks_left; /* for those that cannot be asked: as long as what caused them can live */
};

static struct netif interfaces[ADAPTERS];
static uint64_t random_state = 0x9e3779b97f4a7c15u;

/* ---- what lwIP asks of its port ---- */

uint32_t sys_now(void)
{
    return (uint32_t)(now_ns() / NS_PER_MS);
}

/* splitmix64: for ports and sequence numbers, seeded by the node's addresses so that a run repeats.
 */
uint32_t port_random(void)
{
    uint64_t mixed = random_state += 0x9e3779b97f4a7c15u;

    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(mixed ^ (mixed >> 31));
}

void port_failed(const char *what)
{
    panic("lwIP: %s", what);
}

u32_t port_initial_sequence(const ip_addr_t *local, u16_t local_port, const ip_addr_t *remote,
                            u16_t remote_port)
{
    static uint32_t secret;
    uint64_t mixed;

    if (secret == 0)
        secret = port_random() | 1;
    mixed = ((uint64_t)local->addr << 32 | remote->addr) ^ secret;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed ^= (uint64_t)local_port << 16 | remote_port;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return (u32_t)(now_ns() / ISN_NS) + (u32_t)(mixed >> 32);
}

u32_t *port_segment_out(const struct tcp_hdr *header, const struct tcp_pcb *pcb, u32_t *options)
{
    if (pcb != NULL && TCP_SEQ_LT(lwip_ntohl(header->seqno), pcb->snd_nxt))
        sockets_segment_again(pcb);
    return options;
}

/*
 * Eight bytes at a time with the carries added in: ones' complement addition does not mind the
 * width (RFC 1071 section 2). Memory that starts at an odd address needs nothing special, as the
 * sum is of the bytes' places in the data.
 */
u16_t port_checksum(const void *data, int length)
{
    const uint8_t *bytes = data;
    unsigned left = (unsigned)length;
    uint64_t sum = 0;
    uint64_t word;

    for (; left >= 8; bytes += 8, left -= 8) {
        memcpy(&word, bytes, 8);
        sum += word;
        sum += sum < word; /* the carry */
    }
    if (left > 0) {
        word = 0;
        for (unsigned i = 0; i < left; i++)
            word |= (uint64_t)bytes[i] << (8 * i);
        sum += word;
        sum += sum < word;
    }
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (u16_t)sum;
}

/* ---- duties ---- */

/*
 * A connection that is open, has sent nothing that is unacknowledged, and holds no acknowledgement
 * back wants no time: an idle node has no timer.
 */
static bool tcp_needed(void)
{
    if (tcp_tw_pcbs != NULL)
        return true;
    for (const struct tcp_pcb *pcb = tcp_active_pcbs; pcb != NULL; pcb = pcb->next)
        if ((pcb->state != ESTABLISHED && pcb->state != CLOSE_WAIT) || pcb->unsent != NULL ||
            pcb->unacked != NULL || pcb->ooseq != NULL || pcb->refused_data != NULL ||
            pcb->persist_backoff != 0 ||
            (pcb->flags & (TF_ACK_DELAY | TF_ACK_NOW | TF_FIN | TF_CLOSEPEND)) != 0)
            return true;
    return false;
}

static void expired(struct timer *timer);

static struct duty tcp_duty = {
    .timer = {.expired = expired, .context = &tcp_duty},
    .period_ns = (uint64_t)TCP_TMR_INTERVAL * NS_PER_MS,
    .tick = tcp_tmr,
    .needed = tcp_needed,
};
static struct duty arp_duty = {
    .timer = {.expired = expired, .context = &arp_duty},
    .period_ns = (uint64_t)ARP_TMR_INTERVAL * NS_PER_MS,
    .tick = etharp_tmr,
};
static struct duty reassembly_duty = {
    .timer = {.expired = expired, .context = &reassembly_duty},
    .period_ns = (uint64_t)IP_TMR_INTERVAL * NS_PER_MS,
    .tick = ip_reass_tmr,
};

static void duty_arm(struct duty *duty)
{
    if (!duty->timer.armed && (duty->ticks_left > 0 || (duty->needed != NULL && duty->needed())))
        timer_set(&duty->timer, now_ns() + duty->period_ns);
}

static void expired(struct timer *timer)
{
    struct duty *duty = timer->context;

    if (duty->ticks_left > 0)
        duty->ticks_left--;
    duty->tick();
    port_settle();
}

static bool deliver_to_self(void)
{
    const struct netif *interface;

    NETIF_FOREACH(interface)
    {
        if (interface->loop_first != NULL) {
            netif_poll_all();
            return true;
        }
    }
    return false;
}

void port_settle(void)
{
    while (deliver_to_self())
        ;
    duty_arm(&tcp_duty);
    duty_arm(&arp_duty);
    duty_arm(&reassembly_duty);
}

/* ---- frames ---- */

static err_t transmit(struct netif *interface, struct pbuf *packet)
{
    size_t length = (size_t)packet->tot_len - ETH_PAD_SIZE;
    struct sss_frame *frame;
    bool taken;

    if (length > SSS_FRAME_BYTES)
        return ERR_BUF;
    frame = frame_get();
    if (frame == NULL)
        return ERR_MEM;
    pbuf_copy_partial(packet, frame->bytes, (u16_t)length, ETH_PAD_SIZE);
    if (length < ETHERNET_LEAST) {
        memset(frame->bytes + length, 0, ETHERNET_LEAST - length);
        length = ETHERNET_LEAST;
    }
    frame->length = (uint16_t)length;
    taken = net_transmit((unsigned)(interface - interfaces), frame);
    frame_put(frame);
    return taken ? ERR_OK : ERR_IF;
}

/* An ARP packet of a node that is not a static neighbour makes an entry that grows old. */
static err_t transmit_noting_arp(struct netif *interface, struct pbuf *packet)
{
    const struct eth_hdr *header = packet->payload;

    if (header->type == PP_HTONS(ETHTYPE_ARP))
        arp_duty.ticks_left = DYNAMIC_ARP_TICKS;
    return transmit(interface, packet);
}

void port_received(unsigned adapter, const uint8_t *frame, size_t length)
{
    enum { IP_OFFSET_FIELD = SIZEOF_ETH_HDR - ETH_PAD_SIZE + 6 };
    struct netif *interface = &interfaces[adapter];
    struct pbuf *packet;

    if (adapter >= ADAPTERS || interface->input == NULL || length > SSS_FRAME_BYTES ||
        length < ETHERNET_LEAST / 2)
        return;
    packet = pbuf_alloc(PBUF_RAW, (u16_t)(length + ETH_PAD_SIZE), PBUF_POOL);
    if (packet == NULL)
        return;
    /* PBUF_POOL_BUFSIZE holds any frame */
    memcpy((uint8_t *)packet->payload + ETH_PAD_SIZE, frame, length);
    if (frame[12] == 0x08 && frame[13] == 0x00 &&
        ((frame[IP_OFFSET_FIELD] & 0x3f) | frame[IP_OFFSET_FIELD + 1]) != 0)
        reassembly_duty.ticks_left = REASSEMBLY_TICKS;
    if (interface->input(packet, interface) != ERR_OK)
        pbuf_free(packet);
    port_settle();
}

/* ---- interfaces ---- */

static err_t interface_init(struct netif *interface)
{
    memcpy(interface->hwaddr, net_mac((unsigned)(interface - interfaces)), ETH_HWADDR_LEN);
    interface->hwaddr_len = ETH_HWADDR_LEN;
    interface->name[0] = 'e';
    interface->name[1] = 'n';
    interface->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET |
                       NETIF_FLAG_LINK_UP;
    interface->output = etharp_output;
    interface->linkoutput = transmit_noting_arp;
    return ERR_OK;
}

void port_init(void)
{
    lwip_init();
}

void port_interface(unsigned adapter, uint32_t address, uint32_t netmask, uint16_t mtu)
{
    struct netif *interface = &interfaces[adapter];
    ip4_addr_t ip = {lwip_htonl(address)};
    ip4_addr_t mask = {lwip_htonl(netmask)};
    ip4_addr_t none = {0};

    if (adapter >= ADAPTERS)
        return;
    random_state ^= (uint64_t)address << (8 * adapter);
    if (interface->input != NULL)
        netif_remove(interface);
    netif_add(interface, &ip, &mask, &none, NULL, interface_init, ethernet_input);
    interface->mtu = mtu;
    /* A node that comes up sends a gratuitous ARP, but nothing may be on the wire that is not of
     * the experiment. */
    interface->flags &= (u8_t)~NETIF_FLAG_ETHARP;
    netif_set_up(interface);
    interface->flags |= NETIF_FLAG_ETHARP;
    port_settle();
}

bool port_neighbour(uint32_t address, const uint8_t mac[6])
{
    ip4_addr_t ip = {lwip_htonl(address)};
    struct eth_addr hardware;

    memcpy(hardware.addr, mac, sizeof(hardware.addr));
    return etharp_add_static_entry(&ip, &hardware) == ERR_OK;
}

bool port_is_own(uint32_t address)
{
    const struct netif *interface;

    if (address >> 24 == 127)
        return true;
    NETIF_FOREACH(interface)
    {
        if (netif_ip4_addr(interface)->addr == lwip_htonl(address))
            return true;
    }
    return false;
}

static void abandon_all(struct tcp_pcb **list)
{
    while (*list != NULL)
        tcp_abandon(*list, 0);
}

static void duty_stop(struct duty *duty)
{
    timer_cancel(&duty->timer);
    duty->ticks_left = 0;
}

void port_restart(void)
{
    abandon_all(&tcp_active_pcbs);
    abandon_all(&tcp_tw_pcbs);
    for (unsigned tick = 0; tick < REASSEMBLY_TICKS; tick++)
        ip_reass_tmr();
    duty_stop(&tcp_duty);
    duty_stop(&arp_duty);
    duty_stop(&reassembly_duty);
}
