/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types 1, 2 and 12: each call makes a connection by a write into the server's TASKQUE, which holds
 * the request (1) or says where the server READs it (2). The server discards the connection after
 * the reply.
 */
#include "mbcf_client.h"

static void write_taskque(const struct clntmb *client, struct mb_operation *operation, void *data,
                          size_t length, unsigned permission)
{
    operation->op = MB_OP_TASKQUE;
    operation->node = client->node;
    operation->task = client->server_task;
    operation->data = data;
    operation->length = length;
    operation->argument[0] = client->key;
    operation->argument[1] = permission;
}

static int prepare_request(struct clntmb *client, struct mbm_call *slot,
                           struct mb_operation *operation, uint32_t *ring_bytes)
{
    (void)ring_bytes;
    *slot->head = (struct mbm_head){(uintptr_t)client->replies,
                                    (uint32_t)client->options.message_most, MBM_CALL};
    write_taskque(client, operation, slot->head, sizeof(*slot->head) + slot->length,
                  MB_WRITE_ALLOWED);
    return 0;
}

static int prepare_place(struct clntmb *client, struct mbm_call *slot,
                         struct mb_operation *operation, uint32_t *ring_bytes)
{
    (void)ring_bytes;
    slot->place = (struct mbm_place_message){
        {(uintptr_t)client->replies, (uint32_t)client->options.message_most, MBM_CALL_AT},
        {(uintptr_t)slot->message, slot->length, mbm_word(slot->message, 0)},
    };
    write_taskque(client, operation, &slot->place, sizeof(slot->place),
                  MB_READ_ALLOWED | MB_WRITE_ALLOWED);
    return 0;
}

static int prepare_either(struct clntmb *client, struct mbm_call *slot,
                          struct mb_operation *operation, uint32_t *ring_bytes)
{
    return slot->length <= MBM_CALL_MOST ? prepare_request(client, slot, operation, ring_bytes)
                                         : prepare_place(client, slot, operation, ring_bytes);
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
                                        .prepare = prepare_request,
                                        .find_failures = find_failures};
const struct mbm_way mbm_way_read = {.connects_per_call = true,
                                     .key = MBM_KEY_READ,
                                     .call_most = MBCF_MESSAGE_MOST,
                                     .message_default = MBCF_MESSAGE_DEFAULT,
                                     .prepare = prepare_place,
                                     .find_failures = find_failures};
const struct mbm_way mbm_way_taskque_or_read = {.connects_per_call = true,
                                                .key = MBM_KEY_READ,
                                                .call_most = MBCF_MESSAGE_MOST,
                                                .message_default = MBCF_MESSAGE_DEFAULT,
                                                .prepare = prepare_either,
                                                .find_failures = find_failures};
