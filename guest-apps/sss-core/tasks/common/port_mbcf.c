/* SPDX-License-Identifier: Apache-2.0 */
/* Calls by the own runtime over MBCF. */
#include <stdio.h>

#include "options.h"
#include "port.h"
#include "sss/system.h"

static CLIENT *open_client(const struct settings *settings)
{
    struct clntmb_options options = {
        .type = (enum mbcf_type)(settings->transport - TRANSPORT_MBCF),
        .semantics = settings->semantics,
        .depth = settings->depth,
        .ack = settings->ack,
        .retry_ns = settings->retry_ns,
        .connect_ns = settings->total_ns,
    };

    if (options.type != MBCF1)
        options.message_most = HEADER_AND_LENGTH + CREDENTIAL_MOST +
                               ((settings->largest + 3) & ~(size_t)3);
    if (options.message_most > MBCF_MESSAGE_MOST)
        options.message_most = MBCF_MESSAGE_MOST;
    return clntmb_create(settings->node, settings->program, settings->version, &options);
}

static bool connect_handle(struct caller *caller)
{
    caller->handle = open_client(caller->settings);
    if (caller->handle != NULL)
        port_set_auth(caller);
    return caller->handle != NULL;
}

static bool is_hopeless(void)
{
    return rpc_createerr.cf_stat == RPC_SYSTEMERROR ||
           rpc_createerr.cf_error.re_errno == MB_STATUS_BASE + MB_NO_NODE;
}

static int find_server(struct caller *caller, struct settings *settings)
{
    return port_find_on_node(caller, settings, clntmb_create_error, is_hopeless);
}

/* What is known of the execution goes along: it is what exactly-once promises of a failure. */
static const char *execution_text(const CLIENT *handle)
{
    switch (clntmb_execution(handle)) {
    case RPC_NOT_EXECUTED:
        return "not executed";
    case RPC_EXECUTED:
        return "executed";
    default:
        return "maybe executed";
    }
}

static void note_failure(struct caller *caller, struct call_record *record,
                         enum call_failure failure, enum clnt_stat status)
{
    if (failure == CALL_UNCONNECTED)
        port_note(record, failure, rpc_createerr.cf_stat, clntmb_create_error());
    else
        port_note(record, failure, status, execution_text(caller->handle));
}

static unsigned no_stream(const struct caller *caller)
{
    (void)caller;
    return 0;
}

static void put_fields(const struct caller *caller, char *text, size_t size)
{
    const struct settings *settings = caller->settings;
    uint16_t node, task = 0, self_node, self;

    mb_self(&self_node, &self);
    if (caller->handle != NULL)
        clntmb_server(caller->handle, &node, &task);
    snprintf(text, size,
             ",\"server_node\":%u,\"server_task\":%u,\"client_task\":%u,\"ack\":%s,\"depth\":%u,"
             "\"semantics\":\"%s\",\"one_way\":%s",
             settings->node, task, self, settings->ack ? "true" : "false", settings->depth,
             rpc_semantics_names[settings->semantics], settings->one_way ? "true" : "false");
}

const struct own_port port_mbcf = {
    {connect_handle, port_disconnect, port_begin, port_counted_call, note_failure, no_stream},
    find_server,
    put_fields};
