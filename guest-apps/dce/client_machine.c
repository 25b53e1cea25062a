/* SPDX-License-Identifier: Apache-2.0 */
#include "client_machine.h"

#include "conv.h"

enum {
    PING_BACKOFF = 4,  /* intervals of pings double up to so many times the first */
    WORKING_YOUNG = 5, /* first intervals: a call of less age is asked after sooner */
    WORKING_OLD = 15,
};

void dce_client_init(struct dce_client *client, const struct dce_client_settings *settings,
                     uint8_t *memory, uint8_t *results, size_t results_room)
{
    *client = (struct dce_client){
        .settings = *settings,
        .interface_hint = DCE_NO_HINT,
        .activity_hint = DCE_NO_HINT,
        .server = settings->server,
        .ping_at = DCE_NEVER,
    };
    dce_xmitq_init(&client->xmitq, &settings->xmitq, memory);
    dce_recvq_init(&client->recvq, results, results_room);
}

static bool in_call(const struct dce_client *client)
{
    return client->state == DCE_CLIENT_XMIT || client->state == DCE_CLIENT_RECV;
}

static bool is_broadcast(const struct dce_client *client)
{
    return (client->operation.semantics & DCE_BROADCAST) != 0;
}

static bool is_idempotent(const struct dce_client *client)
{
    return (client->operation.semantics & (DCE_IDEMPOTENT | DCE_MAYBE)) != 0;
}

/* Whether the server keeps the end of the call until it is acknowledged: of an idempotent one only
 * what is longer than a fragment, or each lost one would cost the whole call. */
static bool is_acknowledged(const struct dce_client *client)
{
    return !is_idempotent(client) || client->recvq.next > 1;
}

static struct dce_pdu header_of(const struct dce_client *client, enum dce_ptype ptype)
{
    return (struct dce_pdu){
        .ptype = (uint8_t)ptype,
        .big_endian = client->settings.big_endian,
        .object = client->operation.object,
        .interface = client->operation.interface,
        .activity = client->settings.activity,
        .boot_time = client->boot_time,
        .version = client->operation.version,
        .seq = client->seq,
        .opnum = client->operation.opnum,
        .interface_hint = client->interface_hint,
        .activity_hint = client->activity_hint,
    };
}

/* A packet of this type to the server, whose body may be filled in; NULL: it is lost. */
static struct dce_control *send_control(struct dce_client *client, enum dce_ptype ptype,
                                        enum dce_count count)
{
    struct dce_control *control = dce_outbox_add(&client->outbox, &client->counts);

    client->counts.of[count]++;
    if (control == NULL)
        return NULL;
    control->packet.pdu = header_of(client, ptype);
    control->packet.to = client->server;
    return control;
}

/* ---- the call ---- */

void dce_client_call(struct dce_client *client, uint64_t now, const struct dce_operation *operation,
                     const uint8_t *arguments, size_t length)
{
    struct dce_pdu header;

    client->operation = *operation;
    client->seq = client->called ? client->seq + 1 : client->settings.seq;
    client->called = true;
    client->server = client->settings.server;
    client->done = client->rejected = client->waiting = false;
    client->cancelling = client->cancel_is_pending = false;
    client->status = DCE_OK;
    client->began_ns = now;
    client->ping_at = client->ack_at = DCE_NEVER;
    dce_recvq_reset(&client->recvq);
    header = header_of(client, DCE_REQUEST);
    header.flags1 = operation->semantics;
    dce_xmitq_start(&client->xmitq, now, &header, &client->server, arguments, length);
    /* What a fack has acknowledged cannot be asked for again: such a call goes at most once. */
    if (client->xmitq.fragmented) {
        client->operation.semantics &= (uint8_t)~DCE_IDEMPOTENT;
        client->xmitq.header.flags1 &= (uint8_t)~DCE_IDEMPOTENT;
    }
    client->state = DCE_CLIENT_XMIT;
}

