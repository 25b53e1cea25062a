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

static long bind_to(struct socket *socket, uint64_t address, uint64_t port)
{
    ip_addr_t local = {lwip_htonl((uint32_t)address)};

    if (address > UINT32_MAX || port > 0xffff || (address != 0 && !port_is_own((uint32_t)address)))
        return -SSS_EINVAL;
    if (socket->protocol == SSS_UDP)
        return socket_error(udp_bind(socket->udp, &local, (u16_t)port));
    if (socket->phase != SSS_CLOSED)
        return -SSS_EINVAL;
    return socket_error(tcp_bind(socket->tcp, &local, (u16_t)port));
}

static long connect_to(struct socket *socket, uint64_t address, uint64_t port)
{
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

static long copy_state(const struct socket *socket, uint64_t to)
{
    struct sss_socket_state state = state_of(socket);

    return user_write(to, &state, sizeof(state)) ? 0 : -SSS_EFAULT;
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

static int protocol_of(unsigned call)
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
        return socket_send_to(socket, arguments[1], arguments[2], arguments[3], arguments[4]);
    case SSS_RECEIVE_FROM:
        return socket_receive_from(socket, arguments[1], arguments[2], arguments[3]);
    case SSS_CONNECT:
        return connect_to(socket, arguments[1], arguments[2]);
    case SSS_LISTEN:
        return socket_listen(socket, arguments[1]);
    case SSS_ACCEPT:
        return socket_accept(socket, arguments[1], arguments[2]);
    case SSS_SEND:
        return socket_send(socket, arguments[1], arguments[2]);
    case SSS_RECEIVE:
        return socket_receive(socket, arguments[1], arguments[2]);
    case SSS_SOCKET_CLOSE:
        socket_free(socket, false);
        return 0;
    case SSS_SOCKET_STATE:
        return copy_state(socket, arguments[1]);
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
    socket = socket_of(arguments[0], protocol_of(call));
    if (socket == NULL)
        return -SSS_EINVAL;
    result = call_on(socket, call, arguments);
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
    socket_note_unreachable(frame, length);
    port_received(adapter, frame, length);
}
