/* SPDX-License-Identifier: Apache-2.0 */
/* Types 3 and 3a: requests are written into a FIFO that the server has made for this client. */
#include "mbcf_client.h"

static int prepare(struct clntmb *client, struct mbm_call *slot, struct mb_operation *operation,
                   uint32_t *ring_bytes)
{
    operation->op = MB_OP_FIFO;
    operation->remote = client->bound.fifo;
    operation->data = slot->message;
    operation->length = slot->length;
    *ring_bytes = mbm_record_bytes(slot->length);
    return 0;
}

const struct mbm_way mbm_way_fifo = {.key = MBM_KEY_WRITE,
                                     .call_most = MBCF_MESSAGE_MOST,
                                     .message_default = MBCF_MESSAGE_DEFAULT,
                                     .bind = mbm_bind,
                                     .prepare = prepare,
                                     .find_failures = mbm_ring_find_failures};
