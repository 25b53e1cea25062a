/* SPDX-License-Identifier: Apache-2.0 */
#include "server_machine.h"

#include "conv.h"

enum {
    WAY_BACKOFF = 4,
    ALIGNMENT = 16,
    STATUS_BYTES = 4,
};

/* Which of an activity's parts are where in the memory of the table. */
struct layout {
    size_t xmitq, request, response, bytes;
};

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t response_room(const struct dce_server_settings *settings)
{
    return settings->response_bytes < STATUS_BYTES ? STATUS_BYTES : settings->response_bytes;
}

static struct layout layout_of(const struct dce_server_settings *settings)
{
    struct layout layout = {0};

    layout.request = aligned(dce_xmitq_memory(&settings->xmitq));
    layout.response = layout.request + aligned(dce_recvq_room(settings->request_bytes));
    layout.bytes = layout.response + aligned(response_room(settings));
    return layout;
}

size_t dce_server_memory(const struct dce_server_settings *settings)
{
    return aligned(settings->activities * sizeof(struct dce_activity)) +
           aligned(settings->activities * sizeof(uint16_t)) +
           aligned(dce_order_memory(settings->activities)) +
           settings->activities * layout_of(settings).bytes;
}

void dce_server_init(struct dce_server *server, const struct dce_server_settings *settings,
                     uint8_t *memory)
{
    struct layout layout = layout_of(settings);
    uint8_t *parts;

    *server = (struct dce_server){.settings = *settings};
    server->table = (struct dce_activity *)(void *)memory;
    memory += aligned(settings->activities * sizeof(struct dce_activity));
    server->queue = (uint16_t *)(void *)memory;
    memory += aligned(settings->activities * sizeof(uint16_t));
    dce_order_init(&server->order, settings->activities, memory);
    parts = memory + aligned(dce_order_memory(settings->activities));
    for (unsigned i = 0; i < settings->activities; i++, parts += layout.bytes) {
        struct dce_activity *activity = &server->table[i];

        dce_xmitq_init(&activity->xmitq, &settings->xmitq, parts + layout.xmitq);
        dce_recvq_init(&activity->recvq, parts + layout.request,
                       dce_recvq_room(settings->request_bytes));
        activity->response = parts + layout.response;
    }
}

static uint16_t index_of(const struct dce_server *server, const struct dce_activity *activity)
{
    return (uint16_t)(activity - server->table);
}

static void stray(struct dce_server *server)
{
    server->counts.of[DCE_COUNT_strays]++;
}

/* It has something to send or to run. */
static void enqueue(struct dce_server *server, struct dce_activity *activity)
{
    unsigned count = server->settings.activities;

    if (activity->queued)
        return;
    activity->queued = true;
    server->queue[(server->queue_first + server->queue_count++) % count] = index_of(server,
                                                                                    activity);
}

/* ---- answers ---- */

/* An answer to `pdu`, whose header it repeats; NULL: it is lost. */
static struct dce_control *answer(struct dce_server *server, const struct dce_peer *to,
                                  const struct dce_pdu *pdu, enum dce_ptype ptype,
                                  enum dce_count count)
{
    struct dce_control *control = dce_outbox_add(&server->outbox, &server->counts);
    struct dce_pdu *header;

    server->counts.of[count]++;
    if (control == NULL)
        return NULL;
    header = &control->packet.pdu;
    *header = *pdu;
    header->ptype = (uint8_t)ptype;
    header->flags1 = header->flags2 = 0;
    header->big_endian = server->settings.big_endian;
    header->boot_time = server->settings.boot_time;
    header->length = header->fragment = header->serial = header->auth = 0;
    header->body = control->bytes + DCE_HEADER;
    control->packet.to = *to;
    return control;
}

static void reject(struct dce_server *server, const struct dce_peer *to, const struct dce_pdu *pdu,
                   uint32_t status)
{
    struct dce_control *control;

    /* Others may serve what was broadcast, and nothing answers a maybe call. */
    if ((pdu->flags1 & (DCE_MAYBE | DCE_BROADCAST)) != 0) {
        stray(server);
        return;
    }
    control = answer(server, to, pdu, DCE_REJECT, DCE_COUNT_rejects);
    if (control == NULL)
        return;
    dce_put32(control->bytes + DCE_HEADER, status, server->settings.big_endian);
    control->packet.pdu.length = STATUS_BYTES;
}

