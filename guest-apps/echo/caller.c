/* SPDX-License-Identifier: Apache-2.0 */
#include "caller.h"

void caller_judge(struct caller *caller, const struct exchange *exchange,
                  struct call_record *record, enum clnt_stat status)
{
    if (status != RPC_SUCCESS)
        caller->port->note_failure(caller, record, CALL_FAILED, status);
    else if (!exchange_matches(exchange, caller->procedure))
        caller->port->note_failure(caller, record, CALL_WRONG_PAYLOAD, status);
    else
        record->ok = true;
}

void caller_call(struct caller *caller, uint32_t sequence, size_t size, struct call_record *record)
{
    const struct rpc_port *port = caller->port;
    struct exchange *exchange = &caller->exchange;
    enum clnt_stat status;

    *record = (struct call_record){.xid = caller->xid++, .has_xid = true};
    if (caller->handle == NULL && !port->connect(caller)) {
        port->note_failure(caller, record, CALL_UNCONNECTED, RPC_FAILED);
        return;
    }
    if (caller->function != 0)
        exchange_prepare_function(exchange, caller->function);
    else
        exchange_prepare(exchange, caller->procedure, caller->one_way, sequence, size);
    port->begin(caller, record->xid);
    status = port->call(caller, exchange, record);
    caller_judge(caller, exchange, record, status);
}

void caller_calls(struct caller *caller, size_t size, struct call_record *records, size_t count)
{
    for (size_t call = 0; call < count; call++)
        caller_call(caller, (uint32_t)call, size, &records[call]);
}

/* What went before a call that failed may not have been delivered: it has failed for the same
 * reason. */
static void fail_all(struct call_record *records, size_t count, struct call_record why)
{
    for (size_t call = 0; call < count; call++) {
        struct call_record own = records[call];

        if (!own.ok)
            continue;
        records[call] = why;
        records[call].start_ns = own.start_ns;
        records[call].end_ns = own.end_ns;
        records[call].xid = own.xid;
        records[call].has_xid = own.has_xid;
        records[call].retransmits = own.retransmits;
    }
}

static void flush(struct caller *caller, struct call_record *records, size_t count)
{
    struct exchange *exchange = &caller->exchange;
    struct call_record record = {.xid = caller->xid++};
    enum clnt_stat status;

    if (caller->handle == NULL) { /* the last call has failed */
        fail_all(records, count, records[count - 1]);
        return;
    }
    exchange_prepare(exchange, PROCEDURE_NULL, false, 0, 0);
    caller->port->begin(caller, record.xid);
    status = caller->port->call(caller, exchange, &record);
    if (status == RPC_SUCCESS)
        return;
    caller->port->note_failure(caller, &record, CALL_FAILED, status);
    fail_all(records, count, record);
}

void caller_batch(struct caller *caller, size_t size, struct call_record *records, size_t count,
                  void (*make_calls)(struct caller *, size_t size, struct call_record *records,
                                     size_t count))
{
    const struct rpc_port *port = caller->port;
    unsigned before;

    if (caller->handle == NULL)
        port->connect(caller); /* if this fails, each call tries again and says why */
    before = port->stream_retransmits(caller);
    make_calls(caller, size, records, count);
    if (caller->one_way)
        flush(caller, records, count);
    caller->tcp_retransmits = port->stream_retransmits(caller) - before;
}
