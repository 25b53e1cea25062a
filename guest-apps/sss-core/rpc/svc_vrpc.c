/* SPDX-License-Identifier: Apache-2.0 */
/* The server of vRPC: one transport for all clients, each of which has a line. Arguments are
 * decoded where they have arrived, replies encoded where the client reads them. */
#include "svc_vrpc.h"

#include <rpc/rpc.h>
#include <sss/system.h>
#include <stdlib.h>

#include "transport.h"
#include "vrpc_carriers.h"

enum {
    OFFERS = 8,             /* programs */
    SWEEP = 1024,           /* looks, until one for clients that have gone */
    BUSY_LOOKS = 16,        /* in vain, take no longer than one that finds a call */
    CALL_HEADER_BYTES = 40, /* of the shortest call */
};

struct svcvrpc {
    SVCXPRT transport; /* first */
    struct svcvrpc_options options;
    struct svcvrpc_counters counters;
    struct vrpc_offer *offers[OFFERS];
    unsigned offer_count;
    volatile uint32_t notified;
    unsigned looks;
    struct vrpc_line *lines;

    /* of the call at hand */
    struct vrpc_line *line;
    struct ring_message message;
    XDR arguments;
    uint32_t xid;
};

static void notified(void *context);

static struct svcvrpc *of(SVCXPRT *transport)
{
    return transport->xp_p1;
}

/* ---- one call ---- */

static bool_t receive(SVCXPRT *transport, struct rpc_msg *call)
{
    struct svcvrpc *server = of(transport);

    xdrmem_create(&server->arguments, (char *)(uintptr_t)server->message.bytes,
                  server->message.length, XDR_DECODE);
    server->arguments.x_in_place = TRUE; /* the message stays until the reply is there */
    if (!xdr_callmsg(&server->arguments, call)) {
        server->counters.malformed++;
        return FALSE;
    }
    server->xid = call->rm_xid;
    return TRUE;
}

static enum xprt_stat idle(SVCXPRT *transport)
{
    (void)transport;
    return XPRT_IDLE;
}

static bool_t get_arguments(SVCXPRT *transport, xdrproc_t decode, void *arguments)
{
    return decode(&of(transport)->arguments, arguments);
}

static bool_t free_arguments(SVCXPRT *transport, xdrproc_t decode, void *arguments)
{
    of(transport)->arguments.x_op = XDR_FREE;
    return decode(&of(transport)->arguments, arguments);
}

/* A client that does not take its replies must not keep others waiting. */
static bool_t keep_reply(struct vrpc_line *line, struct rpc_msg *reply, u_int length)
{
    XDR xdrs;

    line->waiting = malloc(length);
    if (line->waiting == NULL)
        return FALSE;
    line->waiting_bytes = length;
    xdrmem_create(&xdrs, (char *)line->waiting, length, XDR_ENCODE);
    return transport_encode_reply(&xdrs, reply);
}

static bool_t send_reply(struct vrpc_line *line, struct rpc_msg *reply, u_int length)
{
    uint8_t *place = vrpc_line_begin(line, length);
    bool_t encoded;
    XDR xdrs;

    if (place == NULL)
        return keep_reply(line, reply, length);
    xdrmem_create(&xdrs, (char *)place, length, XDR_ENCODE);
    encoded = transport_encode_reply(&xdrs, reply);
    vrpc_line_end(line);
    return encoded;
}

static bool_t answer(SVCXPRT *transport, struct rpc_msg *reply)
{
    struct svcvrpc *server = of(transport);
    u_int length;

    reply->rm_xid = server->xid;
    reply->rm_direction = REPLY;
    if (!transport_measure_reply(reply, &length) || length > VRPC_MESSAGE_MOST) {
        if (reply->rm_reply.rp_stat != MSG_ACCEPTED)
            return FALSE;
        reply->acpted_rply.ar_stat = SYSTEM_ERR; /* not of its type, or too long */
        if (!transport_measure_reply(reply, &length))
            return FALSE;
    }
    if (server->line->waiting != NULL)
        return FALSE; /* a second reply to the same call */
    server->counters.replies++;
    return send_reply(server->line, reply, length);
}

