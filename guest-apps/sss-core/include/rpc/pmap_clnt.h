/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <rpc/clnt.h>
#include <rpc/pmap_prot.h>

/* The first two ask this node's portmapper, over UDP. Port 0, NULL, FALSE: see rpc_createerr. */
bool_t pmap_set(u_long program, u_long version, int protocol, int port);
bool_t pmap_unset(u_long program, u_long version);
u_short pmap_getport(struct sockaddr_in *server, u_long program, u_long version, u_int protocol);
struct pmaplist *pmap_getmaps(struct sockaddr_in *server);
