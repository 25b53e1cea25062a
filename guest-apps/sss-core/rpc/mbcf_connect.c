/* SPDX-License-Identifier: Apache-2.0 */
#include <rpc/mbcf_binder.h>
#include <stdlib.h>
#include <string.h>

#include "mbcf_client.h"
#include "sss/system.h"

static bool refuse(struct clntmb *client, enum clnt_stat status, int error, const char *reason)
{
    client->error = (struct rpc_err){.re_status = status};
    client->error.re_errno = error;
    client->refusal = reason;
    client->execution = RPC_NOT_EXECUTED;
    return false;
}

/* `result`: negative, of an operation or of the binder. */
static bool refuse_operation(struct clntmb *client, int result)
{
    if (result <= -MB_STATUS_BASE)
        return refuse(client, RPC_FAILED, -result, mb_status_text(-result - MB_STATUS_BASE));
    return refuse(client, RPC_FAILED, -result,
                  result == -SSS_ETIMEDOUT ? "no answer" : "the operation is refused on this node");
}

static bool find_server(struct clntmb *client)
{
    struct mb_binder_answer answer;
    int status = mb_binder_ask(client->node, MB_BINDER_FIND, client->program, client->version,
                               client->options.type, client->options.connect_ns, &answer);

    if (status < 0)
        return refuse_operation(client, status);
    if (status != MB_BINDER_FOUND)
        return refuse(client, RPC_PROGNOTREGISTERED, 0, "the binder knows no such server");
    client->server_task = answer.task;
    return true;
}

static bool take_bound(struct clntmb *client)
{
    struct mb_record *record;
    bool found = false;

    while ((record = mb_fifo_peek(client->replies)) != NULL) {
        const struct mbm_bound *bound = mb_record_data(record);

        if (record->length == sizeof(*bound) && bound->magic == MBM_BOUND) {
            client->bound = *bound;
            found = true;
        }
        mb_fifo_pop(client->replies); /* else a reply to a call that was given up */
    }
    return found;
}

static bool await_bound(struct clntmb *client)
{
    uint64_t deadline = sss_now_ns() + client->options.connect_ns;

    for (;;) {
        struct sss_wait words[2] = {{&client->replies->events, client->replies->events, 0},
                                    {mbm_errors(), *mbm_errors(), 0}};
        struct mb_connection connection;
        uint64_t now;

        if (take_bound(client))
            return true;
        if (mb_connection(client->taskque_ltn, &connection) != 0 || connection.error != 0 ||
            connection.state == MB_CONNECTION_BROKEN) {
            int status = connection.error != 0 ? (int)(connection.error & ~(unsigned)MB_MAYBE)
                                               : MB_CLOSED;

            return take_bound(client) || refuse_operation(client, -(MB_STATUS_BASE + status));
        }
        now = sss_now_ns();
        if (now >= deadline)
            return refuse_operation(client, -SSS_ETIMEDOUT);
        sss_wait(words, 2, deadline - now);
    }
}

bool mbm_bind(struct clntmb *client)
{
    static const char *const refusals[] = {"", "the server does not serve this program and version",
                                           "the server does not serve this type",
                                           "the server takes no messages this long",
                                           "the server has no place for another client"};
    struct {
        struct mbm_head head;
        struct mbm_bind bind;
    } request = {
        .head = {(uintptr_t)client->replies, (uint32_t)client->options.message_most, MBM_BIND},
        .bind = {client->program, client->version, client->options.type,
                 (uint32_t)client->options.message_most, client->options.depth, 0},
    };
    int ltn = mb_taskque_write(client->node, client->server_task, client->key, MB_WRITE_ALLOWED,
                               &request, sizeof(request), NULL);

    if (ltn < 0)
        return refuse_operation(client, ltn);
    client->taskque_ltn = ltn;
    if (!await_bound(client)) {
        mb_close(ltn);
        return false;
    }
    if (client->bound.refusal != MBM_ACCEPTED) {
        mb_close(ltn);
        return refuse(client, client->bound.refusal == MBM_NO_PLACE ? RPC_FAILED : RPC_SYSTEMERROR,
                      SSS_ECONNREFUSED,
                      client->bound.refusal <= MBM_NO_PLACE ? refusals[client->bound.refusal]
                                                            : "refused");
    }
    client->ltn = mb_connect(client->node, client->bound.task, client->bound.key);
    if (client->ltn < 0) {
        mb_close(ltn);
        return refuse_operation(client, client->ltn);
    }
    return true;
}

bool mbm_connect(struct clntmb *client)
{
    if (!find_server(client))
        return false;
    client->ring_sent = client->ring_taken = 0;
    client->ring_largest = 0;
    memset(client->area_used, 0, sizeof(client->area_used));
    if (client->way->bind != NULL && !client->way->bind(client))
        return false;
    client->errors_seen = *mbm_errors();
    client->connected = true;
    return true;
}

void mbm_disconnect(struct clntmb *client)
{
    if (client->connected && client->way->bind != NULL) {
        mb_close(client->ltn);
        mb_close(client->taskque_ltn);
    }
    client->connected = false;
}
