/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <poll.h>
#include <stdbool.h>

#include "options.h"

/*
 * What the echo servers have in common: their sockets, the wait for work, the counters reported
 * when idle, and the orderly end. A failure ends the program with an error line.
 */
struct server_settings {
    bool udp;
    bool tcp;
    unsigned udp_port;
    unsigned tcp_port;
    int socket_buffer; /* SO_SNDBUF and SO_RCVBUF; 0: the kernel's default */
    bool tcp_nodelay;
};

struct server {
    /* What is waited for; asked before each wait. */
    struct pollfd *(*watch)(nfds_t *count);
    /* Something has happened; `watched` is as poll left it. */
    void (*serve)(struct pollfd *watched, nfds_t count, int happened);
    void (*report)(void);
};

void server_read_settings(struct server_settings *settings, struct options *options,
                          unsigned default_port, unsigned least_port);

void server_set_option(int handle, int level, int option, int value);

/* A socket bound to `port` on all addresses, and listening if it is a stream. */
int server_open_socket(const struct server_settings *settings, int type);

/*
 * From here SIGTERM waits for server_run. Called first, so that it never ends a server that is
 * starting without its last counters.
 */
void server_hold_end(void);
/* Whether SIGTERM has come: for servers that wait in a loop of their own. */
bool server_is_to_end(void);

/*
 * Says ready, then serves until SIGTERM. Reports whenever it has been idle for 200 ms after work,
 * and never in between: nothing but work happens while calls are measured.
 */
void server_run(const struct server *server);
