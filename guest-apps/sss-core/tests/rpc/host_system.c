/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that the RPC runtime makes, over Linux's sockets, so that it can be tested
 * against libtirpc in processes of the host. A socket's word is incremented when poll says that
 * something can be done.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rpc/vrpc.h>

#include "sss/system.h"

enum { HANDLES = 256, NS_PER_MS = 1000000 };
#define NS_PER_S 1000000000ull

static struct {
    uint32_t *counter; /* NULL: no socket of ours */
    bool full;         /* a send found no room */
    uint32_t phase;
} handles[HANDLES];

const volatile struct sss_info *sss_info(void)
{
    static const struct sss_info info;

    return &info;
}

static long result_of(long result)
{
    return result >= 0 ? result : -errno; /* enum sss_error has Linux's numbers */
}

static struct sockaddr_in address_of(uint32_t address, uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
}

static int adopt(int handle, uint32_t *counter, uint32_t phase)
{
    if (handle < 0)
        return -errno;
    handles[handle].counter = counter;
    handles[handle].full = false;
    handles[handle].phase = phase;
    return handle;
}

int sss_socket(int protocol, uint32_t *counter)
{
    return adopt(
        socket(AF_INET, (protocol == SSS_UDP ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK, 0),
        counter, protocol == SSS_UDP ? SSS_OPEN : SSS_CLOSED);
}

int sss_bind(int socket, uint32_t address, uint16_t port)
{
    struct sockaddr_in local = address_of(address, port);

    return (int)result_of(bind(socket, (struct sockaddr *)&local, sizeof(local)));
}

int sss_send_to(int socket, const void *data, size_t length, uint32_t address, uint16_t port)
{
    struct sockaddr_in to = address_of(address, port);

    return (int)result_of(sendto(socket, data, length, 0, (struct sockaddr *)&to, sizeof(to)));
}

static void tell_peer(struct sss_peer *peer, const struct sockaddr_in *from)
{
    if (peer != NULL)
        *peer = (struct sss_peer){
            .address = ntohl(from->sin_addr.s_addr), .port = ntohs(from->sin_port), .task = 1};
}

int sss_receive_from(int socket, void *data, size_t size, struct sss_peer *peer)
{
    struct sockaddr_in from;
    socklen_t length = sizeof(from);
    long result = recvfrom(socket, data, size, 0, (struct sockaddr *)&from, &length);

    if (result >= 0)
        tell_peer(peer, &from);
    return (int)result_of(result);
}

int sss_connect(int socket, uint32_t address, uint16_t port)
{
    struct sockaddr_in to = address_of(address, port);
    long result = result_of(connect(socket, (struct sockaddr *)&to, sizeof(to)));

    handles[socket].phase = result == 0 ? SSS_OPEN : SSS_CONNECTING;
    handles[socket].full = true;
    return result == -EINPROGRESS ? 0 : (int)result;
}

int sss_listen(int socket, int backlog)
{
    handles[socket].phase = SSS_LISTENING;
    return (int)result_of(listen(socket, backlog));
}

int sss_accept(int socket, uint32_t *counter, struct sss_peer *peer)
{
    struct sockaddr_in from;
    socklen_t length = sizeof(from);
    int handle = accept4(socket, (struct sockaddr *)&from, &length, SOCK_NONBLOCK);

    if (handle >= 0)
        tell_peer(peer, &from);
    return adopt(handle, counter, SSS_OPEN);
}

int sss_send(int socket, const void *data, size_t length)
{
    long sent = result_of(send(socket, data, length, MSG_NOSIGNAL));

    handles[socket].full = sent < (long)length;
    return (int)sent;
}

int sss_receive(int socket, void *data, size_t size)
{
    return (int)result_of(recv(socket, data, size, 0));
}

int sss_socket_close(int socket)
{
    handles[socket].counter = NULL;
    return (int)result_of(close(socket));
}

int sss_socket_state(int socket, struct sss_socket_state *state)
{
    struct sockaddr_in local;
    socklen_t length = sizeof(local);
    struct pollfd ready = {socket, POLLOUT, 0};
    int error = 0;
    socklen_t error_length = sizeof(error);

    memset(state, 0, sizeof(*state));
    if (handles[socket].phase == SSS_CONNECTING && poll(&ready, 1, 0) == 1) {
        getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &error_length);
        handles[socket].phase = error == 0 ? SSS_OPEN : SSS_FAILED;
    }
    getsockname(socket, (struct sockaddr *)&local, &length);
    state->phase = handles[socket].phase;
    state->error = error;
    state->local.port = ntohs(local.sin_port);
    return 0;
}

uint64_t sss_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static int changed_word(const struct sss_wait *words, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (*words[i].address != words[i].seen)
            return (int)i;
    return -1;
}

static void count_events(int timeout_ms)
{
    struct pollfd polled[HANDLES];
    nfds_t count = 0;

    for (int handle = 0; handle < HANDLES; handle++)
        if (handles[handle].counter != NULL)
            polled[count++] =
                (struct pollfd){handle, (short)(POLLIN | (handles[handle].full ? POLLOUT : 0)), 0};
    if (poll(polled, count, timeout_ms) <= 0)
        return;
    for (nfds_t i = 0; i < count; i++) {
        if (polled[i].revents == 0)
            continue;
        handles[polled[i].fd].full = false;
        ++*handles[polled[i].fd].counter;
    }
}

int sss_wait(const struct sss_wait *words, unsigned count, uint64_t timeout_ns)
{
    uint64_t now = sss_now_ns();
    uint64_t deadline = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;

    for (;;) {
        int changed = changed_word(words, count);

        if (changed >= 0)
            return changed;
        now = sss_now_ns();
        if (now >= deadline)
            return -SSS_ETIMEDOUT;
        count_events(deadline == UINT64_MAX ? -1 : (int)((deadline - now) / NS_PER_MS + 1));
    }
}

int sss_wait_word(const volatile uint32_t *word, uint32_t seen, uint64_t timeout_ns)
{
    struct sss_wait wait = {.address = word, .seen = seen};

    return sss_wait(&wait, 1, timeout_ns);
}

void sss_log(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

void sss_yield(void)
{
    sched_yield();
}

/* A process of the host has no memory that others write into. */
CLIENT *clntvrpc_create(uint16_t node, rpcprog_t program, rpcvers_t version,
                        const struct clntvrpc_options *options)
{
    (void)node, (void)program, (void)version, (void)options;
    rpc_createerr.cf_stat = RPC_UNKNOWNPROTO;
    return NULL;
}