static void send_fack(struct dce_server *server, struct dce_activity *activity,
                      enum dce_ptype ptype, uint16_t serial)
{
    struct dce_control *control = answer(server, &activity->peer, &activity->header, ptype,
                                         ptype == DCE_FACK ? DCE_COUNT_facks : DCE_COUNT_nocall);

    if (control != NULL)
        recvq_fack(&activity->recvq, &server->settings.offer, serial, &control->packet.pdu,
                   control->bytes + DCE_HEADER);
}

/* ---- deadlines ---- */

/* What a fack has acknowledged, a client does not keep: half a request that was forgotten before
 * its client gives up could never become whole. */
static uint64_t half_until(const struct dce_server_settings *settings,
                           const struct dce_activity *activity)
{
    uint64_t least = settings->half_ns, patience = settings->give_up_ns;

    return dce_later(activity->used_ns, patience > least ? patience : least);
}

static uint64_t deadline_of(const struct dce_server *server, const struct dce_activity *activity)
{
    const struct dce_server_settings *settings = &server->settings;
    uint64_t half = half_until(settings, activity);

    switch (activity->state) {
    case DCE_SERVER_WAY:
        return dce_earlier(
            half, dce_earlier(activity->way_at, dce_later(activity->way_ns, settings->give_up_ns)));
    case DCE_SERVER_RECV:
        return half;
    case DCE_SERVER_RUN:
        /* Nothing is due: but a result that comes from another thread sets a timer that is never
         * earlier than this, so a wait for deadlines need not be ended for it. */
        return activity->check_ns;
    case DCE_SERVER_FINAL:
        return dce_earlier(dce_xmitq_deadline(&activity->xmitq),
                           dce_later(activity->kept_ns, settings->give_up_ns));
    case DCE_SERVER_IDLE:
        return dce_later(activity->used_ns, settings->idle_ns);
    default:
        return DCE_NEVER;
    }
}

/* Its deadline may be another one. */
static void reorder(struct dce_server *server, const struct dce_activity *activity)
{
    dce_order_set(&server->order, index_of(server, activity), deadline_of(server, activity));
}

/* ---- the table ---- */

static bool is_of(const struct dce_activity *activity, const struct dce_pdu *pdu)
{
    return activity->state != DCE_SERVER_FREE && dce_uuid_equal(&activity->uuid, &pdu->activity);
}

static struct dce_activity *find(struct dce_server *server, const struct dce_pdu *pdu)
{
    unsigned hint = pdu->activity_hint;

    if (hint < server->used && is_of(&server->table[hint], pdu))
        return server->present = &server->table[hint];
    for (unsigned i = 0; i < server->used; i++)
        if (is_of(&server->table[i], pdu))
            return server->present = &server->table[i];
    return NULL;
}

/* A place for another activity: a free one, or that of the one idle for longest; NULL: none. */
static struct dce_activity *find_place(struct dce_server *server)
{
    struct dce_activity *oldest = NULL;

    for (unsigned i = 0; i < server->used; i++) {
        struct dce_activity *activity = &server->table[i];

        if (activity->state == DCE_SERVER_FREE)
            return activity;
        if (activity->state == DCE_SERVER_IDLE &&
            (oldest == NULL || activity->used_ns < oldest->used_ns))
            oldest = activity;
    }
    if (server->used < server->settings.activities)
        return &server->table[server->used++];
    return oldest;
}

/* The newest call of an activity is over, and its number is remembered. */
static void forget_call(struct dce_activity *activity, uint64_t now)
{
    dce_xmitq_done(&activity->xmitq);
    activity->state = DCE_SERVER_IDLE;
    activity->used_ns = now;
}

/* ---- who are you ---- */

static struct dce_uuid conv_activity(const struct dce_server *server,
                                     const struct dce_activity *activity)
{
    struct dce_uuid uuid = server->settings.conv_activity;

    dce_put16(uuid.bytes + 14, index_of(server, activity), true);
    return uuid;
}

