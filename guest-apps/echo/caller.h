/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A caller of the workload echo, over whatever RPC library and transport: libtirpc on Linux
 * (tirpc/), the own runtime over sockets and over MBCF (../sss-core/tasks/common). Each is a
 * struct rpc_port.
 */
#include "exchange.h"
#include "samples.h"

struct settings; /* the port's own */
struct caller;

enum call_failure { CALL_FAILED, CALL_WRONG_PAYLOAD, CALL_UNCONNECTED };

struct rpc_port {
    /* A new handle, of a new connection or socket where the transport has them. */
    bool (*connect)(struct caller *caller);
    void (*disconnect)(struct caller *caller);
    /* The next call has this transaction number. */
    void (*begin)(struct caller *caller, uint32_t xid);
    /* Makes the call. Notes its times, its transaction number on the wire and its retransmissions.
     */
    enum clnt_stat (*call)(struct caller *caller, struct exchange *exchange,
                           struct call_record *record);
    /* Notes why a call has failed, and leaves the handle fit for the next one. */
    void (*note_failure)(struct caller *caller, struct call_record *record,
                         enum call_failure failure, enum clnt_stat status);
    /* What TCP has sent again so far, on all of the caller's connections; 0 where there are none.
     */
    unsigned (*stream_retransmits)(const struct caller *caller);
};

/* A client handle of its own, its buffers, and its transaction numbers. */
struct caller {
    const struct rpc_port *port;
    const struct settings *settings;
    enum procedure procedure;
    enum function function; /* called in place of a procedure; 0: none */
    bool one_way;
    size_t thread;
    CLIENT *handle; /* NULL: not connected */
    int socket;     /* the port's */
    unsigned client_port;
    uint32_t xid; /* of the next call */
    struct exchange exchange;
    unsigned closed_retransmits; /* of TCP, on connections that failed calls have closed */
    /* of the latest batch */
    unsigned tcp_retransmits;
};

/* Makes call `sequence` and fills in its record. A broken connection is made again first. */
void caller_call(struct caller *caller, uint32_t sequence, size_t size, struct call_record *record);

/* Notes the outcome of a call that has ended with `status`. */
void caller_judge(struct caller *caller, const struct exchange *exchange,
                  struct call_record *record, enum clnt_stat status);

/* A batch: makes its calls by `make_calls` and, after one-way calls, one with a reply, so that
 * everything before it has been delivered. If that fails, so have all. */
void caller_batch(struct caller *caller, size_t size, struct call_record *records, size_t count,
                  void (*make_calls)(struct caller *, size_t size, struct call_record *records,
                                     size_t count));
/* One call after the other. */
void caller_calls(struct caller *caller, size_t size, struct call_record *records, size_t count);