static void destroy(SVCXPRT *transport)
{
    (void)transport; /* one for each task, as long as it lives */
}

static void serve_call(struct svcvrpc *server, struct vrpc_line *line)
{
    server->line = line;
    if (server->message.length < CALL_HEADER_BYTES) {
        server->counters.malformed++;
        return;
    }
    server->counters.requests++;
    server->transport.xp_raddr.sin_addr.s_addr = line->node;
    server->transport.xp_raddr.sin_port = line->task;
    svc_getreq_transport(&server->transport);
}

/* ---- lines ---- */

/* Of a line over MBCF, the words that its client WRITES are what is waited for; of one over VMMC,
 * its notifications grow the server's word. */
static bool watch(struct svcvrpc *server, struct vrpc_line *line)
{
    struct sss_wait words[VRPC_WORDS];

    if (server->options.wait == VRPC_POLL)
        return true;
    line->carrier->words(line, words);
    return svc_add_word(words[0].address, notified, server) &&
           svc_add_word(words[1].address, notified, server);
}

static void watch_no_more(struct vrpc_line *line)
{
    struct sss_wait words[VRPC_WORDS];

    line->carrier->words(line, words);
    svc_remove_word(words[0].address);
    svc_remove_word(words[1].address);
}

static void end_line(struct svcvrpc *server, struct vrpc_line *line)
{
    struct vrpc_line **place = &server->lines;

    while (*place != line)
        place = &(*place)->next;
    *place = line->next;
    free(line->waiting);
    watch_no_more(line);
    line->carrier->close(line);
    server->counters.clients_gone++;
}

/* Whether the reply that waits, if any, is on its way. */
static bool send_waiting(struct vrpc_line *line)
{
    uint8_t *place;

    if (line->waiting == NULL)
        return true;
    place = vrpc_line_begin(line, line->waiting_bytes);
    if (place == NULL)
        return false;
    memcpy(place, line->waiting, line->waiting_bytes);
    vrpc_line_end(line);
    free(line->waiting);
    line->waiting = NULL;
    return true;
}

/* Whether there was anything. */
static bool serve_line(struct svcvrpc *server, struct vrpc_line *line)
{
    enum ring_taken taken;

    if (!send_waiting(line))
        return false;
    taken = vrpc_line_take(line, &server->message);
    if (taken == RING_MESSAGE) {
        serve_call(server, line);
        vrpc_line_release(line, &server->message);
    } else if (taken == RING_BROKEN) {
        server->counters.malformed++;
        end_line(server, line);
    }
    return taken != RING_NOTHING;
}

/* Whether there was anything. */
static bool serve_lines(struct svcvrpc *server)
{
    bool any = false;

    for (struct vrpc_line *line = server->lines, *next; line != NULL; line = next) {
        next = line->next;
        if (!vrpc_line_is_quiet(line) || line->waiting != NULL)
            any |= serve_line(server, line);
    }
    return any;
}

static void add_line(struct svcvrpc *server, struct vrpc_line *line)
{
    line->next = server->lines;
    server->lines = line;
    server->counters.clients++;
}

static bool accept_clients(struct svcvrpc *server)
{
    bool any = false;

    for (unsigned i = 0; i < server->offer_count; i++) {
        struct vrpc_line *line = vrpc_vmmc_accept(server->offers[i]);

        if (line == NULL)
            continue;
        add_line(server, line);
        any = true;
    }
    return any;
}

/* Clients whose nodes have crashed report nothing: their lines end when a store to them is refused.
 */
static void probe_lines(struct svcvrpc *server)
{
    for (struct vrpc_line *line = server->lines; line != NULL; line = line->next)
        if (line->carrier->probe != NULL)
            line->carrier->probe(line);
}

static void sweep(struct svcvrpc *server)
{
    for (struct vrpc_line *line = server->lines, *next; line != NULL; line = next) {
        next = line->next;
        if (line->carrier->is_gone(line))
            end_line(server, line);
    }
    for (unsigned i = 0; i < server->offer_count; i++)
        if (vrpc_vmmc_was_full(server->offers[i]))
            probe_lines(server);
}