static void finish(struct dce_client *client, uint64_t now, uint32_t status, bool is_kept)
{
    client->counts.of[DCE_COUNT_fragments_resent] += client->xmitq.resent;
    client->xmitq.resent = 0;
    dce_xmitq_done(&client->xmitq);
    client->status = status;
    client->done = true;
    client->waiting = client->cancelling = false;
    client->ping_at = DCE_NEVER;
    client->state = DCE_CLIENT_IDLE;
    if (is_kept && is_acknowledged(client)) {
        client->state = DCE_CLIENT_FINAL;
        client->ack_at = dce_later(now, client->settings.ack_delay_ns);
    }
}

static void forget_server(struct dce_client *client)
{
    client->boot_time = 0;
    client->interface_hint = client->activity_hint = DCE_NO_HINT;
}

static void wait_for_answer(struct dce_client *client, uint64_t now)
{
    if (!client->waiting)
        client->waiting_ns = now;
    client->waiting = true;
}

/* All has been sent: soon nothing is heard but what is asked for. */
static void begin_pinging(struct dce_client *client, uint64_t now)
{
    client->ping_every = client->settings.ping_ns;
    client->ping_at = is_broadcast(client) ? DCE_NEVER : dce_later(now, client->ping_every);
}

/* The server has answered a ping: the older the call, the later it is asked again. */
static void ping_later(struct dce_client *client, uint64_t now)
{
    uint64_t first = client->settings.ping_ns, age = now - client->began_ns, pause = first / 2 * 3;

    if (age >= WORKING_OLD * first)
        pause = WORKING_OLD * first;
    else if (age >= WORKING_YOUNG * first)
        pause = WORKING_YOUNG * first;
    client->ping_every = first;
    client->ping_at = dce_later(now, pause);
}

static void note_sent(struct dce_client *client, uint64_t now, const struct dce_pdu *pdu)
{
    client->counts.of[DCE_COUNT_fragments]++;
    if ((pdu->flags1 & DCE_NO_FACK) == 0 || (pdu->flags1 & DCE_LAST) != 0)
        wait_for_answer(client, now);
    if (!dce_xmitq_all_sent(&client->xmitq))
        return;
    if ((client->operation.semantics & DCE_MAYBE) != 0) {
        finish(client, now, DCE_OK, false);
        return;
    }
    client->state = DCE_CLIENT_RECV;
    begin_pinging(client, now);
}

enum dce_action dce_client_next(struct dce_client *client, uint64_t now, struct dce_packet *packet)
{
    if (dce_outbox_take(&client->outbox, packet))
        return DCE_SEND;
    if (client->state == DCE_CLIENT_XMIT && dce_xmitq_next(&client->xmitq, now, packet)) {
        note_sent(client, now, &packet->pdu);
        return DCE_SEND;
    }
    if (client->done) {
        client->done = false;
        return DCE_DONE;
    }
    /* Copies ahead, while the facks of what was sent are awaited. */
    while (in_call(client) && dce_xmitq_fill(&client->xmitq))
        continue;
    return DCE_WAIT;
}

/* ---- time ---- */

static void send_ping(struct dce_client *client, uint64_t now)
{
    send_control(client, DCE_PING, DCE_COUNT_pings);
    wait_for_answer(client, now);
    client->ping_every *= 2;
    if (client->ping_every > PING_BACKOFF * client->settings.ping_ns)
        client->ping_every = PING_BACKOFF * client->settings.ping_ns;
    client->ping_at = dce_later(now, client->ping_every);
}

static void send_cancel(struct dce_client *client, uint64_t now)
{
    struct dce_control *control = send_control(client, DCE_CANCEL, DCE_COUNT_cancels);
    const struct dce_cancel cancel = {.id = client->cancel_id};

    if (control != NULL) {
        control->packet.pdu.body = control->bytes + DCE_HEADER;
        control->packet.pdu.length = dce_cancel_encode(&cancel, false, control->bytes + DCE_HEADER,
                                                       client->settings.big_endian);
    }
    client->cancel_at = dce_later(now, client->settings.cancel_ns);
}

