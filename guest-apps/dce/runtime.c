/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "machine.h"
#include "samples.h"
#include "server.h"

/* ---- sockets ---- */

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / DCE_SECOND_NS),
                             .tv_nsec = (long)(ns % DCE_SECOND_NS)};
}

/* The kernel's limit (net.core.rmem_max) is for programs other than root's, and guests' are root's.
 */
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

DCE_MARKER unsigned runtime_wait(struct dce_link *const *links, unsigned count,
                                 uint64_t deadline_ns, bool may_end)
{
    uint64_t now = clock_now_ns();
    struct timespec pause = timespec_of(deadline_ns > now ? deadline_ns - now : 0);
    struct pollfd watched[DCE_LINKS];
    unsigned ready = 0;
    sigset_t all; /* SIGTERM is let in only here, so that it never falls into a call */

    sigemptyset(&all);
    for (unsigned i = 0; i < count; i++)
        watched[i] = (struct pollfd){.fd = links[i]->handle, .events = POLLIN};
    if (ppoll(watched, count, deadline_ns == DCE_NEVER ? NULL : &pause, may_end ? &all : NULL) <= 0)
        return 0;
    for (unsigned i = 0; i < count; i++)
        ready |= watched[i].revents != 0 ? 1u << i : 0;
    return ready;
}

DCE_MARKER long runtime_receive(struct dce_link *link, struct dce_peer *from)
{
    struct sockaddr_in address = {0};
    struct iovec part = {link->datagram, DCE_DATAGRAM};
    struct msghdr message = {
        .msg_name = &address, .msg_namelen = sizeof(address), .msg_iov = &part, .msg_iovlen = 1};
    long length = recvmsg(link->handle, &message, MSG_DONTWAIT);

    from->address = ntohl(address.sin_addr.s_addr);
    from->port = ntohs(address.sin_port);
    return length;
}

/* ---- the rest ---- */

void runtime_start(void)
{
    if (clock_select_from_environment() != 0)
        samples_fail("SUNDIAL_CLOCK: must be tsc or monotonic");
}

void runtime_hold_end(void)
{
    server_hold_end();
}

bool runtime_is_to_end(void)
{
    return server_is_to_end();
}

void runtime_ready(void)
{
    puts("ready");
    fflush(stdout);
}

void runtime_sleep(uint64_t ns)
{
    const struct timespec pause = timespec_of(ns);

    nanosleep(&pause, NULL);
}

size_t runtime_memory(void)
{
    return SIZE_MAX;
}

/* Pages that no activity uses are never touched, and so cost no memory. */
void *runtime_table(size_t bytes)
{
    return calloc(1, bytes);
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value == NULL ? "" : value;
}

struct dce_self runtime_self(void)
{
    return (struct dce_self){.machine = variable("SUNDIAL_MACHINE"),
                             .step = variable("SUNDIAL_STEP"),
                             .seed = strtoull(variable("SUNDIAL_SEED"), NULL, 10),
                             .process = (uint64_t)getpid()};
}
