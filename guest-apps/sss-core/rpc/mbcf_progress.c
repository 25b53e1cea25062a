/* SPDX-License-Identifier: Apache-2.0 */
/* What arrives for the calls of a handle, and what is due: replies, ACKs, failures, sending again.
 */
#include "mbcf_client.h"
#include "sss/system.h"

static struct clntmb *of(const CLIENT *client)
{
    return client->cl_private;
}

static struct mbm_call *find_xid(struct clntmb *client, uint32_t xid)
{
    if (client->latest->call != NULL && client->latest->call->xid == xid)
        return client->latest;
    for (unsigned i = 0; i < client->slots; i++)
        if (client->calls[i].call != NULL && client->calls[i].call->xid == xid)
            return &client->calls[i];
    return NULL;
}

static void take_reply(struct clntmb *client, char *reply, uint32_t length)
{
    struct mbm_call *slot = length >= MBM_REPLY_HEADER ? find_xid(client, mbm_word(reply, 0))
                                                       : NULL;
    struct rpc_call *call;
    XDR xdrs;

    if (slot == NULL || slot->state == MBM_ANSWERED)
        return; /* nothing waits for it any longer */
    call = slot->call;
    if (call->decode == NULL)
        return;
    client->execution = RPC_EXECUTED;
    if (slot->ring_start > client->ring_taken)
        /* requests are taken out in order: all before this one are out */
        client->ring_taken = slot->ring_start;
    xdrmem_create(&xdrs, reply, length, XDR_DECODE);
    rpc_call_reply(call, &xdrs);
    if (slot->state == MBM_SENT_ACK && slot->ack.state != MB_ACK_DONE) {
        slot->outcome = call->status;
        call->status = RPC_INPROGRESS;
        mbm_enter(client, slot, MBM_ANSWERED);
        return;
    }
    mbm_call_release(client, slot);
}

static void take_replies(struct clntmb *client)
{
    struct mb_record *record;

    while ((record = mb_fifo_peek(client->replies)) != NULL) {
        if (record->node == client->node)
            take_reply(client, mb_record_data(record), record->length);
        mb_fifo_pop(client->replies);
    }
}

static bool has_ack(const struct mbm_call *slot)
{
    return slot->state >= MBM_SENT_ACK && slot->state != MBM_TO_SEND &&
           slot->ack.state == MB_ACK_DONE;
}

static void take_ack(struct clntmb *client, struct mbm_call *slot)
{
    if (slot->state == MBM_ANSWERED)
        mbm_call_end_answered(client, slot);
    else if (slot->ack.status != MB_OK)
        mbm_call_failed(client, slot, slot->ack.status);
    else if (slot->state == MBM_ONE_WAY)
        mbm_call_decide(client, slot, RPC_SUCCESS, 0, RPC_MAYBE_EXECUTED);
    else
        mbm_enter(client, slot, MBM_SENT);
}

static void take_acks(struct clntmb *client)
{
    for (unsigned i = 0; i < client->slots; i++)
        if (has_ack(&client->calls[i]))
            take_ack(client, &client->calls[i]);
}

void mbm_take_all(struct clntmb *client)
{
    take_replies(client);
    take_acks(client);
}

static bool has_deadline(const struct mbm_call *slot)
{
    return slot->state >= MBM_SENT && slot->state <= MBM_TO_SEND;
}

/*
 * The ACK of a call whose reply is still to come is not a reason to wake up: the reply comes behind
 * it, and an ACK that tells of a failure is counted among the errors.
 */
static bool waits_for_ack(const struct mbm_call *slot)
{
    return slot->state >= MBM_ANSWERED;
}

/* Apart, as are failures, so that a call that only waits for its reply saves no registers for it.
 * -> how many words there are now to wait for. */
__attribute__((noinline)) static unsigned look_at_watched(struct clntmb *client,
                                                          struct sss_wait words[SSS_WAITS],
                                                          unsigned count, uint64_t *due_ns)
{
    for (unsigned i = 0; client->watched > 0 && i < client->slots; i++) {
        struct mbm_call *slot = &client->calls[i];

        if (!mbm_is_watched(client, slot->state))
            continue;
        if (has_ack(slot))
            take_ack(client, slot);
        if (has_deadline(slot) && slot->due_ns != MBM_NEVER && slot->due_ns <= sss_now_ns())
            mbm_call_send_again(client, slot);
        if (waits_for_ack(slot) && count < SSS_WAITS)
            words[count++] = (struct sss_wait){&slot->ack.state, MB_ACK_PENDING, 0};
        if (has_deadline(slot) && slot->due_ns < *due_ns)
            *due_ns = slot->due_ns;
    }
    return count;
}

__attribute__((noinline)) static void find_failures(struct clntmb *client, uint32_t errors)
{
    client->errors_seen = errors;
    take_acks(client); /* an ACK that tells of a failure is counted among the errors */
    client->way->find_failures(client);
}

unsigned mbm_progress(CLIENT *handle, struct sss_wait words[SSS_WAITS], uint64_t *due_ns)
{
    struct clntmb *client = of(handle);
    uint32_t errors = *mbm_errors();

    words[0] = (struct sss_wait){&client->replies->events, client->replies->events, 0};
    words[1] = (struct sss_wait){mbm_errors(), errors, 0};
    *due_ns = MBM_NEVER;
    take_replies(client);
    if (errors != client->errors_seen)
        find_failures(client, errors);
    return client->watched == 0 ? 2 : look_at_watched(client, words, 2, due_ns);
}
