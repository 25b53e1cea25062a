/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of UDP and TCP over lwIP's raw interface. No call sleeps: where nothing can be
 * done it says EAGAIN, and the word that the task has named for the socket is incremented as soon
 * as that changes. lwIP calls back in the receive and timer interrupts and, for messages from a
 * task of this node, in system calls; all of it runs with interrupts off.
 */
#include <string.h>

#include "kernel/kernel.h"
#include "lwip/port.h"

#include "lwip/priv/tcp_priv.h"
#include "lwip/tcp.h"
#include "lwip/udp.h"

enum {
    UDP_LARGEST = 65507,  /* 65535 - 20 - 8 */
    DATAGRAMS = 256,      /* of all sockets */
    QUEUE_BYTES = 262144, /* datagrams of one socket: two of the largest size and some */
    RECVED_MOST = 0xffff, /* tcp_recved takes 16 bits */
    ETHERNET_HEADER = 14,
    IP_HEADER = 20,
    ICMP_HEADER = 8,
    ICMP_UNREACHABLE = 3, /* RFC 792 */
    ICMP_PORT = 3,
};

struct datagram {
    struct datagram *next;
    struct pbuf *data;
    struct sss_peer from;
};

struct socket {
    struct task *owner; /* NULL: free */
    /* the owner's word; 0: none yet (a connection that has not been accepted) */
    uint64_t counter;
    int protocol;
    uint32_t phase; /* enum sss_socket_phase */
    /* enum sss_error: of a failed connection; of UDP: to be told by the next receive */
    int32_t error;
    union {
        struct udp_pcb *udp;
        struct tcp_pcb *tcp; /* NULL once lwIP has given it up */
    };
    struct sss_peer peer;
    uint32_t readable; /* as in sss_socket_state */
    uint32_t queued_bytes;
    struct datagram *first_datagram;
    struct datagram *last_datagram;
    struct pbuf *first_data; /* of a stream, linked by next; tot_len is not kept up */
    struct pbuf *last_data;
    uint32_t data_offset; /* taken of first_data */
    bool starved;         /* the owner wanted to send more than there was room for */
    uint32_t retransmits;
    struct socket *listener;   /* of a connection that waits to be accepted */
    struct socket *next_ready; /* such connections of one listener, oldest first */
    struct socket *first_ready;
    uint32_t backlog;
};

static struct socket sockets[SSS_SOCKETS];
static struct datagram datagrams[DATAGRAMS];
static struct datagram *free_datagrams;
static unsigned starved_sockets;

/* ---- the table ---- */

static struct socket *socket_new(struct task *owner, int protocol)
{
    for (struct socket *socket = sockets; socket < sockets + SSS_SOCKETS; socket++) {
        if (socket->owner != NULL)
            continue;
        *socket = (struct socket){.owner = owner, .protocol = protocol};
        return socket;
    }
    return NULL;
}

/* The caller's own socket of that protocol (0: any), or NULL. */
static struct socket *socket_of(uint64_t number, int protocol)
{
    struct socket *socket = number < SSS_SOCKETS ? &sockets[number] : NULL;

    if (socket == NULL || socket->owner != task_current() ||
        (protocol != 0 && socket->protocol != protocol) || socket->listener != NULL)
        return NULL;
    return socket;
}

static long socket_number(const struct socket *socket)
{
    return socket - sockets;
}

static void changed(struct socket *socket)
{
    uint32_t *word;
    int why;

    if (socket->counter == 0)
        return;
    word = task_page(socket->owner, socket->counter, true, &why);
    if (word == NULL)
        return; /* the owner has unmapped it: its loss */
    ++*word;
    task_memory_changed(socket->owner);
}

static bool counter_is_good(uint64_t address)
{
    uint32_t word;

    return address % sizeof(word) == 0 && address != 0 && user_read(&word, address, sizeof(word)) &&
           user_write(address, &word, sizeof(word));
}

