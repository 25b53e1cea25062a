/* SPDX-License-Identifier: Apache-2.0 */
/* A server over UDP: at least once, or, with a reply cache, at most once as long as a reply stays
 * in it. */
#include <rpc/copies.h>
#include <rpc/rpc.h>
#include <rpc/socket.h>
#include <sss/system.h>

#include "transport.h"

enum {
    MESSAGE_LEAST = 400,
    MESSAGE_MOST = 65507,
    CACHE_MOST = 1 << 20,
};

/* What makes two requests the same one. */
struct request_key {
    uint32_t xid;
    uint32_t address;
    uint32_t port;
    rpcprog_t program;
    rpcvers_t version;
    rpcproc_t procedure;
};

struct cached_reply {
    struct cached_reply *next; /* of the same bucket */
    struct request_key key;
    char *bytes; /* NULL: the place is not used */
    u_int length;
};

struct reply_cache {
    u_long entries;
    u_long oldest; /* the place that is used next */
    struct cached_reply *places;
    struct cached_reply **buckets; /* as many */
};

struct udp_service {
    SVCXPRT transport;
    u_int size;
    char *request;
    char *reply;
    XDR arguments;
    struct sss_peer caller;
    struct request_key key;
    uint32_t taken; /* of what the socket's counter has counted; each receive takes one */
    struct reply_cache *cache;
    struct svcudp_counters counters;
};

static struct udp_service *of(SVCXPRT *transport)
{
    return transport->xp_p1;
}

/* ---- the cache ---- */

static struct cached_reply **bucket_of(struct reply_cache *cache, const struct request_key *key)
{
    return &cache->buckets[(key->xid ^ key->port ^ key->address) % cache->entries];
}

static struct cached_reply *cache_find(struct reply_cache *cache, const struct request_key *key)
{
    struct cached_reply *found = *bucket_of(cache, key);

    while (found != NULL && memcmp(&found->key, key, sizeof(*key)) != 0)
        found = found->next;
    return found;
}

static void cache_forget(struct reply_cache *cache, struct cached_reply *entry)
{
    struct cached_reply **place = bucket_of(cache, &entry->key);

    while (*place != entry)
        place = &(*place)->next;
    *place = entry->next;
    free(entry->bytes);
    entry->bytes = NULL;
}

/* Without memory for it the reply is not kept: a duplicate would then be executed again, as without
 * a cache. */
static void cache_put(struct reply_cache *cache, const struct request_key *key, const char *reply,
                      u_int length)
{
    struct cached_reply *entry = &cache->places[cache->oldest];
    struct cached_reply **bucket = bucket_of(cache, key);

    if (entry->bytes != NULL)
        cache_forget(cache, entry);
    entry->bytes = malloc(length);
    if (entry->bytes == NULL)
        return;
    cache->oldest = (cache->oldest + 1) % cache->entries;
    memcpy(entry->bytes, reply, length);
    rpc_copied(RPC_COPY_OTHER, length);
    entry->key = *key;
    entry->length = length;
    entry->next = *bucket;
    *bucket = entry;
}

int svcudp_enablecache(SVCXPRT *transport, u_long entries)
{
    struct udp_service *service = of(transport);
    struct reply_cache *cache;

    if (service->cache != NULL || entries == 0 || entries > CACHE_MOST)
        return 0;
    cache = mem_alloc(sizeof(*cache));
    if (cache == NULL)
        return 0;
    cache->entries = entries;
    cache->places = calloc(entries, sizeof(*cache->places));
    cache->buckets = calloc(entries, sizeof(*cache->buckets));
    if (cache->places == NULL || cache->buckets == NULL) {
        free(cache->places);
        free(cache->buckets);
        free(cache);
        return 0;
    }
    service->cache = cache;
    return 1;
}

static void cache_free(struct reply_cache *cache)
{
    if (cache == NULL)
        return;
    for (u_long i = 0; i < cache->entries; i++)
        free(cache->places[i].bytes);
    free(cache->places);
    free(cache->buckets);
    free(cache);
}

void svcudp_counters(const SVCXPRT *transport, struct svcudp_counters *counters)
{
    *counters = ((const struct udp_service *)transport->xp_p1)->counters;
}

/* ---- the transport ---- */

static void send_reply(struct udp_service *service, const char *bytes, u_int length)
{
    rpc_copied(RPC_COPY_SEND, length);
    /* What cannot be sent is as good as lost on the way: the caller asks again. */
    (void)sss_send_to(service->transport.xp_fd, bytes, length, service->caller.address,
                      service->caller.port);
}

static bool answer_from_cache(struct udp_service *service)
{
    const struct cached_reply *found = service->cache == NULL
                                           ? NULL
                                           : cache_find(service->cache, &service->key);

    if (found == NULL)
        return false;
    service->counters.answered_from_cache++;
    send_reply(service, found->bytes, found->length);
    return true;
}