void dce_client_cancel(struct dce_client *client, uint64_t now)
{
    if (!in_call(client) || client->cancelling)
        return;
    client->cancelling = true;
    client->cancel_id++;
    send_cancel(client, now);
}

static void send_ack(struct dce_client *client)
{
    send_control(client, DCE_ACK, DCE_COUNT_acks);
    client->state = DCE_CLIENT_IDLE;
    client->ack_at = DCE_NEVER;
}

static uint64_t end_of_patience(const struct dce_client *client)
{
    if (is_broadcast(client))
        return dce_later(client->began_ns, client->settings.broadcast_ns);
    return client->waiting ? dce_later(client->waiting_ns, client->settings.give_up_ns) : DCE_NEVER;
}

static uint64_t resend_deadline(const struct dce_client *client)
{
    return client->state == DCE_CLIENT_XMIT ? dce_xmitq_deadline(&client->xmitq) : DCE_NEVER;
}

uint64_t dce_client_deadline(const struct dce_client *client)
{
    uint64_t deadline;

    if (client->state == DCE_CLIENT_FINAL)
        return client->ack_at;
    if (!in_call(client))
        return DCE_NEVER;
    deadline = dce_earlier(end_of_patience(client), resend_deadline(client));
    if (client->state == DCE_CLIENT_RECV)
        deadline = dce_earlier(deadline, client->ping_at);
    return client->cancelling ? dce_earlier(deadline, client->cancel_at) : deadline;
}

void dce_client_timeout(struct dce_client *client, uint64_t now)
{
    if (client->state == DCE_CLIENT_FINAL && now >= client->ack_at)
        send_ack(client);
    if (!in_call(client))
        return;
    if (now >= end_of_patience(client)) {
        finish(client, now, DCE_COMM_FAILURE, false);
        return;
    }
    if (now >= resend_deadline(client)) {
        dce_xmitq_timeout(&client->xmitq);
        client->xmitq.sent_ns = now;
    }
    if (client->state == DCE_CLIENT_RECV && now >= client->ping_at)
        send_ping(client, now);
    if (client->cancelling && now >= client->cancel_at)
        send_cancel(client, now);
}

/* ---- packets ---- */

/* A server that does not know this activity asks which call it makes, from any port of its host. */
static void answer_who_are_you(struct dce_client *client, const struct dce_peer *from,
                               const struct dce_pdu *pdu)
{
    struct dce_conv_question question;
    struct dce_conv_answer answer = {.seq = client->seq, .space = client->settings.space};
    struct dce_control *control;

    if (!dce_uuid_equal(&pdu->interface, &dce_conv_interface) ||
        pdu->opnum > DCE_CONV_WHO_ARE_YOU2 || !dce_conv_get_question(pdu, &question) ||
        !client->called || !dce_uuid_equal(&question.activity, &client->settings.activity)) {
        client->counts.of[DCE_COUNT_strays]++;
        return;
    }
    if (client->boot_time == 0 && in_call(client))
        client->boot_time = client->xmitq.header.boot_time = question.boot_time;
    if (!in_call(client)) /* a late duplicate of the request must not be executed again */
        answer.status = DCE_UNKNOWN_ACTIVITY;
    else if (question.boot_time != client->boot_time)
        answer.status = DCE_YOU_CRASHED;
    client->counts.of[DCE_COUNT_who_are_you]++;
    control = dce_outbox_add(&client->outbox, &client->counts);
    if (control == NULL)
        return;
    control->packet.pdu = *pdu;
    control->packet.pdu.ptype = DCE_RESPONSE;
    control->packet.pdu.flags1 = control->packet.pdu.flags2 = 0;
    control->packet.pdu.big_endian = client->settings.big_endian;
    control->packet.pdu.body = control->bytes + DCE_HEADER;
    control->packet.pdu.length = dce_conv_put_answer(
        &answer, pdu->opnum, control->bytes + DCE_HEADER, client->settings.big_endian);
    control->packet.to = *from;
}

