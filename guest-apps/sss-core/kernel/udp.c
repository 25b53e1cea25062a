/* SPDX-License-Identifier: Apache-2.0 */
#include "udp.h"

#include "lwip/udp.h"
#include "memory.h"
#include "net.h"
#include "socket.h"
#include "user.h"

enum {
    DATAGRAMS = 256,      /* of all sockets */
    QUEUE_BYTES = 262144, /* of one socket: two datagrams of the largest size and some */
    ICMP_UNREACHABLE = 3, /* RFC 792 */
    ICMP_PORT = 3,
};

static struct datagram datagrams[DATAGRAMS];
static struct datagram *free_datagrams;

static void datagram_free(struct datagram *datagram)
{
    pbuf_free(datagram->data);
    datagram->next = free_datagrams;
    free_datagrams = datagram;
}

static struct datagram *datagram_take(struct socket *socket)
{
    struct datagram *datagram = socket->first_datagram;

    socket->first_datagram = datagram->next;
    socket->readable--;
    socket->queued_bytes -= datagram->data->tot_len;
    return datagram;
}

static void udp_received(void *context, struct udp_pcb *pcb, struct pbuf *data,
                         const ip_addr_t *address, u16_t port)
{
    struct socket *socket = context;
    struct datagram *datagram = free_datagrams;
    uint32_t from = lwip_ntohl(address->addr);

    (void)pcb;
    if (datagram == NULL || socket->queued_bytes + data->tot_len > QUEUE_BYTES) {
        pbuf_free(data);
        return;
    }
    free_datagrams = datagram->next;
    *datagram = (struct datagram){
        .data = data,
        .from = {.address = from, .port = port, .task = socket_peer_task(SSS_UDP, from, port, 0)}};
    if (socket->first_datagram == NULL)
        socket->first_datagram = datagram;
    else
        socket->last_datagram->next = datagram;
    socket->last_datagram = datagram;
    socket->readable++;
    socket->queued_bytes += data->tot_len;
    socket_changed(socket);
}

long socket_udp_open(struct socket *socket)
{
    socket->udp = udp_new();
    if (socket->udp == NULL)
        return -SSS_ENOMEM;
    udp_recv(socket->udp, udp_received, socket);
    socket->phase = SSS_OPEN;
    return 0;
}

long socket_send_to(struct socket *socket, const uint64_t arguments[6])
{
    uint64_t data = arguments[1], length = arguments[2], address = arguments[3];
    uint64_t port = arguments[4];
    ip_addr_t to = {lwip_htonl((uint32_t)address)};
    struct pbuf *packet;
    err_t error;

    if (length > UDP_LARGEST)
        return -SSS_EMSGSIZE;
    if (port == 0 || port > 0xffff || address > UINT32_MAX)
        return -SSS_EINVAL;
    packet = pbuf_alloc(PBUF_TRANSPORT, (u16_t)length, PBUF_RAM);
    if (packet == NULL)
        return -SSS_ENOMEM;
    if (!user_read(packet->payload, data, length)) {
        pbuf_free(packet);
        return -SSS_EFAULT;
    }
    error = udp_sendto(socket->udp, packet, &to, (u16_t)port);
    pbuf_free(packet);
    return error == ERR_OK ? (long)length : socket_error(error);
}

static bool write_chain(uint64_t to, const struct pbuf *data)
{
    for (; data != NULL; to += data->len, data = data->next)
        if (!user_write(to, data->payload, data->len))
            return false;
    return true;
}

long socket_receive_from(struct socket *socket, const uint64_t arguments[6])
{
    uint64_t data = arguments[1], size = arguments[2], peer = arguments[3];
    struct datagram *datagram = socket->first_datagram;
    long length;

    if (socket->error != 0) {
        length = -socket->error;
        socket->error = 0;
        return length;
    }
    if (datagram == NULL)
        return -SSS_EAGAIN;
    length = datagram->data->tot_len;
    if ((uint64_t)length > size)
        length = -SSS_EMSGSIZE; /* it is lost: half a message is of no use */
    else if (!write_chain(data, datagram->data) ||
             (peer != 0 && !user_write(peer, &datagram->from, sizeof(datagram->from))))
        return -SSS_EFAULT;
    datagram_free(datagram_take(socket));
    return length;
}

/* RFC 792: the answer holds the IP header and the first 8 bytes of the datagram that was sent. */
void socket_note_unreachable(const uint8_t *frame)
{
    const uint8_t *ip = frame + ETHERNET_HEADER;
    const uint8_t *icmp = ip + IP_HEADER;
    const uint8_t *inner = icmp + ICMP_HEADER;
    uint16_t port;

    if (ip[0] != 0x45 || icmp[0] != ICMP_UNREACHABLE || icmp[1] != ICMP_PORT || inner[0] != 0x45 ||
        inner[9] != IP_PROTO_UDP)
        return;
    port = (uint16_t)(inner[IP_HEADER] << 8 | inner[IP_HEADER + 1]);
    for (struct socket *socket = socket_table; socket < socket_table + SSS_SOCKETS; socket++) {
        if (socket->owner == NULL || socket->protocol != SSS_UDP || socket->udp->local_port != port)
            continue;
        socket->error = SSS_ECONNREFUSED;
        socket_changed(socket);
    }
}

void socket_udp_close(struct socket *socket)
{
    if (socket->udp != NULL)
        udp_remove(socket->udp);
    while (socket->first_datagram != NULL)
        datagram_free(datagram_take(socket));
}

void socket_udp_init(void)
{
    for (size_t i = 0; i < DATAGRAMS; i++) {
        datagrams[i].next = free_datagrams;
        free_datagrams = &datagrams[i];
    }
}
