/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lwIP calls back in the receive and timer interrupts and, for messages from a task of this node,
 * in system calls; all of it runs with interrupts off.
 */
#include "sockets.h"

#include "console.h"
#include "lwip/port.h"
#include "lwip/tcp.h"
#include "lwip/udp.h"
#include "net.h"
#include "runqueue.h"
#include "socket.h"
#include "task_table.h"
#include "tcp.h"
#include "udp.h"
#include "user.h"

static void socket_free(struct socket *socket, bool quietly)
{
    while (socket->first_ready != NULL) {
        struct socket *waiting = socket->first_ready;

        socket->first_ready = waiting->next_ready;
        socket_free(waiting, quietly);
    }
    if (socket->protocol == SSS_TCP)
        socket_tcp_close(socket, quietly);
    else
        socket_udp_close(socket);
    socket->owner = NULL;
}

void sockets_task_ended(struct task *task)
{
    for (struct socket *socket = socket_table; socket < socket_table + SSS_SOCKETS; socket++)
        if (socket->owner == task && socket->listener == NULL)
            socket_free(socket, false);
    port_settle();
}

void sockets_restart(void)
{
    for (struct socket *socket = socket_table; socket < socket_table + SSS_SOCKETS; socket++)
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
    if (!socket_counter_valid(counter))
        return -SSS_EFAULT;
    socket = socket_new(task_current(), (int)protocol);
    if (socket == NULL)
        return -SSS_ENOMEM;
    socket->counter = counter;
    error = protocol == SSS_UDP ? socket_udp_open(socket) : socket_tcp_open(socket);
    if (error != 0) {
        socket->owner = NULL;
        return error;
    }
    return socket_number(socket);
}

static long bind_to(struct socket *socket, const uint64_t arguments[6])
{
    uint64_t address = arguments[1], port = arguments[2];
    ip_addr_t local = {lwip_htonl((uint32_t)address)};

    if (address > UINT32_MAX || port > 0xffff || (address != 0 && !port_is_own((uint32_t)address)))
        return -SSS_EINVAL;
    if (socket->protocol == SSS_UDP)
        return socket_error(udp_bind(socket->udp, &local, (u16_t)port));
    if (socket->phase != SSS_CLOSED)
        return -SSS_EINVAL;
    return socket_error(tcp_bind(socket->tcp, &local, (u16_t)port));
}

static long connect_to(struct socket *socket, const uint64_t arguments[6])
{
    uint64_t address = arguments[1], port = arguments[2];
    ip_addr_t to = {lwip_htonl((uint32_t)address)};
    long error;

    if (port == 0 || port > 0xffff || address == 0 || address > UINT32_MAX)
        return -SSS_EINVAL;
    error = socket->protocol == SSS_UDP ? socket_error(udp_connect(socket->udp, &to, (u16_t)port))
                                        : socket_tcp_connect(socket, &to, (u16_t)port);
    if (error == 0)
        socket->peer = (struct sss_peer){.address = (uint32_t)address, .port = (uint16_t)port};
    return error;
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

static long copy_state(struct socket *socket, const uint64_t arguments[6])
{
    struct sss_socket_state state = state_of(socket);

    return user_write(arguments[1], &state, sizeof(state)) ? 0 : -SSS_EFAULT;
}

bool socket_at(unsigned index, struct socket_row *row)
{
    for (const struct socket *socket = socket_table; socket < socket_table + SSS_SOCKETS;
         socket++) {
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

static long close_socket(struct socket *socket, const uint64_t arguments[6])
{
    (void)arguments;
    socket_free(socket, false);
    return 0;
}

static const struct {
    long (*run)(struct socket *socket, const uint64_t arguments[6]);
    int protocol; /* 0: any */
} calls[] = {
    [SSS_BIND - SSS_SOCKET] = {bind_to, 0},
    [SSS_CONNECT - SSS_SOCKET] = {connect_to, 0},
    [SSS_LISTEN - SSS_SOCKET] = {socket_listen, SSS_TCP},
    [SSS_ACCEPT - SSS_SOCKET] = {socket_accept, SSS_TCP},
    [SSS_SEND - SSS_SOCKET] = {socket_send, SSS_TCP},
    [SSS_RECEIVE - SSS_SOCKET] = {socket_receive, SSS_TCP},
    [SSS_SEND_TO - SSS_SOCKET] = {socket_send_to, SSS_UDP},
    [SSS_RECEIVE_FROM - SSS_SOCKET] = {socket_receive_from, SSS_UDP},
    [SSS_SOCKET_CLOSE - SSS_SOCKET] = {close_socket, 0},
    [SSS_SOCKET_STATE - SSS_SOCKET] = {copy_state, 0},
};
_Static_assert(sizeof(calls) / sizeof(calls[0]) == SSS_SOCKET_STATE - SSS_SOCKET + 1, "all calls");

long sockets_call(unsigned call, const uint64_t arguments[6])
{
    struct socket *socket;
    long result;

    if (call == SSS_SOCKET)
        return open_socket(arguments[0], arguments[1]);
    socket = socket_of(arguments[0], calls[call - SSS_SOCKET].protocol);
    if (socket == NULL)
        return -SSS_EINVAL;
    result = calls[call - SSS_SOCKET].run(socket, arguments);
    port_settle();
    return result;
}

/* ---- the kernel's side ---- */

void sockets_init(void)
{
    socket_udp_init();
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
    if (length >= ETHERNET_HEADER + UNREACHABLE_BYTES &&
        frame[ETHERNET_HEADER + IP_PROTOCOL_AT] == IP_PROTO_ICMP)
        socket_note_unreachable(frame);
    port_received(adapter, frame, length);
}
