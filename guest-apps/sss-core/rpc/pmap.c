/* SPDX-License-Identifier: Apache-2.0 */
/* The portmapper's protocol and its clients (RFC 1833 section 3). */
#include <rpc/rpc.h>

#include "client.h"

enum { RETRY_S = 5, TOTAL_S = 60 };

bool_t xdr_pmap(XDR *xdrs, struct pmap *map)
{
    return xdr_u_long(xdrs, &map->pm_prog) && xdr_u_long(xdrs, &map->pm_vers) &&
           xdr_u_long(xdrs, &map->pm_prot) && xdr_u_long(xdrs, &map->pm_port);
}

static bool_t free_list(struct pmaplist **list)
{
    while (*list != NULL) {
        struct pmaplist *entry = *list;

        *list = entry->pml_next;
        free(entry);
    }
    return TRUE;
}

bool_t xdr_pmaplist(XDR *xdrs, struct pmaplist **list)
{
    if (xdrs->x_op == XDR_FREE)
        return free_list(list);
    for (;; list = &(*list)->pml_next) {
        bool_t more = *list != NULL;

        if (!xdr_bool(xdrs, &more))
            return FALSE;
        if (!more)
            return TRUE;
        if (xdrs->x_op == XDR_DECODE)
            *list = mem_alloc(sizeof(**list));
        if (*list == NULL || !xdr_pmap(xdrs, &(*list)->pml_map))
            return FALSE;
    }
}

/* One question over UDP -> whether there is an answer; else rpc_createerr says why not. */
static bool_t ask(struct in_addr host, rpcproc_t procedure, struct pmap *question, xdrproc_t decode,
                  void *answer)
{
    struct sockaddr_in portmapper = {
        .sin_family = AF_INET, .sin_port = htons(PMAPPORT), .sin_addr = host};
    struct timeval retry = {.tv_sec = RETRY_S};
    struct timeval total = {.tv_sec = TOTAL_S};
    int socket = RPC_ANYSOCK;
    CLIENT *client = client_udp(&portmapper, PMAPPROG, PMAPVERS, retry, &socket, UDPMSGSIZE,
                                UDPMSGSIZE);
    enum clnt_stat status;

    if (client == NULL)
        return FALSE;
    status = clnt_call(client, procedure, (xdrproc_t)xdr_pmap, question, decode, answer, total);
    clnt_geterr(client, &rpc_createerr.cf_error);
    rpc_createerr.cf_stat = status == RPC_SUCCESS ? RPC_SUCCESS : RPC_PMAPFAILURE;
    clnt_destroy(client);
    return status == RPC_SUCCESS;
}

static bool_t ask_here(rpcproc_t procedure, struct pmap *question)
{
    struct in_addr here = {htonl(INADDR_LOOPBACK)};
    bool_t answer = FALSE;

    return ask(here, procedure, question, (xdrproc_t)xdr_bool, &answer) && answer;
}

bool_t pmap_set(u_long program, u_long version, int protocol, int port)
{
    struct pmap map = {program, version, (u_long)protocol, (u_long)port};

    return ask_here(PMAPPROC_SET, &map);
}

bool_t pmap_unset(u_long program, u_long version)
{
    struct pmap map = {program, version, 0, 0};

    return ask_here(PMAPPROC_UNSET, &map);
}

u_short pmap_getport(struct sockaddr_in *server, u_long program, u_long version, u_int protocol)
{
    struct pmap map = {program, version, protocol, 0};
    u_long port = 0;

    if (!ask(server->sin_addr, PMAPPROC_GETPORT, &map, (xdrproc_t)xdr_u_long, &port))
        return 0;
    if (port == 0 || port > UINT16_MAX) {
        client_refused(RPC_PROGNOTREGISTERED, 0);
        return 0;
    }
    return (u_short)port;
}

struct pmaplist *pmap_getmaps(struct sockaddr_in *server)
{
    struct pmaplist *list = NULL;
    struct sockaddr_in portmapper = {
        .sin_family = AF_INET, .sin_port = htons(PMAPPORT), .sin_addr = server->sin_addr};
    struct timeval total = {.tv_sec = TOTAL_S};
    int socket = RPC_ANYSOCK;
    CLIENT *client = client_tcp(&portmapper, PMAPPROG, PMAPVERS, &socket, 0, 0);

    if (client == NULL)
        return NULL;
    if (clnt_call(client, PMAPPROC_DUMP, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_pmaplist, &list,
                  total) != RPC_SUCCESS)
        xdr_free((xdrproc_t)xdr_pmaplist, &list);
    clnt_destroy(client);
    return list;
}
