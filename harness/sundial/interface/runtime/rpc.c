// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "rpc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    CALL = 0,
    REPLY = 1,
    RPC_VERSION = 2,
    AUTH_MOST = 400,
    DATAGRAM_MOST = 65507,
    RECORD_MOST = 16 << 20,
    MARK = 4,
    FIRST_WAIT_MS = 1000,
    TRIES = 4,
    STREAM_WAIT_MS = 30000,
    CONNECTIONS = 64,
    DOORS = 2,
};
static const uint32_t LAST = UINT32_C(1) << 31;

static const char *const STATUS[] = {"SUCCESS",      "PROG_UNAVAIL", "PROG_MISMATCH",
                                     "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"};
static const char *const DENIED[] = {"RPC_MISMATCH", "AUTH_ERROR"};
enum status { SUCCESS, PROG_UNAVAIL, PROG_MISMATCH, PROC_UNAVAIL, GARBAGE_ARGS, SYSTEM_ERR };

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// ---- messages ----

static bool skip_auth(struct xdr *xdr)
{
    uint32_t flavor, length;
    if (!xdr_get(xdr, &flavor) || !xdr_get(xdr, &length) || length > AUTH_MOST)
        return false;
    size_t padded = (length + 3) & ~3u;
    if (padded > xdr->end - xdr->at)
        return false;
    xdr->at += padded;
    return true;
}

static bool put_words(struct xdr *xdr, const uint32_t *words, size_t count)
{
    bool done = true;
    for (size_t i = 0; done && i < count; i++)
        done = xdr_put(xdr, words[i]);
    return done;
}

// One record of one fragment.
static bool send_all(int socket, const uint8_t *bytes, size_t count)
{
    while (count) {
        ssize_t sent = send(socket, bytes, count, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return false;
        bytes += sent > 0 ? sent : 0;
        count -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

static void mark(struct xdr *message)
{
    uint32_t word = htonl(LAST | (uint32_t)(message->at - MARK));
    memcpy(message->bytes, &word, MARK);
}

// A record that comes in pieces.
struct record {
    uint8_t *bytes;
    size_t length; // of what came
    size_t begin;  // of the fragment that comes: its mark
    size_t whole;  // bytes of the message, once it is whole
};

static void drop(struct record *record)
{
    free(record->bytes);
    *record = (struct record){0};
}

// Bytes to read next; 0: the record is whole, without its marks, or too long.
static size_t wanted(struct record *record)
{
    if (record->length < record->begin + MARK)
        return record->begin + MARK - record->length;
    uint32_t word;
    memcpy(&word, record->bytes + record->begin, MARK);
    word = ntohl(word);
    size_t end = record->begin + MARK + (word & ~LAST);
    if (end > RECORD_MOST)
        return 0;
    if (record->length < end)
        return end - record->length;
    memmove(record->bytes + record->begin, record->bytes + record->begin + MARK, word & ~LAST);
    record->length -= MARK;
    record->begin = record->length;
    if (!(word & LAST))
        return MARK;
    record->whole = record->length;
    return 0;
}

// 1: whole; 0: more must come; -1: the connection is over.
static int receive(int socket, struct record *record)
{
    size_t count = wanted(record);
    if (count) {
        uint8_t *bytes = realloc(record->bytes, record->length + count);
        if (!bytes)
            return -1;
        record->bytes = bytes;
        ssize_t got = recv(socket, bytes + record->length, count, 0);
        if (got <= 0)
            return got < 0 && errno == EINTR ? 0 : -1;
        record->length += (size_t)got;
        count = wanted(record);
    }
    if (count)
        return 0;
    return record->begin == record->length && record->begin == record->whole ? 1 : -1;
}

// ---- clients ----

static bool address_of(struct sockaddr_in *to, const char *address, const char *port)
{
    char *end;
    unsigned long number = strtoul(port, &end, 10);
    *to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)number)};
    return *port && !*end && number && number <= 65535 &&
           inet_pton(AF_INET, address, &to->sin_addr) == 1;
}