static long error_of(err_t error)
{
    switch (error) {
    case ERR_OK:
        return 0;
    case ERR_MEM:
        return -SSS_ENOMEM;
    case ERR_USE:
        return -SSS_EADDRINUSE;
    case ERR_RTE:
    case ERR_IF:
        return -SSS_EIO;
    case ERR_ISCONN:
    case ERR_VAL:
    case ERR_ARG:
        return -SSS_EINVAL;
    case ERR_RST:
        return -SSS_ECONNRESET;
    case ERR_CLSD:
    case ERR_CONN:
        return -SSS_ENOTCONN;
    case ERR_ABRT:
    case ERR_TIMEOUT:
        return -SSS_ETIMEDOUT;
    default:
        return -SSS_EIO;
    }
}

/* The task of this node that has the other end, or 0. */
static uint16_t task_with_port(int protocol, uint32_t address, uint16_t port, uint16_t connected_to)
{
    if (!port_is_own(address))
        return 0;
    for (const struct socket *socket = sockets; socket < sockets + SSS_SOCKETS; socket++) {
        if (socket->owner == NULL || socket->protocol != protocol || socket->udp == NULL)
            continue;
        if (protocol == SSS_UDP
                ? socket->udp->local_port == port
                : socket->phase != SSS_LISTENING && socket->tcp->local_port == port &&
                      socket->tcp->remote_port == connected_to)
            return task_id(socket->owner);
    }
    return 0;
}

/* ---- UDP ---- */

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
        .from = {.address = from, .port = port, .task = task_with_port(SSS_UDP, from, port, 0)}};
    if (socket->first_datagram == NULL)
        socket->first_datagram = datagram;
    else
        socket->last_datagram->next = datagram;
    socket->last_datagram = datagram;
    socket->readable++;
    socket->queued_bytes += data->tot_len;
    changed(socket);
}

static long udp_open(struct socket *socket)
{
    socket->udp = udp_new();
    if (socket->udp == NULL)
        return -SSS_ENOMEM;
    udp_recv(socket->udp, udp_received, socket);
    socket->phase = SSS_OPEN;
    return 0;
}

static long send_to(struct socket *socket, uint64_t data, uint64_t length, uint64_t address,
                    uint64_t port)
{
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
    return error == ERR_OK ? (long)length : error_of(error);
}

static bool write_chain(uint64_t to, const struct pbuf *data)
{
    for (; data != NULL; to += data->len, data = data->next)
        if (!user_write(to, data->payload, data->len))
            return false;
    return true;
}

static long receive_from(struct socket *socket, uint64_t data, uint64_t size, uint64_t peer)
{
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
        length = -SSS_EMSGSIZE; /* it is lost: nobody asked for half a message */
    else if (!write_chain(data, datagram->data) ||
             (peer != 0 && !user_write(peer, &datagram->from, sizeof(datagram->from))))
        return -SSS_EFAULT;
    datagram_free(datagram_take(socket));
    return length;
}

/*
 * Port unreachable for a datagram of ours (RFC 792: the answer holds its IP header and first 8
 * bytes): the socket's next receive says ECONNREFUSED. lwIP itself drops these.
 */
static void note_unreachable(const uint8_t *frame, size_t length)
{
    const uint8_t *ip = frame + ETHERNET_HEADER;
    const uint8_t *icmp = ip + IP_HEADER;
    const uint8_t *inner = icmp + ICMP_HEADER;
    uint16_t port;

    if (length < ETHERNET_HEADER + IP_HEADER + ICMP_HEADER + IP_HEADER + 8 || ip[0] != 0x45 ||
        ip[9] != IP_PROTO_ICMP || icmp[0] != ICMP_UNREACHABLE || icmp[1] != ICMP_PORT ||
        inner[0] != 0x45 || inner[9] != IP_PROTO_UDP)
        return;
    port = (uint16_t)(inner[IP_HEADER] << 8 | inner[IP_HEADER + 1]);
    for (struct socket *socket = sockets; socket < sockets + SSS_SOCKETS; socket++) {
        if (socket->owner == NULL || socket->protocol != SSS_UDP || socket->udp->local_port != port)
            continue;
        socket->error = SSS_ECONNREFUSED;
        changed(socket);
    }
}

/* ---- TCP ---- */

