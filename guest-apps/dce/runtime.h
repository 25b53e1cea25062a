/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

#include "client_machine.h"
#include "marker.h"

/*
 * The shell around the machines: the only calls of sendmsg, poll and recvmsg are in runtime_send,
 * runtime_wait and runtime_receive. A failure to open a socket ends the program with an error line.
 */
enum { DCE_DATAGRAM = 65536 };

struct dce_link {
    int handle; /* negative: none */
    uint16_t port;
    uint8_t *datagram; /* DCE_DATAGRAM bytes */
};

/* A socket on all addresses; port 0: the kernel chooses. */
void dce_link_open(struct dce_link *link, unsigned port, int socket_buffer, bool broadcast);
void dce_link_close(struct dce_link *link);

/* A datagram that the kernel does not take is lost, as on a wire. `context`: a struct dce_link. */
void runtime_send(void *context, const struct dce_peer *to, const uint8_t *bytes, size_t length);
/* Until something can be received or the deadline has come; how many descriptors are ready. With
 * `allowed` only signals outside of that set interrupt it. */
int runtime_wait(struct pollfd *watched, nfds_t count, uint64_t deadline_ns,
                 const sigset_t *allowed);
/* The length of the datagram at link->datagram; negative: there was none. */
ssize_t runtime_receive(struct dce_link *link, struct dce_peer *from);

/* The client's side: calls of one activity, made by the thread that has it. */
struct dce_binding {
    struct dce_client machine;
    struct dce_link link;
    uint8_t *memory, *results;
    uint64_t cancel_after_ns; /* 0: never; else each call that lasts so long is cancelled */
};

void dce_binding_open(struct dce_binding *binding, const struct dce_client_settings *settings,
                      size_t results_most, unsigned port, int socket_buffer, bool broadcast);
void dce_binding_close(struct dce_binding *binding);

/* A call with its arguments marshalled, in place: what all our operations have is fixed arrays of
 * bytes, which NDR represents as they are. */
struct dce_arguments {
    struct dce_operation operation;
    const uint8_t *bytes;
    size_t length;
};
void dce_marshal(struct dce_arguments *arguments, const struct dce_operation *operation,
                 const uint8_t *bytes, size_t length);
/* Makes the call; its status. The results are in binding->results. */
uint32_t dce_transmit(struct dce_binding *binding, const struct dce_arguments *arguments);
/* Waits until the server has been told that the latest call is over. */
void dce_settle(struct dce_binding *binding);