static void ask_who(struct dce_server *server, struct dce_activity *activity, uint64_t now)
{
    const struct dce_conv_question question = {activity->uuid, server->settings.boot_time};
    const struct dce_pdu header = {
        .interface = dce_conv_interface,
        .activity = conv_activity(server, activity),
        .version = DCE_CONV_VERSION,
        .seq = activity->way_seq,
        .opnum = DCE_CONV_WHO_ARE_YOU,
        .interface_hint = DCE_NO_HINT,
        .activity_hint = DCE_NO_HINT,
    };
    struct dce_control *control = answer(server, &activity->peer, &header, DCE_REQUEST,
                                         DCE_COUNT_who_are_you);

    activity->way_at = dce_later(now, activity->way_every);
    activity->way_every *= 2;
    if (activity->way_every > WAY_BACKOFF * server->settings.xmitq.resend_ns)
        activity->way_every = WAY_BACKOFF * server->settings.xmitq.resend_ns;
    if (control == NULL)
        return;
    control->packet.pdu.flags1 = DCE_IDEMPOTENT;
    control->packet.pdu.boot_time = 0; /* the client's, of which none is known */
    control->packet.pdu.length = dce_conv_put_question(&question, control->bytes + DCE_HEADER,
                                                       server->settings.big_endian);
}

static void run_if_complete(struct dce_server *server, struct dce_activity *activity)
{
    if (activity->state != DCE_SERVER_RECV || !activity->recvq.complete)
        return;
    activity->state = DCE_SERVER_RUN;
    activity->running = false;
    enqueue(server, activity);
}

static void take_conv_answer(struct dce_server *server, uint64_t now, const struct dce_pdu *pdu)
{
    unsigned index = dce_get16(pdu->activity.bytes + 14, true);
    struct dce_activity *activity = index < server->used ? &server->table[index] : NULL;
    struct dce_conv_answer said;
    struct dce_uuid own;

    if (activity != NULL)
        own = conv_activity(server, activity);
    if (activity == NULL || activity->state != DCE_SERVER_WAY || pdu->seq != activity->way_seq ||
        !dce_uuid_equal(&own, &pdu->activity)) {
        stray(server);
        return;
    }
    server->present = activity;
    if (pdu->ptype != DCE_RESPONSE || !dce_conv_get_answer(pdu, &said) || said.status != DCE_OK ||
        said.seq != activity->seq) {
        /* The request was a late one, or the client knows another boot of this server. */
        activity->state = DCE_SERVER_FREE;
        return;
    }
    activity->state = DCE_SERVER_RECV;
    activity->used_ns = now;
    run_if_complete(server, activity);
}

/* ---- requests ---- */

static void take_fragment(struct dce_server *server, struct dce_activity *activity, uint64_t now,
                          const struct dce_peer *from, const struct dce_pdu *pdu)
{
    enum dce_insert insert = dce_recvq_insert(&activity->recvq, pdu);

    activity->used_ns = now;
    activity->peer = *from;
    if (insert != DCE_NEW)
        server->counts.of[insert == DCE_OLD ? DCE_COUNT_duplicates : DCE_COUNT_dropped]++;
    if (dce_recvq_asks(&activity->recvq, pdu) && insert != DCE_DROPPED)
        send_fack(server, activity, DCE_FACK, pdu->serial);
    run_if_complete(server, activity);
}

static void begin_call(struct dce_server *server, struct dce_activity *activity, uint64_t now,
                       const struct dce_peer *from, const struct dce_pdu *pdu, bool is_known)
{
    bool must_ask = !is_known && (pdu->flags1 & (DCE_IDEMPOTENT | DCE_MAYBE | DCE_BROADCAST)) == 0;

    activity->header = *pdu;
    activity->header.body = NULL;
    activity->header.activity_hint = index_of(server, activity);
    activity->peer = *from;
    activity->orphaned = activity->running = activity->cancel_pending = false;
    activity->forget_when_sent = false;
    dce_xmitq_done(&activity->xmitq);
    dce_recvq_reset(&activity->recvq);
    activity->state = must_ask ? DCE_SERVER_WAY : DCE_SERVER_RECV;
    take_fragment(server, activity, now, from, pdu);
    if (must_ask) {
        activity->way_ns = now;
        activity->way_every = server->settings.xmitq.resend_ns;
        activity->way_seq++;
        ask_who(server, activity, now);
    }
}

static const struct dce_interface *interface_of(const struct dce_server *server,
                                                const struct dce_pdu *pdu)
{
    for (unsigned i = 0; i < server->settings.interface_count; i++) {
        const struct dce_interface *one = &server->settings.interfaces[i];

        if (dce_uuid_equal(&one->uuid, &pdu->interface) &&
            (one->version & 0xffff) == (pdu->version & 0xffff) &&
            one->version >> 16 >= pdu->version >> 16)
            return one;
    }
    return NULL;
}

