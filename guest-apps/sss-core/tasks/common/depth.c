/* SPDX-License-Identifier: Apache-2.0 */
/* Several calls under way on one handle. */
#include <rpc/async.h>
#include <stdlib.h>

#include "options.h"
#include "port.h"
#include "sss/system.h"

struct deep_call {
    struct rpc_call *call; /* NULL: none */
    size_t index;
    struct exchange exchange;
};

static struct deep_call *calls; /* `depth` of them */
static size_t depth;

void depth_init(const struct settings *settings, size_t received_bytes)
{
    depth = settings->depth;
    calls = calloc(depth, sizeof(*calls));
    if (calls == NULL)
        task_fail("out of memory");
    for (size_t i = 0; i < depth; i++) {
        calls[i].exchange.sent = malloc(settings->largest + 1);
        calls[i].exchange.received = malloc(received_bytes);
        if (calls[i].exchange.sent == NULL || calls[i].exchange.received == NULL)
            task_fail("out of memory");
    }
}

static void finish_call(struct caller *caller, struct deep_call *deep, struct call_record *record)
{
    enum clnt_stat status;
    uint32_t again;

    record->xid = deep->call->xid;
    status = rpc_wait_counted(deep->call, caller->settings->total_ns, &again);
    record->end_ns = sss_now_ns();
    record->retransmits = (uint16_t)again;
    deep->call = NULL;
    caller_judge(caller, &deep->exchange, record, status);
}

static void start_call(struct caller *caller, struct deep_call *deep, size_t index, size_t size,
                       struct call_record *record)
{
    struct exchange *exchange = &deep->exchange;

    *record = (struct call_record){.xid = caller->xid++, .has_xid = true};
    deep->index = index;
    exchange_prepare(exchange, caller->procedure, caller->one_way, (uint32_t)index, size);
    caller->port->begin(caller, record->xid);
    record->start_ns = sss_now_ns();
    deep->call = rpc_async(caller->handle, exchange->procedure, exchange->encode,
                           exchange->argument, exchange->decode, exchange->result);
    if (deep->call != NULL)
        return;
    record->end_ns = sss_now_ns();
    record->error = "out of memory";
}

static struct deep_call *oldest_call(void)
{
    struct deep_call *oldest = NULL;

    for (size_t i = 0; i < depth; i++)
        if (calls[i].call != NULL && (oldest == NULL || calls[i].index < oldest->index))
            oldest = &calls[i];
    return oldest;
}

/* Each that has ended makes place for the next one, whatever its order. */
void depth_calls(struct caller *caller, size_t size, struct call_record *records, size_t count)
{
    struct deep_call *oldest;
    size_t started = 0;

    if (caller->handle == NULL) { /* each call tries to connect, and says why it cannot */
        caller_calls(caller, size, records, count);
        return;
    }
    do {
        for (size_t i = 0; i < depth && started < count; i++)
            if (calls[i].call == NULL) {
                start_call(caller, &calls[i], started, size, &records[started]);
                started++;
            }
        oldest = oldest_call();
        if (oldest != NULL)
            finish_call(caller, oldest, &records[oldest->index]);
        for (size_t i = 0; i < depth; i++)
            if (calls[i].call != NULL && rpc_poll(calls[i].call))
                finish_call(caller, &calls[i], &records[calls[i].index]);
    } while (oldest != NULL || started < count);
}
