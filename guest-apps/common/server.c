/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "samples.h"

enum { PORT_LIMIT = 65535, BUFFER_LIMIT = 1 << 24, BACKLOG = 64 };

static const struct timespec idle_time = {.tv_nsec = 200 * 1000 * 1000};

static volatile sig_atomic_t told_to_end;

static void handle_end(int number)
{
    (void)number;
    told_to_end = 1;
}

void server_hold_end(void)
{
    struct sigaction end = {.sa_handler = handle_end};
    sigset_t blocked;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    sigaction(SIGTERM, &end, NULL);
}

bool server_is_to_end(void)
{
    return told_to_end != 0;
}

void server_read_settings(struct server_settings *settings, struct options *options,
                          unsigned default_port, unsigned least_port)
{
    static const char *const transports[] = {"udp", "tcp", NULL};
    unsigned mask = options_words(options, "transports", transports, 3);

    settings->udp = (mask & 1) != 0;
    settings->tcp = (mask & 2) != 0;
    settings->udp_port = (unsigned)options_integer(options, "udp_port", default_port, least_port,
                                                   PORT_LIMIT);
    settings->tcp_port = (unsigned)options_integer(options, "tcp_port", default_port, least_port,
                                                   PORT_LIMIT);
    settings->socket_buffer = (int)options_integer(options, "socket_buffer", 0, 0, BUFFER_LIMIT);
    settings->tcp_nodelay = options_boolean(options, "tcp_nodelay", true);
}

void server_set_option(int handle, int level, int option, int value)
{
    if (setsockopt(handle, level, option, &value, sizeof(value)) != 0)
        samples_fail("cannot set a socket option: %s", strerror(errno));
}

int server_open_socket(const struct server_settings *settings, int type)
{
    unsigned port = type == SOCK_STREAM ? settings->tcp_port : settings->udp_port;
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int handle = socket(AF_INET, type | SOCK_CLOEXEC, 0);

    if (handle < 0)
        samples_fail("cannot open a socket: %s", strerror(errno));
    server_set_option(handle, SOL_SOCKET, SO_REUSEADDR, 1);
    /* Accepted connections inherit the sizes and the delay. */
    if (settings->socket_buffer > 0) {
        server_set_option(handle, SOL_SOCKET, SO_SNDBUF, settings->socket_buffer);
        server_set_option(handle, SOL_SOCKET, SO_RCVBUF, settings->socket_buffer);
    }
    if (type == SOCK_STREAM)
        server_set_option(handle, IPPROTO_TCP, TCP_NODELAY, settings->tcp_nodelay);
    if (bind(handle, (struct sockaddr *)&local, sizeof(local)) != 0)
        samples_fail("cannot bind port %u: %s", port, strerror(errno));
    if (type == SOCK_STREAM && listen(handle, BACKLOG) != 0)
        samples_fail("cannot listen: %s", strerror(errno));
    return handle;
}

void server_run(const struct server *server)
{
    sigset_t while_waiting; /* SIGTERM is let in only here, so that it never falls into a call */
    bool active = false;

    sigemptyset(&while_waiting);
    puts("ready");
    fflush(stdout);
    while (!told_to_end) {
        nfds_t count;
        struct pollfd *watched = server->watch(&count);
        int happened = ppoll(watched, count, active ? &idle_time : NULL, &while_waiting);

        if (happened > 0)
            server->serve(watched, count, happened);
        else if (happened == 0)
            server->report();
        active = happened > 0;
    }
    server->report();
}
