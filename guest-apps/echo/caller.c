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

static bool flush(struct caller *caller)
{
    struct exchange *exchange = &caller->exchange;
    struct call_record record = {.xid = caller->xid++};

    if (caller->handle == NULL)
        return false;
    exchange_prepare(exchange, PROCEDURE_NULL, false, 0, 0);
    caller->port->begin(caller, record.xid);
    return caller->port->call(caller, exchange, &record) == RPC_SUCCESS;
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
    caller->flushed = !caller->one_way || flush(caller);
    caller->tcp_retransmits = port->stream_retransmits(caller) - before;
}