static err_t tcp_received(void *context, struct tcp_pcb *pcb, struct pbuf *data, err_t error)
{
    struct socket *socket = context;

    (void)pcb;
    (void)error;
    if (data == NULL) {
        socket->phase = SSS_ENDED;
        changed(socket);
        return ERR_OK;
    }
    socket->readable += data->tot_len;
    if (socket->first_data == NULL)
        socket->first_data = data;
    else
        socket->last_data->next = data;
    while (data->next != NULL)
        data = data->next;
    socket->last_data = data;
    changed(socket);
    return ERR_OK;
}

static err_t tcp_was_sent(void *context, struct tcp_pcb *pcb, u16_t length)
{
    (void)context;
    (void)pcb;
    (void)length;
    if (starved_sockets == 0)
        return ERR_OK;
    /* Memory is shared by all connections, so room here may be room for another one. */
    starved_sockets = 0;
    for (struct socket *socket = sockets; socket < sockets + SSS_SOCKETS; socket++) {
        if (socket->owner == NULL || !socket->starved)
            continue;
        socket->starved = false;
        changed(socket);
    }
    return ERR_OK;
}

static void tcp_failed(void *context, err_t error)
{
    struct socket *socket = context;

    socket->error = error == ERR_RST && socket->phase == SSS_CONNECTING ? SSS_ECONNREFUSED
                                                                        : (int32_t)-error_of(error);
    socket->phase = SSS_FAILED;
    socket->tcp = NULL; /* lwIP has freed it */
    changed(socket);
}

static err_t tcp_has_connected(void *context, struct tcp_pcb *pcb, err_t error)
{
    struct socket *socket = context;

    (void)pcb;
    (void)error;
    socket->phase = SSS_OPEN;
    changed(socket);
    return ERR_OK;
}

/* Each message is sent when it is written: no waiting for the acknowledgement of the one before
 * (RFC 896). */
static void tcp_adopt(struct socket *socket, struct tcp_pcb *pcb)
{
    socket->tcp = pcb;
    tcp_arg(pcb, socket);
    tcp_nagle_disable(pcb);
    ip_set_option(pcb, SOF_REUSEADDR);
    tcp_recv(pcb, tcp_received);
    tcp_sent(pcb, tcp_was_sent);
    tcp_err(pcb, tcp_failed);
}

static long tcp_open(struct socket *socket)
{
    struct tcp_pcb *pcb = tcp_new();

    if (pcb == NULL)
        return -SSS_ENOMEM;
    tcp_adopt(socket, pcb);
    return 0;
}

static err_t tcp_has_accepted(void *context, struct tcp_pcb *pcb, err_t error)
{
    struct socket *listener = context;
    struct socket **place = &listener->first_ready;
    struct socket *socket;
    uint32_t address;

    if (error != ERR_OK || pcb == NULL || listener->readable >= listener->backlog)
        return ERR_MEM; /* lwIP resets it */
    socket = socket_new(listener->owner, SSS_TCP);
    if (socket == NULL)
        return ERR_MEM;
    tcp_adopt(socket, pcb);
    tcp_backlog_delayed(pcb);
    address = lwip_ntohl(pcb->remote_ip.addr);
    socket->phase = SSS_OPEN;
    socket->listener = listener;
    socket->peer = (struct sss_peer){
        .address = address,
        .port = pcb->remote_port,
        .task = task_with_port(SSS_TCP, address, pcb->remote_port, pcb->local_port),
    };
    while (*place != NULL)
        place = &(*place)->next_ready;
    *place = socket;
    listener->readable++;
    changed(listener);
    return ERR_OK;
}

static long connect_to(struct socket *socket, uint64_t address, uint64_t port)
{
    ip_addr_t to = {lwip_htonl((uint32_t)address)};
    long error;

    if (port == 0 || port > 0xffff || address == 0 || address > UINT32_MAX)
        return -SSS_EINVAL;
    if (socket->protocol == SSS_UDP) {
        error = error_of(udp_connect(socket->udp, &to, (u16_t)port));
    } else {
        if (socket->phase != SSS_CLOSED)
            return -SSS_EINVAL;
        error = error_of(tcp_connect(socket->tcp, &to, (u16_t)port, tcp_has_connected));
        if (error == 0)
            socket->phase = SSS_CONNECTING;
    }
    if (error == 0)
        socket->peer = (struct sss_peer){.address = (uint32_t)address, .port = (uint16_t)port};
    return error;
}