const char *rpc_open(struct rpc_client *client, const char *address, const char *port, bool stream)
{
    struct sockaddr_in to;
    int on = 1;
    *client = (struct rpc_client){.stream = stream, .xid = (uint32_t)(now_ns() >> 10)};
    if (!address_of(&to, address, port))
        return "not an address of IPv4 and a port";
    client->socket = socket(AF_INET, stream ? SOCK_STREAM : SOCK_DGRAM, 0);
    if (client->socket < 0 || connect(client->socket, (struct sockaddr *)&to, sizeof to))
        return strerror(errno);
    if (stream)
        setsockopt(client->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return NULL;
}

void rpc_close(struct rpc_client *client)
{
    close(client->socket);
    xdr_forget(&client->memory);
    free(client->call.bytes);
}

static bool comes(int socket, uint64_t until_ns)
{
    for (;;) {
        uint64_t at_ns = now_ns();
        struct pollfd door = {.fd = socket, .events = POLLIN};
        int ready = poll(&door, 1,
                         at_ns < until_ns ? (int)((until_ns - at_ns + 999999) / 1000000) : 0);
        if (ready >= 0 || errno != EINTR)
            return ready > 0;
    }
}

// A reply with the call's xid, at its beginning; NULL: none came in time, or the connection is
// over.
static uint8_t *reply_to(struct rpc_client *client, uint64_t until_ns, size_t *length)
{
    while (comes(client->socket, until_ns)) {
        struct record record = {0};
        uint32_t xid = htonl(client->xid);
        if (client->stream) {
            int state = 0;
            while (!state && comes(client->socket, until_ns))
                state = receive(client->socket, &record);
            if (state <= 0) {
                drop(&record);
                return NULL;
            }
        } else {
            record.bytes = malloc(DATAGRAM_MOST);
            ssize_t got = record.bytes ? recv(client->socket, record.bytes, DATAGRAM_MOST, 0) : -1;
            record.whole = got < 0 ? 0 : (size_t)got;
        }
        if (record.whole >= 8 && !memcmp(record.bytes, &xid, 4)) {
            *length = record.whole;
            return record.bytes;
        }
        drop(&record);
    }
    return NULL;
}

static const char *status_of(struct xdr *reply)
{
    uint32_t xid, type, denied, status;
    if (!xdr_get(reply, &xid) || !xdr_get(reply, &type) || type != REPLY ||
        !xdr_get(reply, &denied) || denied > 1)
        return "NOT_A_REPLY";
    if (!denied && !skip_auth(reply))
        return "NOT_A_REPLY";
    if (!xdr_get(reply, &status) || status > (denied ? 1u : 5u))
        return "NOT_A_REPLY";
    return denied ? DENIED[status] : STATUS[status];
}

static uint8_t *exchange(struct rpc_client *client, size_t *length)
{
    const uint8_t *message = client->call.bytes + (client->stream ? 0 : MARK);
    size_t count = client->call.at - (client->stream ? 0 : MARK);
    uint64_t wait_ms = client->stream ? STREAM_WAIT_MS : FIRST_WAIT_MS;
    for (int i = 0; i < (client->stream ? 1 : TRIES); i++, wait_ms *= 2) {
        bool sent = client->stream ? send_all(client->socket, message, count)
                                   : send(client->socket, message, count, 0) == (ssize_t)count;
        if (!sent && errno != ECONNREFUSED)
            return NULL;
        uint8_t *reply = reply_to(client, now_ns() + wait_ms * 1000000, length);
        if (reply)
            return reply;
    }
    errno = ETIMEDOUT;
    return NULL;
}

const char *rpc_call(struct rpc_client *client, const struct rpc_procedure *procedure,
                     void *arguments, void *results)
{
    uint32_t head[] = {0,
                       ++client->xid,
                       CALL,
                       RPC_VERSION,
                       procedure->program,
                       procedure->version,
                       procedure->number,
                       0,
                       0,
                       0,
                       0};
    struct xdr *call = &client->call;
    xdr_begin(call);
    if (!put_words(call, head, sizeof head / sizeof *head))
        return "no memory";
    if (procedure->take && !xdr_encode(call, procedure->take, arguments))
        return "an argument is not a value of its type";
    if (call->at > (client->stream ? (size_t)RECORD_MOST : (size_t)DATAGRAM_MOST + MARK))
        return "the call is too long";
    mark(call);
    size_t length = 0;
    uint64_t begin_ns = now_ns();
    uint8_t *bytes = exchange(client, &length);
    uint64_t took_ns = now_ns() - begin_ns;
    if (!bytes)
        return strerror(errno);
    struct xdr reply = {.bytes = bytes, .end = length};
    const char *status = status_of(&reply);
    bool good = !strcmp(status, STATUS[SUCCESS]);
    if (good && !(procedure->give ? xdr_decode(&client->memory, bytes + reply.at, length - reply.at,
                                               procedure->give, results)
                                  : reply.at == length))
        status = "GARBAGE_RESULTS";
    free(bytes);
    printf("rpc 0x%08" PRIx32 " %s %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %s |",
           client->xid, client->stream ? "tcp" : "udp", procedure->program, procedure->version,
           procedure->number, took_ns, status);
    if (procedure->take)
        xdr_print(stdout, procedure->take, arguments);
    printf(" |");
    good = !strcmp(status, STATUS[SUCCESS]);
    if (good && procedure->give)
        xdr_print(stdout, procedure->give, results);
    printf("\n");
    fflush(stdout);
    return good ? NULL : status;
}

// ---- servers ----

struct service {
    const struct rpc_procedure *procedures;
    size_t count;
    struct xdr reply; // MARK bytes, then the message
};

static const struct rpc_procedure *find(const struct service *service, const uint32_t *call,
                                        enum status *status, uint32_t *versions)
{
    *status = PROG_UNAVAIL;
    versions[0] = UINT32_MAX;
    versions[1] = 0;
    for (size_t i = 0; i < service->count; i++) {
        const struct rpc_procedure *each = &service->procedures[i];
        if (each->program != call[0])
            continue;
        versions[0] = each->version < versions[0] ? each->version : versions[0];
        versions[1] = each->version > versions[1] ? each->version : versions[1];
        if (each->version == call[1] && *status != PROC_UNAVAIL)
            *status = PROC_UNAVAIL;
        else if (*status == PROG_UNAVAIL)
            *status = PROG_MISMATCH;
        if (each->version == call[1] && each->number == call[2])
            return each;
    }
    if (*status == PROC_UNAVAIL && call[2] == 0)
        *status = SUCCESS; // the null procedure (RFC 5531 section 12.1)
    return NULL;
}

static enum status serve_call(struct service *service, const struct rpc_procedure *each,
                              const uint8_t *bytes, size_t length)
{
    struct xdr memory = {0};
    void *arguments = xdr_new(&memory, each->arguments), *results = xdr_new(&memory, each->results);
    enum status status = GARBAGE_ARGS;
    if (!arguments || !results) {
        status = SYSTEM_ERR;
    } else if (each->take ? xdr_decode(&memory, bytes, length, each->take, arguments) : !length) {
        size_t at = service->reply.at;
        bool done = each->serve(arguments, results, &memory) && xdr_put(&service->reply, SUCCESS);
        done = done && (!each->give || xdr_encode(&service->reply, each->give, results));
        status = done ? SUCCESS : SYSTEM_ERR;
        if (!done)
            service->reply.at = at;
    }
    xdr_forget(&memory);
    return status;
}

// Write the reply to a message; false: it is not a call.
static bool answer(struct service *service, const uint8_t *bytes, size_t length)
{
    struct xdr in = {.bytes = (uint8_t *)(uintptr_t)bytes, .end = length}, *reply = &service->reply;
    uint32_t xid, type, rpc, call[3], versions[2];
    if (!xdr_get(&in, &xid) || !xdr_get(&in, &type) || type != CALL || !xdr_get(&in, &rpc))
        return false;
    xdr_begin(reply);
    if (rpc != RPC_VERSION) {
        uint32_t words[] = {0, xid, REPLY, 1, 0, RPC_VERSION, RPC_VERSION};
        return put_words(reply, words, sizeof words / sizeof *words);
    }
    if (!xdr_get(&in, &call[0]) || !xdr_get(&in, &call[1]) || !xdr_get(&in, &call[2]) ||
        !skip_auth(&in) || !skip_auth(&in))
        return false;
    uint32_t head[] = {0, xid, REPLY, 0, 0, 0};
    if (!put_words(reply, head, sizeof head / sizeof *head))
        return false;
    enum status status;
    const struct rpc_procedure *each = find(service, call, &status, versions);
    if (each) {
        status = serve_call(service, each, bytes + in.at, length - in.at);
        if (status == SUCCESS)
            return true;
    } else if (status == SUCCESS && in.at != length) {
        status = GARBAGE_ARGS;
    }
    return xdr_put(reply, status) && (status != PROG_MISMATCH || put_words(reply, versions, 2));
}

static void serve_datagram(struct service *service, int door)
{
    static uint8_t bytes[DATAGRAM_MOST];
    struct sockaddr_in peer;
    socklen_t size = sizeof peer;
    ssize_t got = recvfrom(door, bytes, sizeof bytes, 0, (struct sockaddr *)&peer, &size);
    if (got < 0 || !answer(service, bytes, (size_t)got))
        return;
    if (service->reply.at - MARK > DATAGRAM_MOST) {
        service->reply.at = MARK + 20; // behind the verifier
        xdr_put(&service->reply, SYSTEM_ERR);
    }
    sendto(door, service->reply.bytes + MARK, service->reply.at - MARK, 0, (struct sockaddr *)&peer,
           size);
}

// False: the connection is over.
static bool serve_stream(struct service *service, int socket, struct record *record)
{
    int state = receive(socket, record);
    if (state <= 0)
        return state == 0;
    bool done = answer(service, record->bytes, record->whole);
    drop(record);
    if (!done)
        return false;
    mark(&service->reply);
    return send_all(socket, service->reply.bytes, service->reply.at);
}

static int open_door(int type, const char *port)
{
    struct sockaddr_in here;
    int on = 1;
    if (!address_of(&here, "0.0.0.0", port)) {
        fprintf(stderr, "%s: not a port\n", port);
        return -1;
    }
    int door = socket(AF_INET, type, 0);
    if (door >= 0 && !setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) &&
        !bind(door, (struct sockaddr *)&here, sizeof here) &&
        (type == SOCK_DGRAM || !listen(door, CONNECTIONS)))
        return door;
    fprintf(stderr, "port %s: %s\n", port, strerror(errno));
    if (door >= 0)
        close(door);
    return -1;
}