/* ---- waiting ---- */

/* Now and then, however busy the server is, clients that have come and gone are looked for. */
static void count_looks(struct svcvrpc *server, unsigned looks)
{
    server->looks += looks;
    if (server->looks < SWEEP)
        return;
    server->looks = 0;
    accept_clients(server);
    sweep(server);
}

static bool_t look(void *context, unsigned turns)
{
    struct svcvrpc *server = context;

    for (unsigned turn = 0; turn < turns; turn++)
        if (serve_lines(server) || accept_clients(server)) {
            count_looks(server, BUSY_LOOKS);
            return TRUE;
        }
    server->counters.polls += turns;
    count_looks(server, turns);
    return FALSE;
}

/* Something has been notified, or WRITTEN. */
static void notified(void *context)
{
    struct svcvrpc *server = context;
    unsigned round = 0;

    while (round < SWEEP / BUSY_LOOKS && (serve_lines(server) || accept_clients(server)))
        round++;
    accept_clients(server);
    sweep(server);
    if (round == SWEEP / BUSY_LOOKS) /* other words come first, and there may be more */
        __atomic_fetch_add(&server->notified, 1, __ATOMIC_RELAXED);
}

/* ---- binding ---- */

static bool is_offered(const struct svcvrpc *server, rpcprog_t program, rpcvers_t version)
{
    for (unsigned i = 0; i < server->offer_count; i++)
        if (vrpc_vmmc_offers(server->offers[i], program, version))
            return true;
    return false;
}

static bool_t offer(SVCXPRT *transport, rpcprog_t program, rpcvers_t version)
{
    struct svcvrpc *server = of(transport);

    if (!server->options.over_vmmc || is_offered(server, program, version))
        return TRUE;
    if (server->offer_count == OFFERS)
        return FALSE;
    server->offers[server->offer_count] = vrpc_vmmc_offer(program, version, &server->options,
                                                          &server->notified);
    if (server->offers[server->offer_count] == NULL ||
        (server->options.wait == VRPC_NOTIFY &&
         !svc_add_word(vrpc_vmmc_wanted(server->offers[server->offer_count]), notified, server)))
        return FALSE;
    server->offer_count++;
    return TRUE;
}

static void bind_client(SVCXPRT *transport, const struct mbm_origin *origin,
                        const struct mbm_bind *bind, enum mbm_refusal why)
{
    struct svcvrpc *server = of(transport);
    struct vrpc_line *line;

    sweep(server);
    line = vrpc_mbcf_accept(origin, bind, why);
    if (line == NULL)
        return;
    add_line(server, line);
    if (!watch(server, line))
        end_line(server, line);
}

static void look_after(SVCXPRT *transport)
{
    sweep(of(transport));
}

/* ---- making one ---- */

SVCXPRT *svcvrpc_create(const struct svcvrpc_options *options)
{
    static const struct xp_ops operations = {receive, idle,           get_arguments,
                                             answer,  free_arguments, destroy};
    static struct svcvrpc_binding binding = {bind_client, look_after, MBM_RINGS};
    struct svcvrpc *server = calloc(1, sizeof(*server));

    if (server == NULL)
        return NULL;
    server->options = *options;
    server->transport = (SVCXPRT){.xp_fd = -1,
                                  .xp_port = SSS_INFO->node,
                                  .xp_ops = &operations,
                                  .xp_p1 = server,
                                  .xp_p2 = &binding,
                                  .xp_netid = "vrpc",
                                  .xp_offer = offer};
    if (options->wait == VRPC_POLL)
        svc_poll(look, server);
    else if (!svc_add_word(&server->notified, notified, server)) {
        free(server);
        return NULL;
    }
    return &server->transport;
}

const struct svcvrpc_counters *svcvrpc_counters(const SVCXPRT *transport)
{
    const struct svcvrpc *server = transport->xp_p1;

    return &server->counters;
}
