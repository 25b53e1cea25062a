/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The portmapper (RFC 1833 section 3: version 2) on port 111 of UDP and TCP, and this node's MBCF
 * binder. Only tasks of this node may register and unregister; what a task has registered goes when
 * it ends.
 */
#include <rpc/async.h>
#include <rpc/mbcf_binder.h>
#include <rpc/rpc.h>
#include <rpc/socket.h>
#include <sss/system.h>
#include <stdio.h>

enum {
    MAPPINGS = 128,
    INDIRECT_CALLS = 8, /* under way at once; the oldest is given up for one more */
    REPLY_HEADER = 24,
};

struct mapping {
    struct pmap map; /* pm_port 0: free */
    uint16_t task;
};

static struct mapping mappings[MAPPINGS];

/* ---- what is registered ---- */

static struct mapping *find(u_long program, u_long version, u_long protocol)
{
    for (struct mapping *mapping = mappings; mapping < mappings + MAPPINGS; mapping++)
        if (mapping->map.pm_port != 0 && mapping->map.pm_prog == program &&
            mapping->map.pm_vers == version && mapping->map.pm_prot == protocol)
            return mapping;
    return NULL;
}

/* Where the version is not there, any other: the server itself then tells which ones it has. */
static u_long port_of(const struct pmap *query)
{
    const struct mapping *exact = find(query->pm_prog, query->pm_vers, query->pm_prot);

    if (exact != NULL)
        return exact->map.pm_port;
    for (const struct mapping *mapping = mappings; mapping < mappings + MAPPINGS; mapping++)
        if (mapping->map.pm_port != 0 && mapping->map.pm_prog == query->pm_prog &&
            mapping->map.pm_prot == query->pm_prot)
            return mapping->map.pm_port;
    return 0;
}

static bool_t set(const struct pmap *map, uint16_t task)
{
    const struct mapping *found = find(map->pm_prog, map->pm_vers, map->pm_prot);

    if (found != NULL)
        return found->map.pm_port == map->pm_port;
    if (map->pm_port == 0 || map->pm_port > UINT16_MAX)
        return FALSE;
    for (struct mapping *mapping = mappings; mapping < mappings + MAPPINGS; mapping++) {
        if (mapping->map.pm_port != 0)
            continue;
        *mapping = (struct mapping){*map, task};
        return TRUE;
    }
    return FALSE;
}

/* Of all protocols, as the protocol says; the portmapper's own entries stay. */
static bool_t unset(const struct pmap *map)
{
    bool_t any = FALSE;

    for (struct mapping *mapping = mappings; mapping < mappings + MAPPINGS; mapping++) {
        if (mapping->map.pm_port == 0 || mapping->map.pm_prog != map->pm_prog ||
            mapping->map.pm_vers != map->pm_vers || mapping->task == SSS_INFO->task)
            continue;
        mapping->map.pm_port = 0;
        any = TRUE;
    }
    return any;
}

static void forget_gone_tasks(void *unused)
{
    struct sss_task_status status;

    (void)unused;
    for (struct mapping *mapping = mappings; mapping < mappings + MAPPINGS; mapping++) {
        if (mapping->map.pm_port == 0 ||
            (sss_task_status(mapping->task, &status) == 0 && status.state != SSS_GONE))
            continue;
        mbcf_binder_task_gone(mapping->task);
        mapping->map.pm_port = 0;
    }
}

/* DUMP's list, encoded without making it first. */
static bool_t put_mappings(XDR *xdrs, void *unused)
{
    bool_t more = TRUE;

    (void)unused;
    for (struct mapping *mapping = mappings; mapping < mappings + MAPPINGS; mapping++)
        if (mapping->map.pm_port != 0 && (!xdr_bool(xdrs, &more) || !xdr_pmap(xdrs, &mapping->map)))
            return FALSE;
    more = FALSE;
    return xdr_bool(xdrs, &more);
}