int rpc_serve(const struct rpc_procedure *procedures, size_t count, const char *port)
{
    struct service service = {.procedures = procedures, .count = count};
    struct pollfd doors[DOORS + CONNECTIONS];
    struct record records[DOORS + CONNECTIONS] = {{0}};
    nfds_t number = DOORS;
    doors[0] = (struct pollfd){.fd = open_door(SOCK_DGRAM, port), .events = POLLIN};
    doors[1] = (struct pollfd){.fd = doors[0].fd < 0 ? -1 : open_door(SOCK_STREAM, port),
                               .events = POLLIN};
    if (doors[1].fd < 0)
        return 1;
    for (;;) {
        doors[1].events = number < DOORS + CONNECTIONS ? POLLIN : 0;
        if (poll(doors, number, -1) < 0 && errno != EINTR)
            return 1;
        if (doors[0].revents)
            serve_datagram(&service, doors[0].fd);
        for (nfds_t i = number; i-- > DOORS;) {
            if (!doors[i].revents || serve_stream(&service, doors[i].fd, &records[i]))
                continue;
            close(doors[i].fd);
            drop(&records[i]);
            number--;
            doors[i] = doors[number];
            records[i] = records[number];
            records[number] = (struct record){0};
        }
        if (doors[1].revents & POLLIN) {
            int on = 1, peer = accept(doors[1].fd, NULL, NULL);
            if (peer < 0)
                continue;
            setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            doors[number++] = (struct pollfd){.fd = peer, .events = POLLIN};
        }
    }
}