static long listen_on(struct socket *socket, uint64_t backlog)
{
    struct tcp_pcb *listening;
    err_t error;

    if (socket->phase != SSS_CLOSED || backlog == 0 || backlog > SSS_SOCKETS)
        return -SSS_EINVAL;
    listening = tcp_listen_with_backlog_and_err(socket->tcp, (u8_t)backlog, &error);
    if (listening == NULL)
        return error_of(error);
    socket->tcp = listening;
    socket->phase = SSS_LISTENING;
    socket->backlog = (uint32_t)backlog;
    tcp_arg(listening, socket);
    tcp_accept(listening, tcp_has_accepted);
    return 0;
}

static long accept_from(struct socket *listener, uint64_t counter, uint64_t peer)
{
    struct socket *socket = listener->first_ready;

    if (listener->phase != SSS_LISTENING)
        return -SSS_EINVAL;
    if (socket == NULL)
        return -SSS_EAGAIN;
    if (!counter_is_good(counter) ||
        (peer != 0 && !user_write(peer, &socket->peer, sizeof(socket->peer))))
        return -SSS_EFAULT;
    listener->first_ready = socket->next_ready;
    listener->readable--;
    socket->listener = NULL;
    socket->next_ready = NULL;
    socket->counter = counter;
    if (socket->tcp != NULL)
        tcp_backlog_accepted(socket->tcp);
    return socket_number(socket);
}

static long no_stream(const struct socket *socket)
{
    if (socket->phase == SSS_FAILED)
        return -socket->error;
    return socket->phase == SSS_CONNECTING ? -SSS_EAGAIN : -SSS_ENOTCONN;
}

/* Page by page, so that lwIP copies straight from the caller's memory into segments. */
static long send_stream(struct socket *socket, uint64_t data, uint64_t length)
{
    uint64_t taken = 0;
    uint64_t wanted;

    if ((socket->phase != SSS_OPEN && socket->phase != SSS_ENDED) || socket->tcp == NULL)
        return no_stream(socket);
    wanted = length < tcp_sndbuf(socket->tcp) ? length : tcp_sndbuf(socket->tcp);
    while (taken < wanted) {
        uint64_t part = PAGE - (data + taken) % PAGE;
        int why;
        const void *bytes = task_page(socket->owner, data + taken, false, &why);

        if (bytes == NULL)
            return taken > 0 ? (long)taken : -SSS_EFAULT;
        if (part > wanted - taken)
            part = wanted - taken;
        if (tcp_write(socket->tcp, bytes, (u16_t)part,
                      TCP_WRITE_FLAG_COPY | (taken + part < length ? TCP_WRITE_FLAG_MORE : 0)) !=
            ERR_OK)
            break;
        taken += part;
    }
    if (taken < length) {
        socket->starved = true;
        starved_sockets++;
    }
    if (taken > 0)
        tcp_output(socket->tcp);
    return taken > 0 || length == 0 ? (long)taken : -SSS_EAGAIN;
}

static void drop_first_data(struct socket *socket)
{
    struct pbuf *data = socket->first_data;

    socket->first_data = data->next;
    socket->data_offset = 0;
    data->next = NULL;
    pbuf_free(data);
}

/* The peer may send that much more. */
static void open_window(struct socket *socket, uint64_t bytes)
{
    while (socket->tcp != NULL && bytes > 0) {
        u16_t part = (u16_t)(bytes < RECVED_MOST ? bytes : RECVED_MOST);

        tcp_recved(socket->tcp, part);
        bytes -= part;
    }
}

