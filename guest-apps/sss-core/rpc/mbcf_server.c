/* SPDX-License-Identifier: Apache-2.0 */
#include "mbcf_server.h"

#include <rpc/mbcf_binder.h>
#include <stdlib.h>
#include <string.h>

#include "sss/system.h"
#include "svc_vrpc.h"

enum {
    TASKQUE_RECORDS = 64, /* of the longest, that fit */
    BINDER_S = 5,
};
#define NS_PER_S 1000000000ull

static bool serves(const struct mbm_server *server, enum mbcf_type type)
{
    return (server->options.types >> type & 1) != 0;
}

/* ---- type 2: the request is fetched ---- */

static void serve_taskque(void *context);

/* A client's calls are executed in the order in which it made them: whether one that came earlier
 * is still being READ. */
static bool has_earlier(const struct mbm_server *server, const struct mbm_caller *caller,
                        uint32_t number)
{
    for (unsigned i = 0; i < MBM_READINGS; i++) {
        const struct mbm_reading *other = &server->readings[i];

        if (other->used && (int32_t)(other->number - number) < 0 &&
            other->origin.caller.node == caller->node && other->origin.caller.task == caller->task)
            return true;
    }
    return false;
}

static void execute(struct mbm_server *server, struct mbm_reading *reading)
{
    /* A client that has given up may have put another call there, which comes by itself. */
    if (reading->ack.status == MB_OK && mbm_word(reading->message, 0) == reading->origin.caller.xid)
        mbm_service_call(&server->service, &reading->origin, reading->message, reading->length);
    mb_close(reading->origin.ltn);
    svc_remove_word(&reading->ack.state);
    reading->used = false;
}

static void serve_readings(void *context)
{
    struct mbm_server *server = context;
    bool again = true;

    while (again) {
        again = false;
        for (unsigned i = 0; i < MBM_READINGS; i++) {
            struct mbm_reading *reading = &server->readings[i];

            if (!reading->used || reading->ack.state != MB_ACK_DONE ||
                has_earlier(server, &reading->origin.caller, reading->number))
                continue;
            execute(server, reading);
            again = true;
        }
    }
    serve_taskque(server); /* a request may have waited for a place, or for one before it */
}

/* Its word is watched again each time: the state that the one before has ended with must not be
 * taken for this one's. */
static bool read_request(struct mbm_server *server, const struct mbm_origin *origin,
                         const struct mbm_source *source)
{
    struct mbm_reading *reading = server->readings;

    while (reading < server->readings + MBM_READINGS && reading->used)
        reading++;
    if (reading == server->readings + MBM_READINGS)
        return false;
    reading->origin = *origin;
    reading->origin.caller.xid = source->xid;
    reading->length = source->length;
    reading->number = server->readings_begun++;
    reading->ack.state = MB_ACK_IDLE;
    reading->used = mb_read(origin->ltn, source->address, reading->message, source->length,
                            &reading->ack) == 0 &&
                    svc_add_word(&reading->ack.state, serve_readings, server);
    if (!reading->used)
        mb_close(origin->ltn);
    return true;
}

/* ---- the TASKQUE ---- */

static void malformed(struct mbm_server *server, int ltn)
{
    server->service.counters.malformed++;
    mb_close(ltn);
}

static const struct svcvrpc_binding *rings(const struct mbm_server *server)
{
    return server->options.rings != NULL ? server->options.rings->xp_p2 : NULL;
}

static void bind_client(struct mbm_server *server, const struct mbm_origin *origin,
                        const struct mbm_bind *bind)
{
    const struct svcvrpc_binding *binding = rings(server);

    if (binding != NULL && bind->type == binding->type)
        binding->bind(server->options.rings, origin, bind,
                      mbm_serves_program(server, bind) ? MBM_ACCEPTED : MBM_NO_PROGRAM);
    else
        mbm_places_bind(server, origin, bind,
                        bind->type < MBCF_TYPES && serves(server, (enum mbcf_type)bind->type));
}

/* False: there is no place to READ into, or an earlier request is still being READ; the record
 * stays. */
static bool take_request(struct mbm_server *server, const struct mb_record *record)
{
    const struct mb_taskque_head *writer = (const void *)(record + 1);
    const struct mbm_head *head = (const void *)(writer + 1);
    char *body = (char *)(uintptr_t)(head + 1);
    uint32_t length = record->length - (uint32_t)(sizeof(*writer) + sizeof(*head));
    struct mbm_origin origin = {.ltn = record->ltn};
    const struct mbm_source *source = (const void *)body;

    if (record->length < sizeof(*writer) + sizeof(*head)) {
        malformed(server, record->ltn);
        return true;
    }
    origin.caller = (struct mbm_caller){writer->key, record->node, record->task, 0};
    origin.replies = head->replies;
    origin.reply_most = head->reply_most;
    if (head->kind == MBM_CALL && (serves(server, MBCF1) || serves(server, MBCF12))) {
        if (has_earlier(server, &origin.caller, server->readings_begun))
            return false;
        mbm_service_call(&server->service, &origin, body, length);
        mb_close(record->ltn);
    } else if (head->kind == MBM_CALL_AT && (serves(server, MBCF2) || serves(server, MBCF12)) &&
               length == sizeof(*source) && source->length >= MBM_CALL_HEADER &&
               source->length <= server->options.message_most) {
        return read_request(server, &origin, source);
    } else if (head->kind == MBM_BIND && length == sizeof(struct mbm_bind)) {
        bind_client(server, &origin, (const void *)body);
    } else {
        malformed(server, record->ltn);
    }
    return true;
}

