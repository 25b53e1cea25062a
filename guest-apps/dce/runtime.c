/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "samples.h"
#include "server.h"

/* ---- sockets ---- */

/* The kernel's limit (net.core.rmem_max) is for programs other than root's, and guests' are root's. */
static void set_buffer(int handle, int forced, int option, int bytes)
{
    if (setsockopt(handle, SOL_SOCKET, forced, &bytes, sizeof(bytes)) != 0)
        server_set_option(handle, SOL_SOCKET, option, bytes);
}

void dce_link_open(struct dce_link *link, unsigned port, int socket_buffer, bool broadcast)
{
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t length = sizeof(local);

    link->datagram = malloc(DCE_DATAGRAM);
    if (link->datagram == NULL)
        samples_fail("out of memory");
    link->handle = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (link->handle < 0)
        samples_fail("cannot open a socket: %s", strerror(errno));
    if (socket_buffer > 0) {
        set_buffer(link->handle, SO_SNDBUFFORCE, SO_SNDBUF, socket_buffer);
        set_buffer(link->handle, SO_RCVBUFFORCE, SO_RCVBUF, socket_buffer);
    }
    if (broadcast)
        server_set_option(link->handle, SOL_SOCKET, SO_BROADCAST, 1);
    if (bind(link->handle, (struct sockaddr *)&local, sizeof(local)) != 0 ||
        getsockname(link->handle, (struct sockaddr *)&local, &length) != 0)
        samples_fail("cannot bind port %u: %s", port, strerror(errno));
    link->port = ntohs(local.sin_port);
}

void dce_link_close(struct dce_link *link)
{
    if (link->handle >= 0)
        close(link->handle);
    free(link->datagram);
    *link = (struct dce_link){.handle = -1};
}

DCE_MARKER void runtime_send(void *context, const struct dce_peer *to, const uint8_t *bytes,
                             size_t length)
{
    const struct dce_link *link = context;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(to->port), .sin_addr = {htonl(to->address)}};
    struct iovec part = {(void *)(uintptr_t)bytes, length};
    struct msghdr message = {
        .msg_name = &address, .msg_namelen = sizeof(address), .msg_iov = &part, .msg_iovlen = 1};

    while (sendmsg(link->handle, &message, 0) < 0 && errno == EINTR)
        continue;
}

DCE_MARKER int runtime_wait(struct pollfd *watched, nfds_t count, uint64_t deadline_ns,
                            const sigset_t *allowed)
{
    uint64_t now = clock_now_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
    struct timespec pause = {.tv_sec = (time_t)(left / DCE_SECOND_NS),
                             .tv_nsec = (long)(left % DCE_SECOND_NS)};
    int ready = ppoll(watched, count, deadline_ns == DCE_NEVER ? NULL : &pause, allowed);

    return ready < 0 ? 0 : ready;
}

DCE_MARKER ssize_t runtime_receive(struct dce_link *link, struct dce_peer *from)
{
    struct sockaddr_in address = {0};
    struct iovec part = {link->datagram, DCE_DATAGRAM};
    struct msghdr message = {
        .msg_name = &address, .msg_namelen = sizeof(address), .msg_iov = &part, .msg_iovlen = 1};
    ssize_t length = recvmsg(link->handle, &message, MSG_DONTWAIT);

    from->address = ntohl(address.sin_addr.s_addr);
    from->port = ntohs(address.sin_port);
    return length;
}

/* ---- the client's calls ---- */

void dce_binding_open(struct dce_binding *binding, const struct dce_client_settings *settings,
                      size_t results_most, unsigned port, int socket_buffer, bool broadcast)
{
    size_t room = dce_recvq_room(results_most);

    binding->memory = malloc(dce_xmitq_memory(&settings->xmitq));
    binding->results = malloc(room);
    if (binding->memory == NULL || binding->results == NULL)
        samples_fail("out of memory");
    /* Touched now, so that no page fault falls into a measured call. */
    memset(binding->memory, 0, dce_xmitq_memory(&settings->xmitq));
    memset(binding->results, 0, room);
    dce_client_init(&binding->machine, settings, binding->memory, binding->results, room);
    dce_link_open(&binding->link, port, socket_buffer, broadcast);
}

void dce_binding_close(struct dce_binding *binding)
{
    dce_link_close(&binding->link);
    free(binding->memory);
    free(binding->results);
    binding->memory = binding->results = NULL;
}

DCE_MARKER void dce_marshal(struct dce_arguments *arguments, const struct dce_operation *operation,
                            const uint8_t *bytes, size_t length)
{
    *arguments = (struct dce_arguments){*operation, bytes, length};
}

/* Takes the machine's actions; whether the call has ended. */
static bool act(struct dce_binding *binding)
{
    struct dce_packet packet;

    for (;;)
        switch (dce_client_next(&binding->machine, clock_now_ns(), &packet)) {
        case DCE_SEND:
            xmitq_send(&packet, runtime_send, &binding->link);
            break;
        case DCE_DONE:
            return true;
        default:
            return false;
        }
}

/* Waits for the next event, and tells the machine. */
static void wait_for_event(struct dce_binding *binding, uint64_t deadline)
{
    struct pollfd watched = {.fd = binding->link.handle, .events = POLLIN};
    struct dce_peer from;
    struct dce_pdu pdu;
    ssize_t length;

    if (runtime_wait(&watched, 1, deadline, NULL) == 0) {
        dce_client_timeout(&binding->machine, clock_now_ns());
        return;
    }
    length = runtime_receive(&binding->link, &from);
    if (length < 0)
        return;
    if (dce_pdu_decode(binding->link.datagram, (size_t)length, &pdu))
        client_machine_packet(&binding->machine, clock_now_ns(), &from, &pdu);
    else
        binding->machine.counts.of[DCE_COUNT_malformed]++;
}

DCE_MARKER uint32_t dce_transmit(struct dce_binding *binding, const struct dce_arguments *arguments)
{
    uint64_t now = clock_now_ns(), cancel_at = DCE_NEVER;

    if (binding->cancel_after_ns != 0)
        cancel_at = dce_later(now, binding->cancel_after_ns);
    dce_client_call(&binding->machine, now, &arguments->operation, arguments->bytes,
                    arguments->length);
    while (!act(binding)) {
        wait_for_event(binding, dce_earlier(dce_client_deadline(&binding->machine), cancel_at));
        if (cancel_at != DCE_NEVER && clock_now_ns() >= cancel_at) {
            dce_client_cancel(&binding->machine, clock_now_ns());
            cancel_at = DCE_NEVER;
        }
    }
    return binding->machine.status;
}

void dce_settle(struct dce_binding *binding)
{
    while (dce_client_deadline(&binding->machine) != DCE_NEVER) {
        wait_for_event(binding, dce_client_deadline(&binding->machine));
        act(binding);
    }
}
