/* SPDX-License-Identifier: Apache-2.0 */
#include "channel.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "header.h"

enum { NS_PER_MS = 1000000, MS_PER_S = 1000, US_PER_MS = 1000 };

enum failure {
    FAILURE_NONE,
    FAILURE_TIMED_OUT,
    FAILURE_WRONG_PAYLOAD,
    FAILURE_CANNOT_CONNECT,
    FAILURE_CANNOT_SEND,
    FAILURE_CANNOT_RECEIVE,
    FAILURE_CLOSED,
};

void channel_init(struct channel *channel, const struct channel_settings *settings, size_t thread)
{
    *channel = (struct channel){.settings = settings, .thread = thread, .socket = -1};
    channel->request = malloc(PAYLOAD_LIMIT);
    channel->reply = malloc(PAYLOAD_LIMIT);
    if (channel->request == NULL || channel->reply == NULL)
        samples_fail("out of memory");
}

static int set_option(int handle, int level, int option, int value)
{
    return setsockopt(handle, level, option, &value, sizeof(value));
}

/* On a stream the kernel's own timeouts bound a call; datagrams are waited for with ppoll. */
static int set_tcp_options(int handle, const struct channel_settings *settings)
{
    struct timeval timeout = {
        .tv_sec = settings->total_timeout_ms / MS_PER_S,
        .tv_usec = settings->total_timeout_ms % MS_PER_S * US_PER_MS,
    };

    if (set_option(handle, IPPROTO_TCP, TCP_NODELAY, settings->tcp_nodelay) != 0 ||
        setsockopt(handle, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) != 0)
        return -1;
    return setsockopt(handle, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
}

bool channel_connect(struct channel *channel)
{
    const struct channel_settings *settings = channel->settings;
    bool udp = settings->transport == TRANSPORT_UDP;
    unsigned port = settings->client_port == 0 ? 0
                                               : settings->client_port + (unsigned)channel->thread;
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t length = sizeof(local);
    int handle = socket(AF_INET, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);

    if (handle < 0)
        return false;
    if ((settings->socket_buffer > 0 &&
         (set_option(handle, SOL_SOCKET, SO_SNDBUF, settings->socket_buffer) != 0 ||
          set_option(handle, SOL_SOCKET, SO_RCVBUF, settings->socket_buffer) != 0)) ||
        (port != 0 && (set_option(handle, SOL_SOCKET, SO_REUSEADDR, 1) != 0 ||
                       bind(handle, (struct sockaddr *)&local, sizeof(local)) != 0)) ||
        (!udp && set_tcp_options(handle, settings) != 0) ||
        connect(handle, (const struct sockaddr *)&settings->server, sizeof(settings->server)) !=
            0 ||
        getsockname(handle, (struct sockaddr *)&local, &length) != 0) {
        int reason = errno;

        close(handle);
        errno = reason;
        return false;
    }
    channel->socket = handle;
    channel->client_port = ntohs(local.sin_port);
    channel->stale = false;
    return true;
}

void channel_disconnect(struct channel *channel)
{
    if (channel->socket >= 0)
        close(channel->socket);
    channel->socket = -1;
}

static enum failure fail(struct call_record *record, enum failure failure, int reason)
{
    record->failure = (uint16_t)failure;
    record->failure_errno = (int16_t)reason;
    return failure;
}

/* Throws away what came late, so that it is not taken for the reply to the next request. */
static void drop_stale(struct channel *channel)
{
    while (recv(channel->socket, channel->reply, PAYLOAD_LIMIT, MSG_DONTWAIT) >= 0)
        continue;
    channel->stale = false;
}

static bool is_reply(const struct channel *channel, uint32_t sequence)
{
    if (channel->function != 0)
        return header_is_return(channel->reply, channel->function, sequence);
    return header_is_payload(channel->reply, channel->reply_bytes, sequence);
}

/* Whether the reply is in before `until`; datagrams of other requests are passed over. */
static bool receive_datagram(struct channel *channel, uint32_t sequence, uint64_t until,
                             struct call_record *record)
{
    size_t size = channel->reply_bytes;
    struct pollfd watched = {.fd = channel->socket, .events = POLLIN};

    for (;;) {
        uint64_t now = clock_now_ns();
        uint64_t left = until > now ? until - now : 0;
        struct timespec timeout = {.tv_sec = (time_t)(left / 1000000000),
                                   .tv_nsec = (long)(left % 1000000000)};
        struct header header;
        ssize_t got;

        if (left == 0 || ppoll(&watched, 1, &timeout, NULL) == 0)
            return false;
        got = recv(channel->socket, channel->reply, PAYLOAD_LIMIT, MSG_DONTWAIT);
        if (got < 0) {
            /* ECONNREFUSED: the server is not there yet; the request will be sent again. */
            record->failure_errno = (int16_t)errno;
            continue;
        }
        record->end_ns = clock_now_ns();
        if (size >= HEADER_BYTES && header_read(channel->reply, (size_t)got, &header) &&
            header.sequence != sequence)
            continue;
        if ((size_t)got != size || !is_reply(channel, sequence))
            record->failure = FAILURE_WRONG_PAYLOAD;
        return true;
    }
}

static void exchange_datagrams(struct channel *channel, uint32_t sequence,
                               struct call_record *record)
{
    const struct channel_settings *settings = channel->settings;
    uint64_t retry = (uint64_t)settings->retry_timeout_ms * NS_PER_MS;
    uint64_t deadline;
    uint64_t until;

    if (channel->stale)
        drop_stale(channel);
    record->start_ns = clock_now_ns();
    deadline = record->start_ns + (uint64_t)settings->total_timeout_ms * NS_PER_MS;
    until = record->start_ns;
    for (uint32_t attempt = 0;; attempt++) {
        if (attempt > 0)
            header_set_attempt(channel->request, channel->request_bytes, attempt);
        /* send() reports that an earlier datagram was refused: the next try goes through. */
        if (send(channel->socket, channel->request, channel->request_bytes, 0) < 0 &&
            errno != ECONNREFUSED) {
            record->end_ns = clock_now_ns();
            fail(record, FAILURE_CANNOT_SEND, errno);
            return;
        }
        record->retransmits = (uint16_t)attempt;
        until = until + retry < deadline ? until + retry : deadline;
        if (receive_datagram(channel, sequence, until, record))
            break;
        channel->stale = true;
        if (until == deadline) {
            record->end_ns = clock_now_ns();
            fail(record, FAILURE_TIMED_OUT, record->failure_errno);
            return;
        }
    }
    channel->stale = channel->stale || record->retransmits > 0;
    record->failure_errno = 0;
}

static enum failure send_all(const struct channel *channel, struct call_record *record)
{
    size_t size = channel->request_bytes;
    size_t done = 0;

    while (done < size) {
        ssize_t sent = send(channel->socket, channel->request + done, size - done, MSG_NOSIGNAL);

        if (sent < 0 && errno == EAGAIN)
            return fail(record, FAILURE_TIMED_OUT, 0);
        if (sent < 0)
            return fail(record, FAILURE_CANNOT_SEND, errno);
        done += (size_t)sent;
    }
    return FAILURE_NONE;
}

static enum failure receive_all(const struct channel *channel, struct call_record *record)
{
    size_t size = channel->reply_bytes;
    size_t done = 0;

    while (done < size) {
        ssize_t got = recv(channel->socket, channel->reply + done, size - done, 0);

        if (got == 0)
            return fail(record, FAILURE_CLOSED, 0);
        if (got < 0 && errno == EAGAIN)
            return fail(record, FAILURE_TIMED_OUT, 0);
        if (got < 0)
            return fail(record, FAILURE_CANNOT_RECEIVE, errno);
        done += (size_t)got;
    }
    return FAILURE_NONE;
}

unsigned channel_tcp_retransmits(const struct channel *channel)
{
    struct tcp_info info;
    socklen_t length = sizeof(info);

    if (channel->settings->transport == TRANSPORT_UDP || channel->socket < 0 ||
        getsockopt(channel->socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return channel->closed_retransmits;
    return channel->closed_retransmits + info.tcpi_total_retrans;
}

static void exchange_stream(struct channel *channel, uint32_t sequence, struct call_record *record)
{
    enum failure failure;

    record->start_ns = clock_now_ns();
    failure = send_all(channel, record);
    if (failure == FAILURE_NONE)
        failure = receive_all(channel, record);
    record->end_ns = clock_now_ns();
    if (failure == FAILURE_NONE && !is_reply(channel, sequence))
        failure = fail(record, FAILURE_WRONG_PAYLOAD, 0);
    /* After a failure it is unknown where in the stream the next reply begins. */
    if (failure != FAILURE_NONE) {
        channel->closed_retransmits = channel_tcp_retransmits(channel);
        channel_disconnect(channel);
    }
}

static void prepare(struct channel *channel, uint32_t sequence, size_t size)
{
    if (channel->function == 0) {
        header_make_payload(channel->request, size, sequence, 0);
        channel->request_bytes = channel->reply_bytes = size;
        return;
    }
    header_make_call(channel->request, channel->function, sequence, 0);
    channel->request_bytes = header_call_size(channel->function);
    channel->reply_bytes = header_return_size(channel->function);
}

void channel_exchange(struct channel *channel, uint32_t sequence, size_t size,
                      struct call_record *record)
{
    *record = (struct call_record){.xid = sequence, .has_xid = true};
    if (channel->socket < 0 && !channel_connect(channel)) {
        record->start_ns = record->end_ns = clock_now_ns();
        fail(record, FAILURE_CANNOT_CONNECT, errno);
        return;
    }
    prepare(channel, sequence, size);
    if (channel->settings->transport == TRANSPORT_UDP)
        exchange_datagrams(channel, sequence, record);
    else
        exchange_stream(channel, sequence, record);
    record->ok = record->failure == FAILURE_NONE;
}

void channel_failure_text(const struct call_record *record, char *text, size_t size)
{
    static const char *const texts[] = {
        [FAILURE_NONE] = "",
        [FAILURE_TIMED_OUT] = "timed out",
        [FAILURE_WRONG_PAYLOAD] = "reply does not hold the expected payload",
        [FAILURE_CANNOT_CONNECT] = "cannot connect",
        [FAILURE_CANNOT_SEND] = "cannot send",
        [FAILURE_CANNOT_RECEIVE] = "cannot receive",
        [FAILURE_CLOSED] = "the server closed the connection",
    };

    if (record->failure_errno != 0)
        snprintf(text, size, "%s: %s", texts[record->failure], strerror(record->failure_errno));
    else
        snprintf(text, size, "%s", texts[record->failure]);
}