/* Whether a request can be served at all. */
static bool check_request(struct dce_server *server, const struct dce_peer *from,
                          const struct dce_pdu *pdu)
{
    const struct dce_interface *interface = interface_of(server, pdu);
    uint32_t status = DCE_OK;

    if (pdu->auth != 0)
        status = DCE_UNKNOWN_AUTH;
    else if (pdu->boot_time != 0 && pdu->boot_time != server->settings.boot_time)
        status = DCE_WRONG_BOOT_TIME;
    else if (interface == NULL)
        status = DCE_UNKNOWN_IF;
    else if (!interface->has_operation(pdu->opnum))
        status = DCE_OP_RANGE;
    if (status != DCE_OK)
        reject(server, from, pdu, status);
    else if ((pdu->flags1 & (DCE_BROADCAST | DCE_FRAGMENT)) == (DCE_BROADCAST | DCE_FRAGMENT))
        stray(server);
    else
        return true;
    return false;
}

static void take_again(struct dce_server *server, struct dce_activity *activity, uint64_t now,
                       const struct dce_peer *from, const struct dce_pdu *pdu)
{
    switch (activity->state) {
    case DCE_SERVER_WAY:
    case DCE_SERVER_RECV:
        take_fragment(server, activity, now, from, pdu);
        return;
    case DCE_SERVER_FINAL:
        server->counts.of[DCE_COUNT_duplicates]++;
        activity->peer = activity->xmitq.to = *from;
        dce_xmitq_again(&activity->xmitq);
        enqueue(server, activity);
        return;
    case DCE_SERVER_IDLE:
        if (pdu->fragment != 0 || (pdu->flags1 & DCE_MAYBE) != 0)
            server->counts.of[DCE_COUNT_duplicates]++;
        else if ((pdu->flags1 & (DCE_IDEMPOTENT | DCE_BROADCAST)) != 0)
            begin_call(server, activity, now, from, pdu, true);
        else
            reject(server, from, pdu, DCE_PROTOCOL_ERROR);
        return;
    default:
        server->counts.of[DCE_COUNT_duplicates]++;
    }
}

/* A call with a greater number: the one before is over for its client. */
static void take_next(struct dce_server *server, struct dce_activity *activity, uint64_t now,
                      const struct dce_peer *from, const struct dce_pdu *pdu)
{
    if (activity->state == DCE_SERVER_RUN) {
        activity->orphaned = true;
        server->counts.of[DCE_COUNT_dropped]++; /* it comes again */
        return;
    }
    activity->seq = pdu->seq;
    begin_call(server, activity, now, from, pdu, activity->state != DCE_SERVER_WAY);
}

static void take_request(struct dce_server *server, uint64_t now, const struct dce_peer *from,
                         const struct dce_pdu *pdu)
{
    struct dce_activity *activity;
    int32_t newer;

    if (!check_request(server, from, pdu))
        return;
    activity = find(server, pdu);
    if (activity == NULL) {
        activity = server->present = find_place(server);
        if (activity == NULL) {
            reject(server, from, pdu, DCE_TOO_BUSY);
            return;
        }
        activity->uuid = pdu->activity;
        activity->seq = pdu->seq;
        begin_call(server, activity, now, from, pdu, false);
        return;
    }
    newer = dce_seq_after(pdu->seq, activity->seq);
    if (newer == 0)
        take_again(server, activity, now, from, pdu);
    else if (newer > 0)
        take_next(server, activity, now, from, pdu);
    else if (activity->state == DCE_SERVER_IDLE && (pdu->flags1 & DCE_MAYBE) != 0 &&
             (pdu->flags1 & DCE_FRAGMENT) == 0)
        begin_call(server, activity, now, from, pdu, true); /* it may come late */
    else
        stray(server);
}

/* ---- other packets ---- */

