/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types 1, 2 and 12: each call makes a connection by a write into the server's TASKQUE, which holds
 * the request (1) or says where the server READs it (2). The server discards the connection after
 * the reply.
 */
#include "mbcf_client.h"

static int write_taskque(struct clntmb *client, struct mbm_call *slot, void *data, size_t length,
                         unsigned permission, bool ack)
{
    struct mb_operation operation = {.op = MB_OP_TASKQUE,
                                     .node = client->node,
                                     .task = client->server_task,
                                     .data = data,
                                     .length = length,
                                     .argument = {client->key, permission}};
    int error = mbm_request(client, slot, &operation, ack);

    if (error == 0)
        slot->ltn = operation.ltn;
    return error;
}

static int send_request(struct clntmb *client, struct mbm_call *slot, bool ack)
{
    *slot->head = (struct mbm_head){(uintptr_t)client->replies,
                                    (uint32_t)client->options.message_most, MBM_CALL};
    return write_taskque(client, slot, slot->head, sizeof(*slot->head) + slot->length,
                         MB_WRITE_ALLOWED, ack);
}

static int send_place(struct clntmb *client, struct mbm_call *slot, bool ack)
{
    struct {
        struct mbm_head head;
        struct mbm_source source;
    } place = {
        {(uintptr_t)client->replies, (uint32_t)client->options.message_most, MBM_CALL_AT},
        {(uintptr_t)slot->message, slot->length, mbm_word(slot->message, 0)},
    };

    return write_taskque(client, slot, &place, sizeof(place), MB_READ_ALLOWED | MB_WRITE_ALLOWED,
                         ack);
}

static int send_request_or_place(struct clntmb *client, struct mbm_call *slot, bool ack)
{
    return slot->length <= MBM_CALL_MOST ? send_request(client, slot, ack)
                                         : send_place(client, slot, ack);
}

static void find_failures(struct clntmb *client)
{
    for (unsigned i = 0; i < client->slots; i++) {
        struct mbm_call *slot = &client->calls[i];
        bool broken;
        unsigned status;

        if (!mbm_may_fail(slot) || slot->ltn == 0)
            continue;
        status = mbm_connection_failure(slot->ltn, &broken);
        mbm_take_all(client); /* the reply comes before the CLOSE */
        if (status != 0 && mbm_may_fail(slot))
            mbm_call_failed(client, slot, mbm_failure_of_call(slot, status));
    }
}

const struct mbm_way mbm_way_taskque = {.connects_per_call = true,
                                        .key = MBM_KEY_WRITE,
                                        .call_most = MBM_CALL_MOST,
                                        .message_default = MBM_CALL_MOST,
                                        .send = send_request,
                                        .find_failures = find_failures};
const struct mbm_way mbm_way_read = {.connects_per_call = true,
                                     .key = MBM_KEY_READ,
                                     .call_most = MBCF_MESSAGE_MOST,
                                     .message_default = MBCF_MESSAGE_DEFAULT,
                                     .send = send_place,
                                     .find_failures = find_failures};
const struct mbm_way mbm_way_taskque_or_read = {.connects_per_call = true,
                                                .key = MBM_KEY_READ,
                                                .call_most = MBCF_MESSAGE_MOST,
                                                .message_default = MBCF_MESSAGE_DEFAULT,
                                                .send = send_request_or_place,
                                                .find_failures = find_failures};