/* ---- CALLIT: a call passed on to a service of this node, over UDP; only success is answered ----
 */

struct bytes {
    char *start;
    u_int length;
};

struct indirect_call {
    CLIENT *client; /* NULL: free */
    struct rpc_call *call;
    uint32_t xid;
    struct sss_peer caller;
    u_long port;
    struct bytes result;
    const volatile uint32_t *word;
};

static struct indirect_call indirect_calls[INDIRECT_CALLS];
static unsigned oldest_indirect;
static int udp_socket;

/* Arguments and results of another's procedure, encoded already. */
static bool_t put_encoded(XDR *xdrs, struct bytes *bytes)
{
    return XDR_PUTBYTES(xdrs, bytes->start, bytes->length);
}

static bool_t take_encoded(XDR *xdrs, struct bytes *bytes)
{
    bytes->length = xdrs->x_ops->x_left(xdrs);
    bytes->start = malloc(bytes->length + 1);
    return bytes->start != NULL && XDR_GETBYTES(xdrs, bytes->start, bytes->length);
}

static void indirect_end(struct indirect_call *indirect)
{
    svc_remove_word(indirect->word);
    clnt_destroy(indirect->client);
    free(indirect->result.start);
    indirect->client = NULL;
}

static void answer_indirect(struct indirect_call *indirect)
{
    static char message[UDPMSGSIZE];
    uint32_t header[REPLY_HEADER / 4] = {indirect->xid, REPLY, MSG_ACCEPTED, AUTH_NONE, 0, SUCCESS};
    XDR xdrs;

    xdrmem_create(&xdrs, message, sizeof(message), XDR_ENCODE);
    for (size_t i = 0; i < sizeof(header) / sizeof(header[0]); i++)
        xdr_uint32_t(&xdrs, &header[i]);
    if (xdr_u_long(&xdrs, &indirect->port) &&
        xdr_bytes(&xdrs, &indirect->result.start, &indirect->result.length, UDPMSGSIZE))
        sss_send_to(udp_socket, message, XDR_GETPOS(&xdrs), indirect->caller.address,
                    indirect->caller.port);
}

static void indirect_ready(void *context)
{
    struct indirect_call *indirect = context;

    if (indirect->call == NULL || !rpc_poll(indirect->call))
        return;
    if (rpc_wait(indirect->call, 0) == RPC_SUCCESS)
        answer_indirect(indirect);
    indirect->call = NULL;
    indirect_end(indirect);
}

static struct indirect_call *indirect_place(void)
{
    struct indirect_call *place;

    for (place = indirect_calls; place < indirect_calls + INDIRECT_CALLS; place++)
        if (place->client == NULL)
            return place;
    place = &indirect_calls[oldest_indirect++ % INDIRECT_CALLS];
    rpc_wait(place->call, 0);
    indirect_end(place);
    return place;
}

static void pass_on(const struct pmap *query, u_long procedure, struct bytes arguments,
                    struct svc_req *request)
{
    const struct sockaddr_in *caller = svc_getcaller(request->rq_xprt);
    struct sockaddr_in server = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)query->pm_port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval retry = {.tv_sec = 60}; /* nothing is lost inside a node */
    struct indirect_call *indirect = indirect_place();
    int socket = RPC_ANYSOCK;
    CLIENT *client = clntudp_create(&server, (rpcprog_t)query->pm_prog, (rpcvers_t)query->pm_vers,
                                    retry, &socket);

    if (client == NULL)
        return;
    *indirect = (struct indirect_call){
        .client = client,
        .xid = request->rq_xid,
        .caller = {.address = ntohl(caller->sin_addr.s_addr), .port = ntohs(caller->sin_port)},
        .port = query->pm_port,
        .word = rpc_socket_counter(socket),
    };
    indirect->call = rpc_async(client, (rpcproc_t)procedure, (xdrproc_t)put_encoded, &arguments,
                               (xdrproc_t)take_encoded, &indirect->result);
    if (indirect->call == NULL || !svc_add_word(indirect->word, indirect_ready, indirect))
        indirect_end(indirect);
}

