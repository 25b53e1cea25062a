/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of the raw workloads: sends each datagram and each TCP message back, then checks it,
 * and reports its counters whenever it has been idle for a while and when it is told to end.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel.h"
#include "header.h"
#include "options.h"
#include "samples.h"

enum {
    DEFAULT_PORT = 1026,
    PORT_LIMIT = 65535,
    BUFFER_LIMIT = 1 << 24,
    BACKLOG = 64,
    CONNECTIONS = 256,
    LISTENERS = 2, /* places 0 and 1 of the watched descriptors: UDP and TCP */
};

/* Idle for so long, the server tells its counters. */
static const struct timespec idle_time = {.tv_nsec = 200 * 1000 * 1000};

struct settings {
    bool udp;
    bool tcp;
    unsigned udp_port;
    unsigned tcp_port;
    int socket_buffer; /* SO_SNDBUF and SO_RCVBUF; 0: the kernel's default */
    bool tcp_nodelay;
};

struct counters {
    long long datagrams;
    long long messages;
    long long bytes;
    long long bad_payload;
    long long retransmits; /* datagrams that say they are not the first */
    long long connections;
};

/* One TCP connection and the message that is coming in on it. */
struct connection {
    uint8_t *bytes;
    size_t room;
    size_t length;
};

static struct settings settings;
static struct counters counters;
static volatile sig_atomic_t told_to_end;

static struct pollfd watched[LISTENERS + CONNECTIONS];
static struct connection connections[LISTENERS + CONNECTIONS];
static nfds_t watched_count = LISTENERS;

static uint8_t datagram[DATAGRAM_LIMIT];

static void read_settings(int argc, char **argv)
{
    static const char *const transports[] = {"udp", "tcp", NULL};
    struct options *options = options_open(argc, argv);
    unsigned mask = options_words(options, "transports", transports, 3);

    settings.udp = (mask & 1) != 0;
    settings.tcp = (mask & 2) != 0;
    settings.udp_port =
        (unsigned)options_integer(options, "udp_port", DEFAULT_PORT, 1, PORT_LIMIT);
    settings.tcp_port =
        (unsigned)options_integer(options, "tcp_port", DEFAULT_PORT, 1, PORT_LIMIT);
    settings.socket_buffer = (int)options_integer(options, "socket_buffer", 0, 0, BUFFER_LIMIT);
    settings.tcp_nodelay = options_boolean(options, "tcp_nodelay", true);
    options_check_all_taken(options);
    options_close(options);
}

static void report_counters(void)
{
    json_t *line = samples_object("counters");

    json_object_update_new(
        line, json_pack("{sI sI sI sI sI sI sI}", "calls",
                        (json_int_t)(counters.datagrams + counters.messages), "datagrams",
                        (json_int_t)counters.datagrams, "messages", (json_int_t)counters.messages,
                        "bytes", (json_int_t)counters.bytes, "bad_payload",
                        (json_int_t)counters.bad_payload, "retransmits",
                        (json_int_t)counters.retransmits, "connections",
                        (json_int_t)counters.connections));
    samples_put(line);
}

static void set_option(int handle, int level, int option, int value)
{
    if (setsockopt(handle, level, option, &value, sizeof(value)) != 0)
        samples_fail("cannot set a socket option: %s", strerror(errno));
}

static int open_socket(int type, unsigned port)
{
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int handle = socket(AF_INET, type | SOCK_CLOEXEC, 0);

    if (handle < 0)
        samples_fail("cannot open a socket: %s", strerror(errno));
    set_option(handle, SOL_SOCKET, SO_REUSEADDR, 1);
    /* Accepted connections inherit the sizes and the delay. */
    if (settings.socket_buffer > 0) {
        set_option(handle, SOL_SOCKET, SO_SNDBUF, settings.socket_buffer);
        set_option(handle, SOL_SOCKET, SO_RCVBUF, settings.socket_buffer);
    }
    if (type == SOCK_STREAM)
        set_option(handle, IPPROTO_TCP, TCP_NODELAY, settings.tcp_nodelay);
    if (bind(handle, (struct sockaddr *)&local, sizeof(local)) != 0)
        samples_fail("cannot bind port %u: %s", port, strerror(errno));
    if (type == SOCK_STREAM && listen(handle, BACKLOG) != 0)
        samples_fail("cannot listen: %s", strerror(errno));
    return handle;
}

