/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The table of sockets, for udp.c, tcp.c and sockets.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lwip/err.h"
#include "lwip/port.h"
#include "runqueue.h"
#include "sss/abi.h"

struct pbuf;
struct task;
struct tcp_pcb;
struct udp_pcb;

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
    /* enum sss_error: of a failed connection; of UDP: for the next receive */
    int32_t error;
    union {
        struct udp_pcb *udp;
        struct tcp_pcb *tcp; /* NULL after lwIP has freed it */
    };
    struct sss_peer peer;
    uint32_t readable; /* as in sss_socket_state */
    uint32_t queued_bytes;
    struct datagram *first_datagram;
    struct datagram *last_datagram;
    struct pbuf *first_data; /* of a stream, linked by next; tot_len is not kept up */
    struct pbuf *last_data;
    uint32_t data_offset; /* read of first_data */
    bool starved;         /* there was no room for all that the owner sent */
    uint32_t retransmits;
    struct socket *listener;   /* of a connection that waits to be accepted */
    struct socket *next_ready; /* such connections of one listener, oldest first */
    struct socket *first_ready;
    uint32_t backlog;
};

extern struct socket socket_table[SSS_SOCKETS];

struct socket *socket_new(struct task *owner, int protocol); /* NULL: none is free */
/* Increments the owner's word and wakes threads that wait for it. */
void socket_changed(struct socket *socket);
/* Whether the current task can have such a word there. */
bool socket_counter_valid(uint64_t address);
/* The task that has this port, with TCP of the connection to port `connected_to`; or 0. */
uint16_t socket_local_task(int protocol, uint16_t port, uint16_t connected_to);
long socket_error(err_t error); /* of lwIP -> 0 or a negative sss_error */

/* Inline: of every call, and of every datagram. */

/* The current task's socket of that protocol (0: any), or NULL. */
static inline struct socket *socket_of(uint64_t number, int protocol)
{
    struct socket *socket = number < SSS_SOCKETS ? &socket_table[number] : NULL;

    if (socket == NULL || socket->owner != task_current() ||
        (protocol != 0 && socket->protocol != protocol) || socket->listener != NULL)
        return NULL;
    return socket;
}

static inline long socket_number(const struct socket *socket)
{
    return socket - socket_table;
}

/* The task of this node that has the other end, or 0. */
static inline uint16_t socket_peer_task(int protocol, uint32_t address, uint16_t port,
                                        uint16_t connected_to)
{
    return port_is_own(address) ? socket_local_task(protocol, port, connected_to) : 0;
}