static void take_ping(struct dce_server *server, uint64_t now, const struct dce_peer *from,
                      const struct dce_pdu *pdu)
{
    struct dce_activity *activity = find(server, pdu);
    int32_t newer = activity == NULL ? 1 : dce_seq_after(pdu->seq, activity->seq);

    server->counts.of[DCE_COUNT_pings]++;
    if (pdu->boot_time != 0 && pdu->boot_time != server->settings.boot_time) {
        reject(server, from, pdu, DCE_WRONG_BOOT_TIME);
    } else if (newer < 0) {
        stray(server);
    } else if (newer > 0 || activity->state == DCE_SERVER_IDLE) {
        answer(server, from, pdu, DCE_NOCALL, DCE_COUNT_nocall);
    } else if (activity->state == DCE_SERVER_RUN) {
        answer(server, from, pdu, DCE_WORKING, DCE_COUNT_working);
    } else if (activity->state == DCE_SERVER_FINAL) {
        activity->peer = activity->xmitq.to = *from;
        dce_xmitq_again(&activity->xmitq);
        enqueue(server, activity);
    } else {
        activity->used_ns = now;
        activity->peer = *from;
        send_fack(server, activity, DCE_NOCALL, activity->recvq.high_serial);
    }
}

static void take_ack(struct dce_server *server, uint64_t now, const struct dce_pdu *pdu)
{
    struct dce_activity *activity = find(server, pdu);

    server->counts.of[DCE_COUNT_acks]++;
    if (activity != NULL && pdu->seq == activity->seq && activity->state == DCE_SERVER_FINAL)
        forget_call(activity, now);
    else
        stray(server);
}

static void take_fack(struct dce_server *server, uint64_t now, const struct dce_pdu *pdu)
{
    struct dce_activity *activity = find(server, pdu);
    struct dce_fack fack;
    bool has_body;

    if (activity == NULL || pdu->seq != activity->seq || activity->state != DCE_SERVER_FINAL ||
        !dce_fack_decode(pdu, &fack, &has_body) ||
        !dce_xmitq_fack(&activity->xmitq, pdu->fragment, has_body ? &fack : NULL, false)) {
        stray(server);
        return;
    }
    server->counts.of[DCE_COUNT_facks_received]++;
    activity->kept_ns = now;
    enqueue(server, activity);
}

static void take_cancel(struct dce_server *server, uint64_t now, const struct dce_peer *from,
                        const struct dce_pdu *pdu)
{
    struct dce_activity *activity = find(server, pdu);
    struct dce_control *control;
    struct dce_cancel cancel;
    bool is_present;

    if (!dce_cancel_decode(pdu, &cancel)) {
        stray(server);
        return;
    }
    server->counts.of[DCE_COUNT_cancels]++;
    is_present = activity != NULL && pdu->seq == activity->seq &&
                 activity->state != DCE_SERVER_FINAL && activity->state != DCE_SERVER_IDLE;
    if (is_present && cancel.orphan) {
        if (activity->state == DCE_SERVER_RUN)
            activity->orphaned = true;
        else
            forget_call(activity, now);
    } else if (is_present) {
        activity->cancel_pending = true;
    }
    cancel.accepting = is_present;
    control = answer(server, from, pdu, DCE_CANCEL_ACK, DCE_COUNT_cancel_acks);
    if (control != NULL)
        control->packet.pdu.length = dce_cancel_encode(&cancel, true, control->bytes + DCE_HEADER,
                                                       server->settings.big_endian);
}

DCE_MARKER void server_machine_packet(struct dce_server *server, uint64_t now,
                                      const struct dce_peer *from, const struct dce_pdu *pdu)
{
    server->present = NULL;
    switch (pdu->ptype) {
    case DCE_REQUEST:
        take_request(server, now, from, pdu);
        break;
    case DCE_PING:
        take_ping(server, now, from, pdu);
        break;
    case DCE_ACK:
        take_ack(server, now, pdu);
        break;
    case DCE_FACK:
        take_fack(server, now, pdu);
        break;
    case DCE_CANCEL:
        take_cancel(server, now, from, pdu);
        break;
    case DCE_RESPONSE:
    case DCE_FAULT:
    case DCE_REJECT:
        take_conv_answer(server, now, pdu);
        break;
    default:
        stray(server);
    }
    if (server->present != NULL)
        reorder(server, server->present);
}

/* ---- results ---- */

static uint8_t semantics_of(const struct dce_activity *activity)
{
    return activity->header.flags1 & (DCE_MAYBE | DCE_IDEMPOTENT | DCE_BROADCAST);
}