static long receive_stream(struct socket *socket, uint64_t to, uint64_t size)
{
    uint64_t taken = 0;

    if (socket->first_data == NULL)
        return socket->phase == SSS_OPEN    ? -SSS_EAGAIN
               : socket->phase == SSS_ENDED ? 0
                                            : no_stream(socket);
    while (taken < size && socket->first_data != NULL) {
        const struct pbuf *data = socket->first_data;
        uint64_t part = data->len - socket->data_offset;

        if (part > size - taken)
            part = size - taken;
        if (!user_write(to + taken, (const uint8_t *)data->payload + socket->data_offset, part)) {
            if (taken == 0)
                return -SSS_EFAULT;
            break;
        }
        taken += part;
        socket->data_offset += (uint32_t)part;
        if (socket->data_offset == data->len)
            drop_first_data(socket);
    }
    socket->readable -= (uint32_t)taken;
    open_window(socket, taken);
    return (long)taken;
}

void sockets_segment_again(const struct tcp_pcb *pcb)
{
    struct socket *socket = pcb->callback_arg;

    if (socket != NULL)
        socket->retransmits++;
}

/* ---- closing ---- */

static void tcp_detach(struct tcp_pcb *pcb)
{
    tcp_arg(pcb, NULL);
    tcp_recv(pcb, NULL);
    tcp_sent(pcb, NULL);
    tcp_err(pcb, NULL);
}

/* lwIP sends the rest and FIN, or RST where something was not read; `quietly`: as if the node were
 * gone. */
static void tcp_end(struct socket *socket, bool quietly)
{
    struct tcp_pcb *pcb = socket->tcp;

    if (pcb == NULL)
        return;
    if (socket->phase == SSS_LISTENING) {
        tcp_accept(pcb, NULL);
        tcp_close(pcb);
        return;
    }
    tcp_detach(pcb);
    if (socket->listener != NULL)
        tcp_backlog_accepted(pcb);
    if (quietly)
        tcp_abandon(pcb, 0);
    else if (tcp_close(pcb) != ERR_OK)
        tcp_abort(pcb);
}

static void socket_free(struct socket *socket, bool quietly)
{
    while (socket->first_ready != NULL) {
        struct socket *waiting = socket->first_ready;

        socket->first_ready = waiting->next_ready;
        socket_free(waiting, quietly);
    }
    if (socket->protocol == SSS_TCP)
        tcp_end(socket, quietly);
    else if (socket->udp != NULL)
        udp_remove(socket->udp);
    while (socket->first_datagram != NULL)
        datagram_free(datagram_take(socket));
    while (socket->first_data != NULL)
        drop_first_data(socket);
    socket->owner = NULL;
}

void sockets_task_gone(struct task *task)
{
    for (struct socket *socket = sockets; socket < sockets + SSS_SOCKETS; socket++)
        if (socket->owner == task && socket->listener == NULL)
            socket_free(socket, false);
    port_settle();
}

void sockets_restart(void)
{
    for (struct socket *socket = sockets; socket < sockets + SSS_SOCKETS; socket++)
        if (socket->owner != NULL && socket->listener == NULL)
            socket_free(socket, true);
    port_restart();
}

/* ---- system calls ---- */

static long open_socket(uint64_t protocol, uint64_t counter)
{
    struct socket *socket;
    long error;

    if (protocol != SSS_UDP && protocol != SSS_TCP)
        return -SSS_EINVAL;
    if (!counter_is_good(counter))
        return -SSS_EFAULT;
    socket = socket_new(task_current(), (int)protocol);
    if (socket == NULL)
        return -SSS_ENOMEM;
    socket->counter = counter;
    error = protocol == SSS_UDP ? udp_open(socket) : tcp_open(socket);
    if (error != 0) {
        socket->owner = NULL;
        return error;
    }
    return socket_number(socket);
}

static long bind_to(struct socket *socket, uint64_t address, uint64_t port)
{
    ip_addr_t local = {lwip_htonl((uint32_t)address)};

    if (address > UINT32_MAX || port > 0xffff || (address != 0 && !port_is_own((uint32_t)address)))
        return -SSS_EINVAL;
    if (socket->protocol == SSS_UDP)
        return error_of(udp_bind(socket->udp, &local, (u16_t)port));
    if (socket->phase != SSS_CLOSED)
        return -SSS_EINVAL;
    return error_of(tcp_bind(socket->tcp, &local, (u16_t)port));
}

static struct sss_socket_state state_of(const struct socket *socket)
{
    struct sss_socket_state state = {
        .phase = socket->phase,
        .error = socket->error,
        .readable = socket->readable,
        .retransmits = socket->retransmits,
        .peer = socket->peer,
    };