static void serve_taskque(void *context)
{
    struct mbm_server *server = context;
    struct mb_record *record;

    while ((record = mb_fifo_peek(server->taskque)) != NULL && take_request(server, record))
        mb_fifo_pop(server->taskque);
}

static void look_after_clients(void *context)
{
    struct mbm_server *server = context;

    mbm_places_look_after(server);
    if (rings(server) != NULL)
        rings(server)->look_after(server->options.rings);
}

/* ---- making one ---- */

static bool prepare_readings(struct mbm_server *server)
{
    if (!serves(server, MBCF2) && !serves(server, MBCF12))
        return true;
    for (unsigned i = 0; i < MBM_READINGS; i++) {
        struct mbm_reading *reading = &server->readings[i];

        reading->message = malloc(server->options.message_most);
        if (reading->message == NULL)
            return false;
    }
    return true;
}

static bool prepare_taskque(struct mbm_server *server)
{
    uint32_t ring = mbm_ring_bytes(MBM_TASKQUE_MOST + (uint32_t)sizeof(struct mb_taskque_head),
                                   TASKQUE_RECORDS);

    server->taskque = sss_map(NULL, ring + 4096, SSS_READ | SSS_WRITE);
    return server->taskque != NULL && mb_taskque(server->taskque, ring + MB_FIFO_HEADER) == 0 &&
           svc_add_word(&server->taskque->events, serve_taskque, server) &&
           svc_add_word(mbm_errors(), look_after_clients, server);
}

static SVCXPRT *refuse(struct mbm_server *server, const char **error, const char *text)
{
    free(server);
    *error = text;
    return NULL;
}

SVCXPRT *svcmb_create(const struct svcmb_options *options, const char **error)
{
    struct mbm_server *server = calloc(1, sizeof(*server));

    if (server == NULL)
        return refuse(server, error, "out of memory");
    server->options = *options;
    if (server->options.message_most == 0)
        server->options.message_most = MBCF_MESSAGE_DEFAULT;
    if (server->options.clients == 0)
        server->options.clients = MBCF_CLIENTS_MOST;
    if (server->options.cache == 0)
        server->options.cache = MBCF_CACHE_DEFAULT;
    if (server->options.message_most > MBCF_MESSAGE_MOST ||
        server->options.clients > MBCF_CLIENTS_MOST || server->options.cache > MBCF_CACHE_MOST)
        return refuse(server, error, "message, clients or reply cache above the limit");
    if (!mbm_service_init(&server->service, server->options.message_most, "mbcf"))
        return refuse(server, error, "out of memory");
    if (options->semantics == RPC_AT_MOST_ONCE &&
        (server->service.cache = mbm_cache_new(server->options.cache)) == NULL)
        return refuse(server, error, "out of memory for the reply cache");
    if (!prepare_taskque(server) || !prepare_readings(server))
        return refuse(server, error,
                      "the TASKQUE cannot be declared, or there is nothing left to wait with");
    return &server->service.transport;
}

static bool tell_binder(rpcprog_t program, rpcvers_t version, uint32_t type)
{
    struct mb_binder_answer answer;
    uint16_t node, task;

    mb_self(&node, &task);
    return mb_binder_ask(node, MB_BINDER_SET, program, version, type, BINDER_S * NS_PER_S,
                         &answer) == MB_BINDER_FOUND;
}

bool_t svcmb_register(SVCXPRT *transport, rpcprog_t program, rpcvers_t version,
                      svc_dispatch dispatch)
{
    struct mbm_server *server = transport->xp_p1;
    const struct svcvrpc_binding *binding = rings(server);

    if (server->program_count == MBM_PROGRAMS ||
        !svc_register(transport, program, version, dispatch, 0))
        return FALSE;
    server->programs[server->program_count].program = program;
    server->programs[server->program_count++].version = version;
    for (enum mbcf_type type = 0; type < MBCF_TYPES; type++)
        if (serves(server, type) && !tell_binder(program, version, type))
            return FALSE;
    return binding == NULL || (svc_register(server->options.rings, program, version, dispatch, 0) &&
                               tell_binder(program, version, binding->type));
}

const struct svcmb_counters *svcmb_counters(const SVCXPRT *transport)
{
    const struct mbm_service *service = transport->xp_p1;

    return &service->counters;
}