static bool ever_sent(const struct dce_client *client)
{
    return client->xmitq.all_queued && client->xmitq.unsent == client->xmitq.next;
}

static void after_fack(struct dce_client *client, uint64_t now, bool was_ping)
{
    if (!dce_xmitq_all_sent(&client->xmitq)) {
        client->state = DCE_CLIENT_XMIT;
        client->ping_at = DCE_NEVER;
        return;
    }
    if (client->state == DCE_CLIENT_XMIT) {
        client->state = DCE_CLIENT_RECV;
        begin_pinging(client, now);
    } else if (was_ping) {
        ping_later(client, now);
    }
}

/* The server knows nothing of the call, or not any more. */
static void begin_again(struct dce_client *client, uint64_t now)
{
    dce_xmitq_again(&client->xmitq);
    client->xmitq.sent_ns = now;
    after_fack(client, now, false);
}

static void take_fack(struct dce_client *client, uint64_t now, const struct dce_pdu *pdu)
{
    bool is_nocall = pdu->ptype == DCE_NOCALL, has_body, is_news;
    uint16_t base = client->xmitq.base;
    struct dce_fack fack;

    /* Once the response has begun, both are late ones. */
    if (!in_call(client) || client->recvq.started || !dce_fack_decode(pdu, &fack, &has_body)) {
        client->counts.of[DCE_COUNT_strays]++;
        return;
    }
    client->counts.of[is_nocall ? DCE_COUNT_nocall : DCE_COUNT_facks_received]++;
    if (is_nocall && !has_body && client->state == DCE_CLIENT_RECV) {
        begin_again(client, now);
        return;
    }
    if ((is_nocall && !has_body) ||
        !dce_xmitq_fack(&client->xmitq, pdu->fragment, has_body ? &fack : NULL,
                        is_nocall && client->state == DCE_CLIENT_RECV)) {
        client->counts.of[DCE_COUNT_strays]++;
        return;
    }
    /* A nocall that says nothing new is not what is waited for. */
    is_news = !is_nocall || client->xmitq.base != base || !dce_xmitq_all_sent(&client->xmitq);
    after_fack(client, now, is_nocall);
    if (is_news)
        client->waiting = false;
    if (client->xmitq.outstanding != 0)
        wait_for_answer(client, now);
}

static void take_working(struct dce_client *client, uint64_t now)
{
    if (!in_call(client) || !ever_sent(client)) {
        client->counts.of[DCE_COUNT_strays]++;
        return;
    }
    client->counts.of[DCE_COUNT_working]++;
    client->waiting = false;
    client->state = DCE_CLIENT_RECV;
    if (!is_idempotent(client))
        dce_xmitq_done(&client->xmitq);
    ping_later(client, now);
}

static void send_fack(struct dce_client *client, uint16_t serial)
{
    struct dce_control *control = send_control(client, DCE_FACK, DCE_COUNT_facks);

    if (control != NULL)
        recvq_fack(&client->recvq, &client->settings.offer, serial, &control->packet.pdu,
                   control->bytes + DCE_HEADER);
}

/* The end of a call has come again: the server has not got the ack, if one was sent. */
static void acknowledge_again(struct dce_client *client, bool is_end)
{
    client->counts.of[DCE_COUNT_duplicates]++;
    if (is_end && client->state == DCE_CLIENT_IDLE && is_acknowledged(client))
        send_ack(client);
}

