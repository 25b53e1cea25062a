/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sun RPC over MBCF: the client and server types of kamesawa98 section 4.1 behind the usual CLIENT and SVCXPRT, so that
 * what rpcgen makes is used as it is. The layouts of what goes into TASKQUEs and FIFOs are in rpc/mbcf_messages.h.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rpc/rpc.h>

#include "sss/mbcf.h"

/* How a request reaches the server. The reply always comes by a FIFO write into the client's FIFO. */
enum mbcf_type {
    MBCF_1,  /* single transaction: in the TASKQUE write that makes the connection; discarded after the reply */
    MBCF_2,  /* READ-driven: the TASKQUE write names the request, which the server READs */
    MBCF_12, /* as 1 where it fits, else as 2 */
    MBCF_3,  /* WRITE-driven: the server hands out its key and the address of a FIFO */
    MBCF_3A, /* the same, but the FIFO is all that a dummy task shares with the server (CSM) */
    MBCF_3B, /* a dummy task of the client's own runs the procedure in its handler for memory-based signals */
    MBCF_TYPES
};
/* "mbcf1", "mbcf2", "mbcf12", "mbcf3", "mbcf3a", "mbcf3b", NULL: in the order of enum mbcf_type. */
extern const char *const mbcf_type_names[MBCF_TYPES + 1];

enum rpc_semantics {
    RPC_EXACTLY_ONCE,  /* as MBCF delivers; a failure tells whether the procedure may have run */
    RPC_AT_MOST_ONCE,  /* the client asks again, the server answers repetitions from its reply cache */
    RPC_AT_LEAST_ONCE, /* the client asks again, also a server that has come back; nobody remembers */
};
extern const char *const rpc_semantics_names[]; /* ended by NULL */

/* What is known of a failed call. */
enum rpc_execution { RPC_NOT_EXECUTED, RPC_MAYBE_EXECUTED, RPC_EXECUTED };

enum {
    MBCF_MESSAGE_DEFAULT = 65536 + 512, /* 64 KB of payload with header, credentials and lengths */
    MBCF_MESSAGE_MOST = MB_SEGMENT - 64,
    MBCF_DEPTH_MOST = 64,
    MBCF_CLIENTS_MOST = 20, /* of the types 3 and 3a, of one server task */
    MBCF_CACHE_MOST = 4096,
};

/* ---- client ---- */

struct clntmb_options {
    enum mbcf_type type;
    enum rpc_semantics semantics;
    unsigned depth;          /* asynchronous calls under way, 1..MBCF_DEPTH_MOST */
    bool ack;                /* ask for the user-visible ACK of each request, and wait for it before the reply */
    size_t message_most;     /* bytes of the longest request and reply; 0: MBCF_MESSAGE_DEFAULT */
    uint64_t retry_ns;       /* until a call is sent again, doubling (not RPC_EXACTLY_ONCE) */
    uint64_t connect_ns;     /* until making a connection has failed */
};

/*
 * A client of program and version at `node`, found by the binder there. NULL with rpc_createerr set, and the reason
 * as text in clntmb_create_error().
 */
CLIENT *clntmb_create(uint16_t node, uint32_t program, uint32_t version, const struct clntmb_options *options);
const char *clntmb_create_error(void);

/*
 * Asynchronous calls with results. `result` is filled in when the reply comes, in any order; arguments are encoded at once.
 * A handle is given back by clntmb_wait, or by clntmb_poll once it is true.
 */
struct rpc_async;
struct rpc_async *clntmb_async(CLIENT *client, rpcproc_t procedure, xdrproc_t encode, void *argument, xdrproc_t decode,
                               void *result); /* NULL: depth reached, or it cannot be sent; see clnt_geterr */
bool clntmb_poll(CLIENT *client, struct rpc_async *call);
enum clnt_stat clntmb_wait(CLIENT *client, struct rpc_async *call, struct timeval total);
uint32_t clntmb_xid(const struct rpc_async *call);

/* Of the latest call that failed, and why in words. */
enum rpc_execution clntmb_execution(const CLIENT *client);
const char *clntmb_reason(const CLIENT *client);

/* Of the latest synchronous call: requests sent beyond the first. */
unsigned clntmb_retransmits(const CLIENT *client);
/* The task that requests go to: the server's, or its dummy. */
void clntmb_server(const CLIENT *client, uint16_t *node, uint16_t *task);

/* One-way calls are clnt_call with a NULL `decode` and a zero timeout, as Sun's batching on TCP; RPC_SUCCESS: it is on its way,
 * or with `ack`: the server's node has taken it. */

/* ---- server ---- */

struct svcmb;
typedef void (*svcmb_dispatch)(struct svc_req *request, SVCXPRT *transport);

struct svcmb_options {
    unsigned types;          /* bits 1 << enum mbcf_type */
    enum rpc_semantics semantics;
    unsigned cache;          /* replies kept, RPC_AT_MOST_ONCE */
    unsigned clients;        /* of the types 3 and 3a, at most MBCF_CLIENTS_MOST */
    unsigned dummies;        /* most dummy tasks of each of the types 3a and 3b; they are kept for the next client */
    size_t message_most;     /* 0: MBCF_MESSAGE_DEFAULT */
    const char *dummy_task;  /* type 3b: the program of a dummy, which calls svcmb_dummy */
    const char *dummy_options; /* further members of its options, with a leading comma, or "" */
};

/* NULL: out of memory, or the TASKQUE cannot be declared; the reason as text in *error. */
struct svcmb *svcmb_create(const struct svcmb_options *options, const char **error);
/* Serves program and version, and tells the node's binder. False: the binder refuses or does not answer. */
bool svcmb_register(struct svcmb *server, uint32_t program, uint32_t version, svcmb_dispatch dispatch);

/* Words to wait for, as many as fit; what to do when one has changed; both together, for ever. */
unsigned svcmb_words(struct svcmb *server, struct sss_wait *words, unsigned size);
void svcmb_serve(struct svcmb *server);

/* Who calls, for a dispatch function. */
struct svcmb_caller {
    uint16_t node;
    uint16_t task;
    uint32_t xid;
};
void svcmb_caller(const SVCXPRT *transport, struct svcmb_caller *caller);
bool svcmb_is(const SVCXPRT *transport); /* whether a transport is one of these */

struct svcmb_counters {
    uint64_t requests, replies, replayed; /* replayed: answered from the cache */
    uint64_t refused_binds, malformed, connections, connections_ended;
};
const struct svcmb_counters *svcmb_counters(const struct svcmb *server);

/* ---- a dummy task of type 3b: `options` are those that the dispatcher gave it ---- */

/*
 * Room for the dummy's own words in the memory shared with its dispatcher, zero at first. A dispatcher finds those of
 * its dummies by svcmb_dummy_words.
 */
enum { SVCMB_DUMMY_WORDS = 32 };
/*
 * Serves the clients that the dispatcher assigns, until it is told to end; `begin` is called once with the shared words.
 * Returns the exit status.
 */
int svcmb_dummy(int csm, uint32_t program, uint32_t version, svcmb_dispatch dispatch, void (*begin)(volatile uint64_t *words));
volatile uint64_t *svcmb_dummy_words(struct svcmb *server, unsigned index); /* NULL: there is none of that index */