/* Replies come first and checks after: what is checked is not part of the time that is measured. */
static void serve_datagram(int handle)
{
    struct sockaddr_in from;
    socklen_t from_length = sizeof(from);
    ssize_t got =
        recvfrom(handle, datagram, sizeof(datagram), 0, (struct sockaddr *)&from, &from_length);
    struct header header;

    if (got < 0)
        return;
    sendto(handle, datagram, (size_t)got, 0, (struct sockaddr *)&from, from_length);
    counters.datagrams++;
    counters.bytes += got;
    if (!header_is_any_payload(datagram, (size_t)got))
        counters.bad_payload++;
    else if (header_read(datagram, (size_t)got, &header) && header.attempt > 0)
        counters.retransmits++;
}

static void accept_connection(int listener)
{
    int handle = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    if (handle < 0)
        return;
    if (watched_count == LISTENERS + CONNECTIONS) {
        close(handle);
        return;
    }
    counters.connections++;
    watched[watched_count] = (struct pollfd){.fd = handle, .events = POLLIN};
    connections[watched_count] = (struct connection){0};
    watched_count++;
}

static void drop_connection(nfds_t index)
{
    close(watched[index].fd);
    free(connections[index].bytes);
    watched_count--;
    watched[index] = watched[watched_count];
    connections[index] = connections[watched_count];
}

static bool make_room(struct connection *connection, size_t room)
{
    uint8_t *grown;

    if (room <= connection->room)
        return true;
    grown = realloc(connection->bytes, room);
    if (grown == NULL)
        return false;
    connection->bytes = grown;
    connection->room = room;
    return true;
}

static bool send_back(int handle, const uint8_t *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(handle, bytes, length, MSG_NOSIGNAL);

        if (sent < 0)
            return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

/* Reads what there is of the current message, and sends it back when it is whole; false: close. */
static bool serve_stream(int handle, struct connection *connection)
{
    struct header header = {.length = HEADER_BYTES};
    ssize_t got;

    if (connection->length >= HEADER_BYTES)
        header_read(connection->bytes, connection->length, &header);
    if (!make_room(connection, header.length))
        return false;
    got = recv(handle, connection->bytes + connection->length,
               header.length - connection->length, 0);
    if (got <= 0)
        return false;
    connection->length += (size_t)got;
    if (connection->length < HEADER_BYTES)
        return true;
    if (!header_read(connection->bytes, connection->length, &header) ||
        header.length < HEADER_BYTES || header.length > PAYLOAD_LIMIT) {
        counters.bad_payload++; /* the place where the next message begins is lost */
        return false;
    }
    if (connection->length < header.length)
        return true;
    if (!send_back(handle, connection->bytes, header.length))
        return false;
    counters.messages++;
    counters.bytes += header.length;
    if (!header_is_any_payload(connection->bytes, header.length))
        counters.bad_payload++;
    connection->length = 0;
    return true;
}

static void serve_ready(void)
{
    if ((watched[0].revents & POLLIN) != 0)
        serve_datagram(watched[0].fd);
    /* From the last: a dropped connection gives its place to one that has been served already. */
    for (nfds_t i = watched_count; i-- > LISTENERS;)
        if (watched[i].revents != 0 && !serve_stream(watched[i].fd, &connections[i]))
            drop_connection(i);
    if ((watched[1].revents & POLLIN) != 0)
        accept_connection(watched[1].fd);
}

static void handle_end(int number)
{
    (void)number;
    told_to_end = 1;
}

int main(int argc, char **argv)
{
    struct sigaction end = {.sa_handler = handle_end};
    sigset_t blocked;
    sigset_t while_waiting;
    bool active = false;

    /* SIGTERM is let in only while waiting, so that it never falls into a call. */
    sigemptyset(&while_waiting);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    sigaction(SIGTERM, &end, NULL);

    read_settings(argc, argv);
    /* poll passes over negative descriptors. */
    watched[0] = (struct pollfd){.fd = -1, .events = POLLIN};
    watched[1] = (struct pollfd){.fd = -1, .events = POLLIN};
    if (settings.udp)
        watched[0].fd = open_socket(SOCK_DGRAM, settings.udp_port);
    if (settings.tcp)
        watched[1].fd = open_socket(SOCK_STREAM, settings.tcp_port);
    puts("ready");
    fflush(stdout);
    while (!told_to_end) {
        int happened =
            ppoll(watched, watched_count, active ? &idle_time : NULL, &while_waiting);

        if (happened > 0)
            serve_ready();
        else if (happened == 0)
            report_counters();
        active = happened > 0;
    }
    report_counters();
    return 0;
}
