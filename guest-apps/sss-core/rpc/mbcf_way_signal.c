/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Type 3b: a memory-based signal starts the procedure in a dummy task. The signal carries a short
 * request; a long one is WRITTEN into a place of the dummy's area before, since all that goes over
 * one connection is executed in order.
 */
#include "mbcf_client.h"

static int free_place(struct clntmb *client)
{
    for (unsigned i = 0; i < client->bound.slots; i++) {
        if (client->area_used[i] != 0 && client->area_used[i] <= client->ring_taken)
            client->area_used[i] = 0; /* of a one-way call: a later one has been answered */
        if (client->area_used[i] == 0)
            return (int)i;
    }
    return -1;
}

/* A call of the runtime's own: neither its number nor its retransmissions are its user's, who may
 * have chosen the next number. */
static bool call_null(struct clntmb *client)
{
    uint32_t next_xid = client->next_xid;
    unsigned retransmits = client->retransmits;
    struct rpc_err error;
    enum clnt_stat status;

    client->next_xid = rpc_next_xid();
    status = rpc_call_now(&client->client, NULLPROC, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void,
                          NULL, client->options.connect_ns, &error);
    client->next_xid = next_xid;
    client->retransmits = retransmits;
    return status == RPC_SUCCESS;
}

/* Where one-way calls hold all places, the reply to a later call says that they are over. */
static int take_place(struct clntmb *client)
{
    int place = free_place(client);

    return place < 0 && call_null(client) ? free_place(client) : place;
}

/* Apart, so that a short request does not save registers for it. */
__attribute__((noinline)) static int write_area(struct clntmb *client, struct mbm_call *slot,
                                                struct mb_operation *operation)
{
    uint64_t offset;

    if (slot->area_slot < 0)
        slot->area_slot = take_place(client);
    if (slot->area_slot < 0)
        return -(MB_STATUS_BASE + MB_FULL);
    client->area_used[slot->area_slot] = client->ring_sent + 1;
    offset = (uint64_t)slot->area_slot * client->bound.slot;
    operation->arguments = 2;
    operation->argument[0] = offset;
    operation->argument[1] = slot->length;
    return mb_write(client->ltn, client->bound.area + offset, slot->message, slot->length, NULL);
}

static int prepare(struct clntmb *client, struct mbm_call *slot, struct mb_operation *operation,
                   uint32_t *ring_bytes)
{
    operation->op = MB_OP_SIGNAL;
    operation->remote = client->bound.handler;
    *ring_bytes = mbm_record_bytes((uint32_t)sizeof(struct mb_signal_head));
    if (slot->length > MBM_SIGNAL_MOST)
        return write_area(client, slot, operation);
    operation->data = slot->message;
    operation->length = slot->length;
    *ring_bytes = mbm_record_bytes((uint32_t)sizeof(struct mb_signal_head) + slot->length);
    return 0;
}

const struct mbm_way mbm_way_signal = {.key = MBM_KEY_WRITE,
                                       .call_most = MBCF_MESSAGE_MOST,
                                       .message_default = MBCF_MESSAGE_DEFAULT,
                                       .bind = mbm_bind,
                                       .prepare = prepare,
                                       .find_failures = mbm_ring_find_failures};
