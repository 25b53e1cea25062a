/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "functions.h"
#include "samples.h"

enum transport { TRANSPORT_UDP, TRANSPORT_TCP };

enum { PAYLOAD_LIMIT = 4 << 20, DATAGRAM_LIMIT = 65507 };

/* How all callers of a step reach the server. */
struct channel_settings {
    enum transport transport;
    struct sockaddr_in server;
    unsigned client_port; /* of the first thread, the others follow; 0: the kernel chooses */
    int socket_buffer;    /* SO_SNDBUF and SO_RCVBUF; 0: the kernel's default */
    bool tcp_nodelay;
    long long retry_timeout_ms; /* UDP: between two sends of one request */
    long long total_timeout_ms;
};

/* One caller's socket and buffers. */
struct channel {
    const struct channel_settings *settings;
    size_t thread;
    int socket; /* -1: not connected */
    unsigned client_port;
    enum function function; /* that is called; 0: an echo */
    uint8_t *request;
    uint8_t *reply;
    size_t request_bytes, reply_bytes; /* of the present call */
    bool stale;                        /* late replies to earlier requests may still come */
    unsigned closed_retransmits;       /* of TCP, on connections that failed calls have closed */
};

void channel_init(struct channel *channel, const struct channel_settings *settings, size_t thread);

/* A fresh socket; false with errno. */
bool channel_connect(struct channel *channel);

void channel_disconnect(struct channel *channel);

/* Sends payload `sequence` of `size` bytes and waits for its echo, or calls the function; fills in
 * the record. */
void channel_exchange(struct channel *channel, uint32_t sequence, size_t size,
                      struct call_record *record);

/* Segments that TCP sent again so far, on all of the channel's connections; 0 for UDP. */
unsigned channel_tcp_retransmits(const struct channel *channel);

/* The text of a record's failure (failure_text_fn). */
void channel_failure_text(const struct call_record *record, char *text, size_t size);
