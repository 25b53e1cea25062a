/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of the raw workloads: sends each datagram and each TCP message back, then checks it,
 * and reports its counters whenever it has been idle for a while and when it ends.
 */
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps.h"
#include "channel.h"
#include "header.h"
#include "options.h"
#include "samples.h"
#include "server.h"

enum {
    DEFAULT_PORT = 1026,
    CONNECTIONS = 256,
    LISTENERS = 2, /* places 0 and 1 of the watched descriptors: UDP and TCP */
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

static struct server_settings settings;
static struct counters counters;

static struct pollfd watched[LISTENERS + CONNECTIONS];
static struct connection connections[LISTENERS + CONNECTIONS];
static nfds_t watched_count = LISTENERS;

static uint8_t datagram[DATAGRAM_LIMIT];

static void read_settings(int argc, char **argv)
{
    struct options *options = options_open(argc, argv);

    server_read_settings(&settings, options, DEFAULT_PORT, 1);
    options_check_all_taken(options);
    options_close(options);
}

static void report_counters(void)
{
    json_t *line = samples_object("counters");

    json_object_update_new(line, json_pack("{sI sI sI sI sI sI sI}", "calls",
                                           (json_int_t)(counters.datagrams + counters.messages),
                                           "datagrams", (json_int_t)counters.datagrams, "messages",
                                           (json_int_t)counters.messages, "bytes",
                                           (json_int_t)counters.bytes, "bad_payload",
                                           (json_int_t)counters.bad_payload, "retransmits",
                                           (json_int_t)counters.retransmits, "connections",
                                           (json_int_t)counters.connections));
    samples_put(line);
}

/* Replies come first and checks after: what is checked is not part of the time that is measured. */
static void serve_datagram(int handle)
{
    struct sockaddr_in from;
    socklen_t from_length = sizeof(from);
    ssize_t got = recvfrom(handle, datagram, sizeof(datagram), 0, (struct sockaddr *)&from,
                           &from_length);
    size_t length = (size_t)got;
    uint8_t room[ANSWER_ROOM];
    struct header header;
    const uint8_t *reply;

    if (got < 0)
        return;
    reply = header_answer(datagram, room, &length);
    sendto(handle, reply, length, 0, (struct sockaddr *)&from, from_length);
    counters.datagrams++;
    counters.bytes += got;
    if (!header_is_any_payload(datagram, (size_t)got))
        counters.bad_payload++;
    else if (header_read(datagram, (size_t)got, &header) && header.attempt > 0)
        counters.retransmits++;
}

static void accept_connection(int listener)
{
    /* cppcheck-suppress nullPointer; the peer's address may be left out */
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
    uint8_t room[ANSWER_ROOM];
    const uint8_t *reply;
    size_t length;
    ssize_t got;

    if (connection->length >= HEADER_BYTES)
        header_read(connection->bytes, connection->length, &header);
    if (!make_room(connection, header.length))
        return false;
    got = recv(handle, connection->bytes + connection->length, header.length - connection->length,
               0);
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
    length = header.length;
    reply = header_answer(connection->bytes, room, &length);
    if (!send_back(handle, reply, length))
        return false;
    counters.messages++;
    counters.bytes += header.length;
    if (!header_is_any_payload(connection->bytes, header.length))
        counters.bad_payload++;
    connection->length = 0;
    return true;
}

static struct pollfd *watch(nfds_t *count)
{
    *count = watched_count;
    return watched;
}

static void serve_ready(struct pollfd *ready, nfds_t count, int happened)
{
    (void)happened;
    if ((ready[0].revents & POLLIN) != 0)
        serve_datagram(ready[0].fd);
    /* From the last: a dropped connection gives its place to one that has been served already. */
    for (nfds_t i = count; i-- > LISTENERS;)
        if (ready[i].revents != 0 && !serve_stream(ready[i].fd, &connections[i]))
            drop_connection(i);
    if ((ready[1].revents & POLLIN) != 0)
        accept_connection(ready[1].fd);
}

int raw_server_main(int argc, char **argv)
{
    static const struct server server = {watch, serve_ready, report_counters};

    server_hold_end();
    read_settings(argc, argv);
    /* poll passes over negative descriptors. */
    for (nfds_t i = 0; i < LISTENERS; i++)
        watched[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    if (settings.udp)
        watched[0].fd = server_open_socket(&settings, SOCK_DGRAM);
    if (settings.tcp)
        watched[1].fd = server_open_socket(&settings, SOCK_STREAM);
    server_run(&server);
    return 0;
}
