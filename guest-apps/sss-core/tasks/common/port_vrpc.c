/* SPDX-License-Identifier: Apache-2.0 */
/* Calls by the own runtime in rings: over a backplane, and over MBCF. */
#include <stdio.h>

#include "options.h"
#include "port.h"
#include "sss/system.h"

/* Of the handle that was there last. */
static uint16_t server_task;
static uint64_t polls_before;

static bool connect_handle(struct caller *caller)
{
    const struct settings *settings = caller->settings;
    struct clntvrpc_options options = {
        .over_mbcf = settings->transport == TRANSPORT_VRPC_MBCF,
        .wait = settings->wait,
        .deliberate_above = settings->deliberate_above,
        .connect_ns = settings->total_ns,
    };
    uint16_t node;

    caller->handle = clntvrpc_create(settings->node, settings->program, settings->version,
                                     &options);
    if (caller->handle == NULL)
        return false;
    port_set_auth(caller);
    clntvrpc_server(caller->handle, &node, &server_task);
    polls_before = 0;
    return true;
}

/* Nothing that waiting could change. */
static bool is_hopeless(void)
{
    return rpc_createerr.cf_error.re_errno == SSS_ENOSYS;
}

static int find_server(struct caller *caller, struct settings *settings)
{
    return port_find_on_node(caller, settings, clntvrpc_create_error, is_hopeless);
}

/* The rings of a server that is gone are no longer there: the next call looks for another. */
static void note_failure(struct caller *caller, struct call_record *record,
                         enum call_failure failure, enum clnt_stat status)
{
    if (failure == CALL_UNCONNECTED)
        port_note(record, failure, rpc_createerr.cf_stat, clntvrpc_create_error());
    else
        port_note(record, failure, status, NULL);
    if (failure == CALL_FAILED && (status == RPC_CANTRECV || status == RPC_CANTSEND))
        port_disconnect(caller);
}

static unsigned no_stream(const struct caller *caller)
{
    (void)caller;
    return 0;
}

static void put_fields(const struct caller *caller, char *text, size_t size)
{
    const struct settings *settings = caller->settings;
    uint64_t polls = caller->handle != NULL ? clntvrpc_polls(caller->handle) : polls_before;
    uint16_t node, task;

    mb_self(&node, &task);
    snprintf(text, size,
             ",\"server_node\":%u,\"server_task\":%u,\"client_task\":%u,\"depth\":%u,"
             "\"semantics\":\"%s\",\"one_way\":%s,\"wait\":\"%s\",\"polls\":%llu",
             settings->node, server_task, task, settings->depth,
             rpc_semantics_names[settings->semantics], settings->one_way ? "true" : "false",
             settings->wait == VRPC_POLL ? "poll" : "notify",
             (unsigned long long)(polls - polls_before));
    polls_before = polls;
}

const struct own_port port_vrpc = {
    {connect_handle, port_disconnect, port_begin, port_counted_call, note_failure, no_stream},
    find_server,
    put_fields};
