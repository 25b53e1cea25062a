/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The portmapper's protocol, version 2 (RFC 1833 section 3). */
#include <rpc/xdr.h>

#define PMAPPORT         ((u_short)111)
#define PMAPPROG         ((rpcprog_t)100000)
#define PMAPVERS         ((rpcvers_t)2)
#define PMAPVERS_PROTO   ((rpcvers_t)2)
#define PMAPPROC_NULL    ((rpcproc_t)0)
#define PMAPPROC_SET     ((rpcproc_t)1)
#define PMAPPROC_UNSET   ((rpcproc_t)2)
#define PMAPPROC_GETPORT ((rpcproc_t)3)
#define PMAPPROC_DUMP    ((rpcproc_t)4)
#define PMAPPROC_CALLIT  ((rpcproc_t)5)

struct pmap {
    u_long pm_prog;
    u_long pm_vers;
    u_long pm_prot;
    u_long pm_port;
};
struct pmaplist {
    struct pmap pml_map;
    struct pmaplist *pml_next;
};
bool_t xdr_pmap(XDR *, struct pmap *);
bool_t xdr_pmaplist(XDR *, struct pmaplist **); /* no recursion: any length */
