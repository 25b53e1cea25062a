/* SPDX-License-Identifier: Apache-2.0 */
#include "tcp.h"

#include "lwip/port.h"
#include "lwip/priv/tcp_priv.h"
#include "memory.h"
#include "socket.h"
#include "user.h"

enum { RECVED_MOST = 0xffff /* tcp_recved takes 16 bits */ };

static unsigned starved_sockets;

static err_t tcp_received(void *context, struct tcp_pcb *pcb, struct pbuf *data, err_t error)
{
    struct socket *socket = context;

    (void)pcb;
    (void)error;
    if (data == NULL) {
        socket->phase = SSS_ENDED;
        socket_changed(socket);
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
    socket_changed(socket);
    return ERR_OK;
}

static err_t tcp_was_sent(void *context, struct tcp_pcb *pcb, u16_t length)
{
    (void)context;
    (void)pcb;
    (void)length;
    if (starved_sockets == 0)
        return ERR_OK;
    /* All connections share memory, so room here may be room for another one. */
    starved_sockets = 0;
    for (struct socket *socket = socket_table; socket < socket_table + SSS_SOCKETS; socket++) {
        if (socket->owner == NULL || !socket->starved)
            continue;
        socket->starved = false;
        socket_changed(socket);
    }
    return ERR_OK;
}

static void tcp_failed(void *context, err_t error)
{
    struct socket *socket = context;

    socket->error = error == ERR_RST && socket->phase == SSS_CONNECTING
                        ? SSS_ECONNREFUSED
                        : (int32_t)-socket_error(error);
    socket->phase = SSS_FAILED;
    socket->tcp = NULL; /* lwIP has freed it */
    socket_changed(socket);
}

static err_t tcp_has_connected(void *context, struct tcp_pcb *pcb, err_t error)
{
    struct socket *socket = context;

    (void)pcb;
    (void)error;
    socket->phase = SSS_OPEN;
    socket_changed(socket);
    return ERR_OK;
}

/* Each message is sent when it is written, without waiting for an acknowledgement (RFC 896). */
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

long socket_tcp_open(struct socket *socket)
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
        .task = socket_peer_task(SSS_TCP, address, pcb->remote_port, pcb->local_port),
    };
    while (*place != NULL)
        place = &(*place)->next_ready;
    *place = socket;
    listener->readable++;
    socket_changed(listener);
    return ERR_OK;
}

long socket_tcp_connect(struct socket *socket, const ip_addr_t *to, uint16_t port)
{
    long error;

    if (socket->phase != SSS_CLOSED)
        return -SSS_EINVAL;
    error = socket_error(tcp_connect(socket->tcp, to, port, tcp_has_connected));
    if (error == 0)
        socket->phase = SSS_CONNECTING;
    return error;
}

long socket_listen(struct socket *socket, const uint64_t arguments[6])
{
    uint64_t backlog = arguments[1];
    struct tcp_pcb *listening;
    err_t error;

    if (socket->phase != SSS_CLOSED || backlog == 0 || backlog > SSS_SOCKETS)
        return -SSS_EINVAL;
    listening = tcp_listen_with_backlog_and_err(socket->tcp, (u8_t)backlog, &error);
    if (listening == NULL)
        return socket_error(error);
    socket->tcp = listening;
    socket->phase = SSS_LISTENING;
    socket->backlog = (uint32_t)backlog;
    tcp_arg(listening, socket);
    tcp_accept(listening, tcp_has_accepted);
    return 0;
}

long socket_accept(struct socket *listener, const uint64_t arguments[6])
{
    uint64_t counter = arguments[1], peer = arguments[2];
    struct socket *socket = listener->first_ready;

    if (listener->phase != SSS_LISTENING)
        return -SSS_EINVAL;
    if (socket == NULL)
        return -SSS_EAGAIN;
    if (!socket_counter_valid(counter) ||
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
long socket_send(struct socket *socket, const uint64_t arguments[6])
{
    uint64_t data = arguments[1], length = arguments[2];
    uint64_t taken = 0;
    uint64_t most;

    if ((socket->phase != SSS_OPEN && socket->phase != SSS_ENDED) || socket->tcp == NULL)
        return no_stream(socket);
    most = length < tcp_sndbuf(socket->tcp) ? length : tcp_sndbuf(socket->tcp);
    while (taken < most) {
        uint64_t part = PAGE - (data + taken) % PAGE;
        int why;
        const void *bytes = task_page(socket->owner, data + taken, false, &why);

        if (bytes == NULL)
            return taken > 0 ? (long)taken : -SSS_EFAULT;
        if (part > most - taken)
            part = most - taken;
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

long socket_receive(struct socket *socket, const uint64_t arguments[6])
{
    uint64_t to = arguments[1], size = arguments[2];
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

static void tcp_detach(struct tcp_pcb *pcb)
{
    tcp_arg(pcb, NULL);
    tcp_recv(pcb, NULL);
    tcp_sent(pcb, NULL);
    tcp_err(pcb, NULL);
}

/* lwIP sends the rest and FIN, or RST if something was not read. */
static void end_connection(struct socket *socket, bool quietly)
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

void socket_tcp_close(struct socket *socket, bool quietly)
{
    end_connection(socket, quietly);
    while (socket->first_data != NULL)
        drop_first_data(socket);
}
