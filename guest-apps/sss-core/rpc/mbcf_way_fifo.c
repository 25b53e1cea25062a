/* SPDX-License-Identifier: Apache-2.0 */
/* Types 3 and 3a: requests are written into a FIFO that the server has made for this client. */
#include "mbcf_client.h"

static int send_by_fifo(struct clntmb *client, struct mbm_call *slot, bool ack)
{
    uint32_t need = mbm_record_bytes(slot->length);
    struct mb_operation operation = {.op = MB_OP_FIFO,
                                     .ltn = client->ltn,
                                     .remote = client->bound.fifo,
                                     .data = slot->message,
                                     .length = slot->length};
    int status;

    slot->ring_start = client->ring_sent;
    status = mbm_request(client, slot, &operation, ack || !mbm_ring_has_room(client, need));
    if (status == 0)
        mbm_ring_add(client, need);
    return status;
}

const struct mbm_way mbm_way_fifo = {.key = MBM_KEY_WRITE,
                                     .call_most = MBCF_MESSAGE_MOST,
                                     .message_default = MBCF_MESSAGE_DEFAULT,
                                     .bind = mbm_bind,
                                     .send = send_by_fifo,
                                     .find_failures = mbm_ring_find_failures};