static void take_response(struct dce_client *client, uint64_t now, const struct dce_pdu *pdu)
{
    enum dce_insert insert;

    if (!in_call(client)) {
        acknowledge_again(client, client->recvq.complete && pdu->fragment == 0);
        return;
    }
    if (!ever_sent(client)) {
        client->counts.of[DCE_COUNT_strays]++;
        return;
    }
    insert = dce_recvq_insert(&client->recvq, pdu);
    if (insert != DCE_NEW)
        client->counts.of[insert == DCE_OLD ? DCE_COUNT_duplicates : DCE_COUNT_dropped]++;
    client->waiting = false;
    client->state = DCE_CLIENT_RECV;
    dce_xmitq_done(&client->xmitq);
    client->response_big_endian = pdu->big_endian;
    if ((pdu->flags2 & DCE_CANCEL_PENDING) != 0)
        client->cancel_is_pending = true;
    if (client->recvq.complete) {
        finish(client, now, client->recvq.overflow ? DCE_OUT_OF_RANGE : DCE_OK, true);
        return;
    }
    begin_pinging(client, now);
    if (dce_recvq_asks(&client->recvq, pdu))
        send_fack(client, pdu->serial);
}

static void take_failure(struct dce_client *client, uint64_t now, const struct dce_pdu *pdu)
{
    bool is_fault = pdu->ptype == DCE_FAULT;
    uint32_t status;

    if (!dce_status_decode(pdu, &status) || status == DCE_OK) {
        client->counts.of[DCE_COUNT_strays]++;
        return;
    }
    if (!in_call(client)) {
        acknowledge_again(client, is_fault && !client->rejected && status == client->status);
        return;
    }
    client->counts.of[is_fault ? DCE_COUNT_faults : DCE_COUNT_rejects]++;
    client->rejected = !is_fault;
    finish(client, now, status, is_fault);
    if (status == DCE_WRONG_BOOT_TIME && !is_fault)
        forget_server(client);
}

/* Whether a packet is for the present or latest call, and from the server that it was made to. */
static bool is_ours(struct dce_client *client, uint64_t now, const struct dce_peer *from,
                    const struct dce_pdu *pdu)
{
    if (!client->called || !dce_uuid_equal(&pdu->activity, &client->settings.activity) ||
        pdu->seq != client->seq ||
        (!is_broadcast(client) && from->address != client->server.address))
        return false;
    if (is_broadcast(client))
        client->server = *from; /* the first that answers */
    if (!in_call(client) || pdu->boot_time == 0 || client->boot_time == 0 ||
        pdu->boot_time == client->boot_time)
        return true;
    finish(client, now, DCE_WRONG_BOOT_TIME, false);
    forget_server(client);
    return false;
}

/* What the server says of itself goes into all packets to it. */
static void learn(struct dce_client *client, const struct dce_pdu *pdu)
{
    if (pdu->boot_time != 0)
        client->boot_time = pdu->boot_time;
    if (pdu->interface_hint != DCE_NO_HINT)
        client->interface_hint = pdu->interface_hint;
    if (pdu->activity_hint != DCE_NO_HINT)
        client->activity_hint = pdu->activity_hint;
    client->xmitq.header.boot_time = client->boot_time;
    client->xmitq.header.interface_hint = client->interface_hint;
    client->xmitq.header.activity_hint = client->activity_hint;
}

DCE_MARKER void client_machine_packet(struct dce_client *client, uint64_t now,
                                      const struct dce_peer *from, const struct dce_pdu *pdu)
{
    if (pdu->ptype == DCE_REQUEST) {
        answer_who_are_you(client, from, pdu);
        return;
    }
    if (!is_ours(client, now, from, pdu)) {
        client->counts.of[DCE_COUNT_strays]++;
        return;
    }
    if (in_call(client))
        learn(client, pdu);
    switch (pdu->ptype) {
    case DCE_RESPONSE:
        take_response(client, now, pdu);
        break;
    case DCE_FACK:
    case DCE_NOCALL:
        take_fack(client, now, pdu);
        break;
    case DCE_WORKING:
        take_working(client, now);
        break;
    case DCE_FAULT:
    case DCE_REJECT:
        take_failure(client, now, pdu);
        break;
    case DCE_CANCEL_ACK:
        client->counts.of[DCE_COUNT_cancel_acks]++;
        client->cancelling = false;
        break;
    default:
        client->counts.of[DCE_COUNT_strays]++;
    }
}
