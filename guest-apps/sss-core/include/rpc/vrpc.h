/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * vRPC: Sun RPC's messages, unchanged, in rings that client and server write into one another's
 * memory, so that no kernel takes part in a call. Two ways to write there:
 *
 *   vrpc        SHRIMP's: stores to bound memory are performed in the other node's as well, and
 *               long messages go by deliberate update (sss/vmmc.h); needs a backplane
 *   vrpc-mbcf   the same rings by remote WRITEs of MBCF: what is left of it without the hardware
 *
 * A call is executed at most once, and is not sent again; when the other side is gone, calls fail.
 */
#include <rpc/mbcf.h>
#include <rpc/rpc.h>

/* Of the portmapper: IPPROTO_VRPC in svc_register tells it, and its answer is then not a port
 * but the node. */
#define IPPROTO_VRPC 0x564d

enum vrpc_wait {
    VRPC_POLL,   /* looks at memory until something has come */
    VRPC_NOTIFY, /* sleeps until the kernel says so. Both sides must wait in the same way */
};
enum {
    VRPC_MESSAGE_MOST = 98296,    /* bytes of the longest message */
    VRPC_DELIBERATE_ABOVE = 1024, /* where nothing else is asked for */
};
#define VRPC_CONNECT_NS 5000000000ull

/* ---- client ---- */

struct clntvrpc_options {
    bool over_mbcf;
    enum vrpc_wait wait;
    uint32_t deliberate_above; /* messages of more bytes go by deliberate update */
    uint64_t connect_ns;       /* until connecting, or finding room for a call, has failed */
};

/* A client of program and version at `node`. `options`: NULL for those of clnt_create(host,
 * program, version, "vrpc"), which asks the portmapper of `host` for the node. NULL with
 * rpc_createerr set, and the reason in words in clntvrpc_create_error(). */
CLIENT *clntvrpc_create(uint16_t node, rpcprog_t program, rpcvers_t version,
                        const struct clntvrpc_options *options);
const char *clntvrpc_create_error(void);
/* The node and task of the server. */
void clntvrpc_server(const CLIENT *client, uint16_t *node, uint16_t *task);
/* How often it has looked in vain. */
uint64_t clntvrpc_polls(const CLIENT *client);

/* ---- server ---- */

struct svcvrpc_options {
    bool over_vmmc, over_mbcf;
    enum vrpc_wait wait;
    uint32_t deliberate_above;
};

/* Serves what is registered with it by svc_register. A server over MBCF hands it to svcmb_create,
 * whose TASKQUE clients ask. NULL: memory is short, or there is nothing left to wait with. */
SVCXPRT *svcvrpc_create(const struct svcvrpc_options *options);

struct svcvrpc_counters {
    uint64_t requests, replies, malformed;
    uint64_t clients, clients_gone;
    uint64_t polls; /* how often it has looked in vain */
};
const struct svcvrpc_counters *svcvrpc_counters(const SVCXPRT *transport);