void dce_server_result(struct dce_server *server, uint64_t now, struct dce_activity *activity,
                       uint32_t status, size_t length)
{
    struct dce_pdu header = activity->header;
    uint8_t semantics = semantics_of(activity);

    activity->running = false;
    if (activity->orphaned || (semantics & DCE_MAYBE) != 0 ||
        (status != DCE_OK && (semantics & DCE_BROADCAST) != 0)) {
        forget_call(activity, now);
        reorder(server, activity);
        return;
    }
    header.ptype = status == DCE_OK ? DCE_RESPONSE : DCE_FAULT;
    header.flags1 = 0;
    header.flags2 = activity->cancel_pending ? DCE_CANCEL_PENDING : 0;
    header.big_endian = server->settings.big_endian;
    header.boot_time = server->settings.boot_time;
    if (status != DCE_OK) {
        server->counts.of[DCE_COUNT_faults]++;
        dce_put32(activity->response, status, server->settings.big_endian);
        length = STATUS_BYTES;
    }
    dce_xmitq_start(&activity->xmitq, now, &header, &activity->peer, activity->response, length);
    activity->forget_when_sent = semantics != 0 && !activity->xmitq.fragmented;
    activity->kept_ns = activity->used_ns = now;
    activity->state = DCE_SERVER_FINAL;
    enqueue(server, activity);
    reorder(server, activity);
}

/* Everything that can be sent of a response has been sent. */
static void after_burst(struct dce_activity *activity, uint64_t now)
{
    if (activity->forget_when_sent && dce_xmitq_all_sent(&activity->xmitq))
        forget_call(activity, now);
    else
        while (dce_xmitq_fill(&activity->xmitq))
            continue;
}

enum dce_action dce_server_next(struct dce_server *server, uint64_t now, struct dce_packet *packet,
                                struct dce_activity **activity)
{
    if (dce_outbox_take(&server->outbox, packet))
        return DCE_SEND;
    while (server->queue_count != 0) {
        struct dce_activity *first = &server->table[server->queue[server->queue_first]];

        if (first->state == DCE_SERVER_FINAL && dce_xmitq_next(&first->xmitq, now, packet)) {
            server->counts.of[DCE_COUNT_fragments]++;
            server->counts.of[DCE_COUNT_fragments_resent] += first->xmitq.resent;
            first->xmitq.resent = 0;
            reorder(server, first);
            return DCE_SEND;
        }
        first->queued = false;
        server->queue_first = (server->queue_first + 1) % server->settings.activities;
        server->queue_count--;
        if (first->state == DCE_SERVER_FINAL) {
            after_burst(first, now);
            reorder(server, first);
        } else if (first->state == DCE_SERVER_RUN && !first->running) {
            first->running = true;
            first->check_ns = dce_later(now, server->settings.xmitq.resend_ns);
            reorder(server, first);
            *activity = first;
            return DCE_RUN;
        }
    }
    return DCE_WAIT;
}

/* ---- time ---- */

static void expire(struct dce_server *server, struct dce_activity *activity, uint64_t now)
{
    const struct dce_server_settings *settings = &server->settings;

    switch (activity->state) {
    case DCE_SERVER_WAY:
        if (now >= dce_later(activity->way_ns, settings->give_up_ns)) {
            reject(server, &activity->peer, &activity->header, DCE_WHO_ARE_YOU);
            activity->state = DCE_SERVER_FREE;
        } else if (now >= half_until(settings, activity)) {
            activity->state = DCE_SERVER_FREE;
        } else {
            ask_who(server, activity, now);
        }
        return;
    case DCE_SERVER_RECV:
    case DCE_SERVER_IDLE:
        activity->state = DCE_SERVER_FREE;
        return;
    case DCE_SERVER_RUN:
        activity->check_ns = dce_later(now, settings->xmitq.resend_ns);
        return;
    case DCE_SERVER_FINAL:
        if (now >= dce_later(activity->kept_ns, settings->give_up_ns)) {
            forget_call(activity, now);
            return;
        }
        dce_xmitq_timeout(&activity->xmitq);
        activity->xmitq.sent_ns = now;
        enqueue(server, activity);
        return;
    default:
        return;
    }
}

void dce_server_timeout(struct dce_server *server, uint64_t now)
{
    unsigned count = dce_order_due(&server->order, now);

    for (unsigned i = 0; i < count; i++) {
        expire(server, &server->table[server->order.found[i]], now);
        reorder(server, &server->table[server->order.found[i]]);
    }
}

unsigned dce_server_kept(const struct dce_server *server)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < server->used; i++)
        kept += server->table[i].state == DCE_SERVER_FINAL;
    return kept;
}
