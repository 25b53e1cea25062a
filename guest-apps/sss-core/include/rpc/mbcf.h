/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sun RPC over MBCF: the client and server types of kamesawa98 section 4.1 behind the usual CLIENT
 * and SVCXPRT, so that what rpcgen makes is used as it is. The layouts of what goes into TASKQUEs
 * and FIFOs are in rpc/mbcf_messages.h.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rpc/async.h>
#include <rpc/rpc.h>

#include "sss/mbcf.h"

/*
 * How a request reaches the server. The reply always comes by a FIFO write into the client's FIFO.
 *
 *   MBCF1   single transaction: in the TASKQUE write that makes the connection, which is discarded
 *           after the reply
 *   MBCF2   READ-driven: the TASKQUE write names the request, which the server READs
 *   MBCF12  as 1 where it fits, else as 2
 *   MBCF3   WRITE-driven: the server hands out its key and the address of a FIFO
 *   MBCF3A  the same, but the FIFO is all that a dummy task shares with the server (CSM)
 *   MBCF3B  a dummy task of the client's own runs the procedure in its handler for memory-based
 *           signals
 */
enum mbcf_type {
#define TRANSPORT(type, name) type,
#include <rpc/transports.def>
    MBCF_TYPES
};
/* Ended by NULL. */
extern const char *const mbcf_type_names[MBCF_TYPES + 1];

enum rpc_semantics {
    RPC_EXACTLY_ONCE, /* as MBCF delivers; a failure tells whether the procedure may have run */
    /* the client asks again, the server answers repetitions from its reply cache */
    RPC_AT_MOST_ONCE,
    /* the client asks again, also a server that has restarted; no replies are kept */
    RPC_AT_LEAST_ONCE,
};
extern const char *const rpc_semantics_names[]; /* ended by NULL */

/* What is known of a failed call. */
enum rpc_execution { RPC_NOT_EXECUTED, RPC_MAYBE_EXECUTED, RPC_EXECUTED };

enum {
    MBCF_MESSAGE_DEFAULT = 65536 + 1024, /* 64 KB of payload with header, credentials and lengths */
    MBCF_MESSAGE_MOST = MB_SEGMENT - 64,
    /* of a single transaction: a TASKQUE write of 1392 bytes less our head */
    MBCF_1_MESSAGE_MOST = 1376,
    MBCF_DEPTH_MOST = 64,
    MBCF_CLIENTS_MOST = 16, /* of the types 3, 3a and 3b together, of one server task */
    MBCF_CACHE_MOST = 4096,
};

/* ---- client ---- */

struct clntmb_options {
    enum mbcf_type type;
    enum rpc_semantics semantics;
    unsigned depth; /* calls under way (rpc_async), 1..MBCF_DEPTH_MOST; 0: 1 */
    /* ask for the user-visible ACK of each request: no call is decided without it */
    bool ack;
    size_t message_most; /* bytes of the longest request and reply; 0: MBCF_MESSAGE_DEFAULT */
    /* until a call is sent again, doubling (not RPC_EXACTLY_ONCE); 0: MBCF_RETRY_NS */
    uint64_t retry_ns;
    uint64_t connect_ns; /* until making a connection has failed; 0: MBCF_CONNECT_NS */
};
#define MBCF_RETRY_NS   1000000000ull
#define MBCF_CONNECT_NS 5000000000ull

/*
 * A client of program and version at `node`, found by the binder there. NULL with rpc_createerr
 * set, and the reason in words in clntmb_create_error(). Calls that do not wait: rpc/async.h. A
 * one-way call (rpc_one_way, or clnt_call with a NULL `decode` and no time) has succeeded when it
 * is on its way, or with `ack` when the server's node has taken it.
 */
CLIENT *clntmb_create(uint16_t node, rpcprog_t program, rpcvers_t version,
                      const struct clntmb_options *options);
const char *clntmb_create_error(void);

/* What is known of the latest call that failed. */
enum rpc_execution clntmb_execution(const CLIENT *client);
/* The task that requests go to: the server's, or its dummy. */
void clntmb_server(const CLIENT *client, uint16_t *node, uint16_t *task);

/* ---- server ---- */

struct svcmb_options {
    unsigned types; /* bits 1 << enum mbcf_type */
    enum rpc_semantics semantics;
    unsigned cache; /* replies kept, RPC_AT_MOST_ONCE; 0: MBCF_CACHE_DEFAULT */
    /* of the types 3, 3a and 3b together, at most MBCF_CLIENTS_MOST; 0: that. Caps the dummies, too
     */
    unsigned clients;
    size_t message_most;    /* 0: MBCF_MESSAGE_DEFAULT */
    const char *dummy_task; /* type 3b: the program of a dummy, which calls svcmb_dummy */
    SVCXPRT *rings;         /* of svcvrpc_create, whose clients come over MBCF, too; or NULL */
    const char
        *dummy_options; /* further members of its options: "" or text that begins with a comma */
};
enum { MBCF_CACHE_DEFAULT = 256 };

/*
 * The one MBCF transport of this task, of all the types asked for; svc_run serves it. NULL with the
 * reason in *error. The dummy tasks of the types 3a and 3b are kept for the next client when theirs
 * has gone.
 */
SVCXPRT *svcmb_create(const struct svcmb_options *options, const char **error);
/* Serves a program, and tells the node's binder. FALSE: the binder refuses or does not answer. */
bool_t svcmb_register(SVCXPRT *transport, rpcprog_t program, rpcvers_t version,
                      svc_dispatch dispatch);

struct svcmb_counters {
    uint64_t requests, replies;
    uint64_t replayed; /* answered from the reply cache */
    uint64_t malformed, refused;
    uint64_t clients, clients_gone;
};
const struct svcmb_counters *svcmb_counters(const SVCXPRT *transport);

/* ---- a dummy task of type 3b ---- */

enum { SVCMB_DUMMY_WORDS = 32 };
/*
 * Serves the clients that the dispatcher assigns with the programs that are registered with
 * `begin`, until a request to end; `csm` is of its options. `begin` is called once, with the
 * transport to register with and words that the dispatcher sees, too (zero at first). -> exit
 * status.
 */
int svcmb_dummy(int csm, void (*begin)(SVCXPRT *transport, volatile uint64_t *words));
/* Index 0: the sums over dummies that have ended by themselves; then those of each dummy; NULL
 * after the last. */
volatile uint64_t *svcmb_dummy_words(const SVCXPRT *transport, unsigned index);