    if (socket->udp != NULL) {
        bool udp = socket->protocol == SSS_UDP;

        state.local.address = lwip_ntohl(udp ? socket->udp->local_ip.addr
                                             : socket->tcp->local_ip.addr);
        state.local.port = udp ? socket->udp->local_port : socket->tcp->local_port;
        state.local.task = task_id(socket->owner);
        if (udp)
            state.writable = UDP_LARGEST;
        else if (socket->phase == SSS_OPEN || socket->phase == SSS_ENDED)
            state.writable = tcp_sndbuf(socket->tcp);
    }
    return state;
}

static long tell_state(const struct socket *socket, uint64_t to)
{
    struct sss_socket_state state = state_of(socket);

    return user_write(to, &state, sizeof(state)) ? 0 : -SSS_EFAULT;
}

bool socket_at(unsigned index, struct socket_row *row)
{
    for (const struct socket *socket = sockets; socket < sockets + SSS_SOCKETS; socket++) {
        if (socket->owner == NULL || index-- != 0)
            continue;
        *row = (struct socket_row){
            .number = (uint16_t)socket_number(socket),
            .task = task_id(socket->owner),
            .protocol = socket->protocol,
            .state = state_of(socket),
        };
        return true;
    }
    return false;
}

static int protocol_wanted(unsigned call)
{
    switch (call) {
    case SSS_SEND_TO:
    case SSS_RECEIVE_FROM:
        return SSS_UDP;
    case SSS_LISTEN:
    case SSS_ACCEPT:
    case SSS_SEND:
    case SSS_RECEIVE:
        return SSS_TCP;
    default:
        return 0;
    }
}

static long call_on(struct socket *socket, unsigned call, const uint64_t arguments[6])
{
    switch (call) {
    case SSS_BIND:
        return bind_to(socket, arguments[1], arguments[2]);
    case SSS_SEND_TO:
        return send_to(socket, arguments[1], arguments[2], arguments[3], arguments[4]);
    case SSS_RECEIVE_FROM:
        return receive_from(socket, arguments[1], arguments[2], arguments[3]);
    case SSS_CONNECT:
        return connect_to(socket, arguments[1], arguments[2]);
    case SSS_LISTEN:
        return listen_on(socket, arguments[1]);
    case SSS_ACCEPT:
        return accept_from(socket, arguments[1], arguments[2]);
    case SSS_SEND:
        return send_stream(socket, arguments[1], arguments[2]);
    case SSS_RECEIVE:
        return receive_stream(socket, arguments[1], arguments[2]);
    case SSS_SOCKET_CLOSE:
        socket_free(socket, false);
        return 0;
    case SSS_SOCKET_STATE:
        return tell_state(socket, arguments[1]);
    default:
        return -SSS_ENOSYS;
    }
}

long sockets_call(unsigned call, const uint64_t arguments[6])
{
    struct socket *socket;
    long result;

    if (call == SSS_SOCKET)
        return open_socket(arguments[0], arguments[1]);
    socket = socket_of(arguments[0], protocol_wanted(call));
    if (socket == NULL)
        return -SSS_EINVAL;
    result = call_on(socket, call, arguments);
    port_settle();
    return result;
}

/* ---- the kernel's side ---- */

void sockets_init(void)
{
    for (size_t i = 0; i < DATAGRAMS; i++) {
        datagrams[i].next = free_datagrams;
        free_datagrams = &datagrams[i];
    }
    port_init();
}

void sockets_interface(unsigned adapter, uint32_t address, uint32_t netmask, uint16_t mtu)
{
    port_interface(adapter, address, netmask, mtu);
}

void sockets_neighbour(unsigned adapter, uint32_t address, const uint8_t mac[6])
{
    if (!port_neighbour(address, mac))
        kprintf("eth%u: neighbour %u.%u.%u.%u is on no network of this node, or one too many\n",
                adapter, address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
}

void sockets_received(unsigned adapter, const uint8_t *frame, size_t length)
{
    note_unreachable(frame, length);
    port_received(adapter, frame, length);
}