/* -> bytes of a request, 0 where what came was none */
static u_int receive(struct udp_service *service)
{
    uint32_t counter = *rpc_socket_counter(service->transport.xp_fd);
    int length = sss_receive_from(service->transport.xp_fd, service->request, service->size,
                                  &service->caller);

    service->taken++;
    if (length == -SSS_EAGAIN)
        service->taken = counter;
    if (length <= 0)
        return 0;
    rpc_copied(RPC_COPY_RECEIVE, (size_t)length);
    return (u_int)length;
}

static bool_t udp_recv(SVCXPRT *transport, struct rpc_msg *message)
{
    struct udp_service *service = of(transport);
    u_int length = receive(service);

    if (length == 0)
        return FALSE;
    xdrmem_create(&service->arguments, service->request, length, XDR_DECODE);
    if (!xdr_callmsg(&service->arguments, message))
        return FALSE;
    service->counters.requests++;
    transport_set_caller(transport, &service->caller);
    service->key = (struct request_key){message->rm_xid,          service->caller.address,
                                        service->caller.port,     message->rm_call.cb_prog,
                                        message->rm_call.cb_vers, message->rm_call.cb_proc};
    return !answer_from_cache(service);
}

static enum xprt_stat udp_stat(SVCXPRT *transport)
{
    return of(transport)->taken != *rpc_socket_counter(transport->xp_fd) ? XPRT_MOREREQS
                                                                         : XPRT_IDLE;
}

static bool_t udp_getargs(SVCXPRT *transport, xdrproc_t decode, void *arguments)
{
    return decode(&of(transport)->arguments, arguments);
}

static bool_t udp_reply(SVCXPRT *transport, struct rpc_msg *reply)
{
    struct udp_service *service = of(transport);
    u_int length;
    XDR xdrs;

    reply->rm_xid = service->key.xid;
    xdrmem_create(&xdrs, service->reply, service->size, XDR_ENCODE);
    if (!transport_encode_reply(&xdrs, reply))
        return FALSE;
    length = XDR_GETPOS(&xdrs);
    if (service->cache != NULL)
        cache_put(service->cache, &service->key, service->reply, length);
    send_reply(service, service->reply, length);
    return TRUE;
}

static bool_t udp_freeargs(SVCXPRT *transport, xdrproc_t proc, void *arguments)
{
    (void)transport;
    xdr_free(proc, arguments);
    return TRUE;
}

static void udp_free(struct udp_service *service)
{
    cache_free(service->cache);
    free(service->request);
    free(service->reply);
    free(service);
}

static void udp_destroy(SVCXPRT *transport)
{
    svc_remove_word(rpc_socket_counter(transport->xp_fd));
    rpc_socket_close(transport->xp_fd);
    udp_free(of(transport));
}

static void udp_ready(void *context)
{
    SVCXPRT *transport = context;

    while (SVC_STAT(transport) == XPRT_MOREREQS)
        svc_getreq_transport(transport);
}

static struct udp_service *udp_new_service(u_int size)
{
    struct udp_service *service = mem_alloc(sizeof(*service));

    if (service == NULL)
        return NULL;
    service->size = size;
    service->request = malloc(size);
    service->reply = malloc(size);
    if (service->request != NULL && service->reply != NULL)
        return service;
    udp_free(service);
    return NULL;
}

SVCXPRT *svcudp_bufcreate(int socket, u_int sendsize, u_int recvsize)
{
    static const struct xp_ops ops = {udp_recv,  udp_stat,     udp_getargs,
                                      udp_reply, udp_freeargs, udp_destroy};
    u_int size = RNDUP(sendsize > recvsize ? sendsize : recvsize);
    struct udp_service *service = udp_new_service(size < MESSAGE_LEAST  ? MESSAGE_LEAST
                                                  : size > MESSAGE_MOST ? MESSAGE_MOST
                                                                        : size);
    SVCXPRT *transport;

    if (service == NULL)
        return NULL;
    transport = &service->transport;
    transport->xp_fd = transport_socket(socket, SSS_UDP);
    transport->xp_ops = &ops;
    transport->xp_p1 = service;
    transport->xp_netid = "udp";
    if (transport->xp_fd < 0) {
        udp_free(service);
        return NULL;
    }
    transport->xp_port = rpc_socket_port(transport->xp_fd);
    if (!svc_add_word(rpc_socket_counter(transport->xp_fd), udp_ready, transport)) {
        rpc_socket_close(transport->xp_fd);
        udp_free(service);
        return NULL;
    }
    return transport;
}

SVCXPRT *svcudp_create(int socket)
{
    return svcudp_bufcreate(socket, UDPMSGSIZE, UDPMSGSIZE);
}