struct indirect_arguments {
    u_long program;
    u_long version;
    u_long procedure;
    struct bytes bytes;
};

static bool_t take_indirect(XDR *xdrs, struct indirect_arguments *arguments)
{
    return xdr_u_long(xdrs, &arguments->program) && xdr_u_long(xdrs, &arguments->version) &&
           xdr_u_long(xdrs, &arguments->procedure) &&
           xdr_bytes(xdrs, &arguments->bytes.start, &arguments->bytes.length, UDPMSGSIZE);
}

/* Not to the portmapper itself: no one registers, or makes big answers, through this. */
static void serve_indirect(struct svc_req *request, SVCXPRT *transport)
{
    struct indirect_arguments arguments = {0};
    struct pmap query;

    if (transport->xp_fd == udp_socket &&
        svc_getargs(transport, (xdrproc_t)take_indirect, &arguments) &&
        arguments.program != PMAPPROG) {
        query = (struct pmap){arguments.program, arguments.version, IPPROTO_UDP, 0};
        query.pm_port = port_of(&query);
        if (query.pm_port != 0)
            pass_on(&query, arguments.procedure, arguments.bytes, request);
    }
    free(arguments.bytes.start);
}

/* ---- the program ---- */

static void serve_mapping(struct svc_req *request, SVCXPRT *transport)
{
    struct pmap map;
    u_long port;
    bool_t done;

    if (!svc_getargs(transport, (xdrproc_t)xdr_pmap, &map)) {
        svcerr_decode(transport);
        return;
    }
    if (request->rq_proc == PMAPPROC_GETPORT) {
        port = port_of(&map);
        svc_sendreply(transport, (xdrproc_t)xdr_u_long, &port);
        return;
    }
    if (transport->xp_peer_task == 0)
        done = FALSE;
    else
        done = request->rq_proc == PMAPPROC_SET ? set(&map, transport->xp_peer_task) : unset(&map);
    svc_sendreply(transport, (xdrproc_t)xdr_bool, &done);
}

static void serve(struct svc_req *request, SVCXPRT *transport)
{
    switch (request->rq_proc) {
    case PMAPPROC_NULL:
        svc_sendreply(transport, (xdrproc_t)xdr_void, NULL);
        break;
    case PMAPPROC_SET:
    case PMAPPROC_UNSET:
    case PMAPPROC_GETPORT:
        serve_mapping(request, transport);
        break;
    case PMAPPROC_DUMP:
        svc_sendreply(transport, (xdrproc_t)put_mappings, NULL);
        break;
    case PMAPPROC_CALLIT:
        serve_indirect(request, transport);
        break;
    default:
        svcerr_noproc(transport);
        break;
    }
}

static bool start_transport(SVCXPRT *transport, int protocol)
{
    struct pmap own = {PMAPPROG, PMAPVERS, (u_long)protocol, PMAPPORT};

    return transport != NULL && svc_register(transport, PMAPPROG, PMAPVERS, serve, 0) &&
           set(&own, SSS_INFO->task);
}

int main(void)
{
    udp_socket = rpc_socket(SSS_UDP, PMAPPORT);
    if (udp_socket < 0 || !start_transport(svcudp_create(udp_socket), IPPROTO_UDP) ||
        !start_transport(svctcp_create(rpc_socket(SSS_TCP, PMAPPORT), 0, 0), IPPROTO_TCP)) {
        printf("portmapper: cannot serve port %d\n", PMAPPORT);
        return 1;
    }
    if (mbcf_binder_open() < 0) {
        printf("portmapper: cannot open the binder's TASKQUE\n");
        return 1;
    }
    svc_add_word(&SSS_INFO->tasks, forget_gone_tasks, NULL);
    sss_ready();
    svc_run();
    return 0;
}
