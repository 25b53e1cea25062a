// SPDX-License-Identifier: Apache-2.0
// RPC (RFC 5531) over UDP and TCP, without a port mapper: calls, and a server of procedures.
#ifndef RPC_H
#define RPC_H

#include "xdr.h"

struct rpc_procedure {
    uint32_t program, version, number;
    const char *name;
    xdr_filter *take, *give; // arguments and results; NULL: none
    size_t arguments, results;
    bool (*serve)(void *arguments, void *results, struct xdr *memory); // of servers
};

struct rpc_client {
    int socket;
    bool stream;
    uint32_t xid;
    struct xdr memory; // of results and samples
    struct xdr call;   // the message, encoded
};

// NULL, or what failed.
const char *rpc_open(struct rpc_client *client, const char *address, const char *port, bool stream);
void rpc_close(struct rpc_client *client);
// Call, and print a line with what went and came: `sundial rpc verify` compares it with the wire.
// NULL, or what failed.
const char *rpc_call(struct rpc_client *client, const struct rpc_procedure *procedure,
                     void *arguments, void *results);
// Serve over UDP and TCP at one port until a signal ends it; returns only if that fails.
int rpc_serve(const struct rpc_procedure *procedures, size_t count, const char *port);

#endif
