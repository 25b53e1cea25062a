/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Channels: one for each other node, shared by all tasks. Sequence numbers, cumulative
 * acknowledgement, go-back-N, and the handshake of epochs. README.md has the rules in words.
 */
#include "bytes.h"

/* The first words of frames that are taken on the shortest way, without flags; of a SIGNAL also
 * without the number of its arguments. */
enum {
    QUICK_ACK = MBW_FIRST_WORD(MBW_ACK, 0, 0),
    QUICK_WRITE = MBW_FIRST_WORD(MBW_WRITE, 0, 0),
    QUICK_FIFO = MBW_FIRST_WORD(MBW_FIFO, 0, 0),
    QUICK_SIGNAL = MBW_FIRST_WORD(MBW_SIGNAL, 0, 0),
    QUICK_ARGUMENTS = 7,
};

/* ---- sending ---- */

/* Whether an error RESULT among the places from `from` on is on its way. */
static bool is_unsure(const struct channel *channel, uint32_t from)
{
    if (channel->refusals != 0)
        for (uint32_t i = from; i != channel->end; i++)
            if (channel->places[i % WINDOW].refuses)
                return true;
    return false;
}

/* Fields that are true at the moment of sending only. */
static void stamp(const struct mbcf *mbcf, const struct channel *channel, uint8_t *header,
                  bool unsure)
{
    mbw_set_flags(header, (uint8_t)((mbw_flags(header) & ~MBW_UNSURE) | (unsure ? MBW_UNSURE : 0)));
    mbw_set_epoch(header, mbcf->config.epoch);
    mbw_set_ack(header, channel->received);
    mbw_set_ack_epoch(header, channel->peer_epoch != 0 ? epoch_half(channel->peer_epoch) : 0);
}

static void hand_over(struct mbcf *mbcf, const struct channel *channel, struct sss_frame *frame)
{
    mbcf->counters.frames_sent++;
    mbcf->counters.bytes_sent += frame->length;
    if (channel->own)
        mbcf_loop(mbcf, frame);
    else
        TO(mbcf, transmit)(mbcf->to.context, frame);
}

static void ack_is_sent(struct channel *channel, bool unsure)
{
    channel->owed = 0;
    channel->ack_now = false;
    channel->unsure_sent = unsure;
    channel->ack_due_ns = NEVER;
}

/* A frame outside the sequence. Where there is no buffer it is lost, as on the wire. */
static void send_control(struct mbcf *mbcf, struct channel *channel, uint8_t op, uint8_t flags,
                         uint32_t seq, uint32_t ack, uint16_t ack_epoch)
{
    struct sss_frame *frame = mbcf_frame_get(mbcf);
    uint8_t *header;

    if (frame == NULL)
        return;
    memcpy(frame->bytes, channel->ethernet, MBW_ETHERNET);
    header = frame_header(frame);
    memset(header, 0, MBW_HEADER);
    mbw_set_version(header, MBW_VERSION);
    mbw_set_op(header, op);
    mbw_set_flags(header, flags);
    mbw_set_source_node(header, mbcf->config.node);
    mbw_set_target_node(header, channel->node);
    mbw_set_epoch(header, mbcf->config.epoch);
    mbw_set_seq(header, seq);
    mbw_set_ack(header, ack);
    mbw_set_ack_epoch(header, ack_epoch);
    frame->length = MBW_ETHERNET + MBW_HEADER;
    hand_over(mbcf, channel, frame);
    TO(mbcf, frame_put)(mbcf->to.context, frame);
}

static void send_probe(struct mbcf *mbcf, struct channel *channel)
{
    send_control(mbcf, channel, MBW_PROBE, is_unsure(channel, channel->first) ? MBW_UNSURE : 0, 0,
                 channel->received, epoch_half(channel->peer_epoch));
}

static void make_ack_head(const struct mbcf *mbcf, struct channel *channel)
{
    uint8_t *header = (uint8_t *)channel->ack_head + MBW_ETHERNET;

    memset(channel->ack_head, 0, sizeof(channel->ack_head));
    memcpy(channel->ack_head, channel->ethernet, MBW_ETHERNET);
    mbw_set_version(header, MBW_VERSION);
    mbw_set_op(header, MBW_ACK);
    mbw_set_source_node(header, mbcf->config.node);
    mbw_set_target_node(header, channel->node);
    mbw_set_epoch(header, mbcf->config.epoch);
    mbw_set_ack_epoch(header, epoch_half(channel->peer_epoch));
}

static void send_ack(struct mbcf *mbcf, struct channel *channel)
{
    struct sss_frame *frame = mbcf_frame_get(mbcf);
    bool unsure = is_unsure(channel, channel->first);

    mbcf->counters.acks_sent++;
    ack_is_sent(channel, unsure);
    if (frame == NULL)
        return; /* lost, as on the wire */
    put_head(frame->bytes, channel->ack_head);
    mbw_set_flags(frame_header(frame), unsure ? MBW_UNSURE : 0);
    mbw_set_ack(frame_header(frame), channel->received);
    frame->length = MBW_ETHERNET + MBW_HEADER;
    hand_over(mbcf, channel, frame);
    TO(mbcf, frame_put)(mbcf->to.context, frame);
}

/* One round trip in a while is measured; the first ones as often as possible. */
static void time_it(struct channel *channel, uint32_t seq, uint64_t now_ns)
{
    if (channel->timed_seq != 0 || (channel->srtt_ns != 0 && seq % TIMED_EVERY != 0))
        return;
    channel->timed_seq = seq;
    channel->timed_at_ns = now_ns;
}

/* The place at the cursor. */
static void send_place(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    struct place *place = &channel->places[channel->cursor % WINDOW];
    uint8_t *header = frame_header(place->frame);
    bool unsure = is_unsure(channel, channel->cursor + 1);

    if (place->sent) {
        /* Still waiting in the adapter: it is under way, and its bytes must not change. */
        if (place->frame->users > 1)
            return;
        mbw_set_flags(header, mbw_flags(header) | MBW_RETX);
        /* Whoever has it already says so at once, but only for the first of a row. */
        if (channel->cursor == channel->first)
            mbw_set_flags(header, mbw_flags(header) | MBW_ACK_NOW);
        mbcf->counters.retransmitted++;
    } else {
        place->sent = true;
        if (place->decisive)
            mbcf_operation_sent(mbcf, place->name);
        time_it(channel, place->seq, now_ns);
    }
    stamp(mbcf, channel, header, unsure);
    ack_is_sent(channel, unsure);
    hand_over(mbcf, channel, place->frame);
}

static uint64_t timeout_of(const struct mbcf *mbcf, const struct channel *channel)
{
    unsigned shift = channel->failures < 16 ? channel->failures : 16;
    uint64_t timeout = channel->rto_ns << shift;

    if (timeout > mbcf->config.rto_most_ns)
        timeout = mbcf->config.rto_most_ns;
    return timeout + FRAME_NS * (channel->end - channel->first);
}

static uint64_t timer_due(const struct mbcf *mbcf, const struct channel *channel)
{
    if (channel->state == MBCF_OPENING ||
        (channel->state == MBCF_OPEN && channel->first != channel->end))
        return channel->timer_from_ns + timeout_of(mbcf, channel);
    if (channel->state == MBCF_OPEN && (channel->pending | channel->undecided) != 0)
        return channel->timer_from_ns + PROBE_NS + timeout_of(mbcf, channel);
    return NEVER;
}

static void restart_timer(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    channel->timer_from_ns = now_ns;
    /* No timeout is shorter than the least; something that is due by then is enough to look again.
     */
    if (mbcf->due_ns > now_ns + mbcf->config.rto_least_ns)
        due_by(mbcf, timer_due(mbcf, channel));
}

static void pump(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    if (channel->state != MBCF_OPEN)
        return;
    while (channel->cursor != channel->end && channel->cursor - channel->first < channel->allowed) {
        send_place(mbcf, channel, now_ns);
        channel->cursor++;
    }
}

static void begin_opening(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    if (channel->candidate_epoch == 0)
        channel->base = channel->acked;
    channel->state = MBCF_OPENING;
    channel->failures = 0;
    send_control(mbcf, channel, MBW_SYN, 0, channel->base, 0, 0);
    restart_timer(mbcf, channel, now_ns);
}

void mbcf_channel_queue(struct mbcf *mbcf, struct channel *channel, struct sss_frame *frame,
                        const struct header *header, uint64_t now_ns)
{
    struct place *place = &channel->places[channel->end % WINDOW];
    uint8_t *at = frame_header(frame);

    memcpy(frame->bytes, channel->ethernet, sizeof(channel->ethernet));
    mbw_set_version(at, MBW_VERSION);
    mbw_set_op(at, header->op);
    mbw_set_flags(at, header->flags);
    mbw_set_status(at, header->status);
    mbw_set_source_node(at, mbcf->config.node);
    mbw_set_source_task(at, header->source);
    mbw_set_target_node(at, channel->node);
    mbw_set_target_task(at, header->destination);
    mbw_set_seq(at, channel->next_seq);
    mbw_set_key(at, header->key);
    mbw_set_address(at, header->address);
    mbw_set_op_id(at, header->op_id);
    mbw_set_length(at, header->length);
    frame->length = (uint16_t)(MBW_ETHERNET + MBW_HEADER + header->length);
    place->frame = frame;
    place->seq = channel->next_seq;
    place->name = header->op != MBW_RESULT ? header->op_id : 0;
    place->decisive = header->decisive;
    place->completes = header->completes;
    place->refuses = header->op == MBW_RESULT && header->status != MB_OK;
    place->sent = false;
    channel->refusals += place->refuses;
    channel->awaited += place->completes;
    channel->next_seq = seq_next(channel->next_seq);
    if (channel->first == channel->end++) {
        channel->timer_from_ns = now_ns;
        due_by(mbcf, now_ns + channel->rto_ns + FRAME_NS);
    }
    if (channel->state == MBCF_OPEN)
        pump(mbcf, channel, now_ns);
    else if (channel->state != MBCF_OPENING)
        begin_opening(mbcf, channel, now_ns);
}

void mbcf_channel_send_quick(struct mbcf *mbcf, struct channel *channel, struct sss_frame *frame,
                             uint32_t name, bool awaited, uint64_t now_ns)
{
    struct place *place = &channel->places[channel->end % WINDOW];
    uint32_t seq = channel->next_seq;

    mbw_set_seq_and_ack(frame_header(frame), seq, channel->received);
    *place = (struct place){.frame = frame,
                            .seq = seq,
                            .name = name,
                            .sent = true,
                            .decisive = awaited,
                            .completes = awaited};
    channel->awaited += awaited;
    channel->next_seq = seq_next(seq);
    if (channel->first == channel->end) {
        channel->timer_from_ns = now_ns;
        due_by(mbcf, now_ns + channel->rto_ns + FRAME_NS);
    }
    channel->cursor = ++channel->end;
    time_it(channel, seq, now_ns);
    ack_is_sent(channel, false);
    hand_over(mbcf, channel, frame);
}

static void release(struct mbcf *mbcf, struct channel *channel)
{
    struct place *place = &channel->places[channel->first % WINDOW];

    TO(mbcf, frame_put)(mbcf->to.context, place->frame);
    place->frame = NULL;
    channel->awaited -= place->completes;
    if (place->refuses) {
        if (--channel->refusals == 0)
            channel->ack_now |= channel->unsure_sent;
    }
    channel->first++;
}

static void release_all(struct mbcf *mbcf, struct channel *channel)
{
    while (channel->first != channel->end)
        release(mbcf, channel);
    channel->cursor = channel->end;
    channel->timed_seq = 0;
    channel->same_acks = 0;
    channel->allowed = WINDOW;
    channel->ack_now = false;
    channel->noted_ack = 0;
}

/* ---- acknowledgements of the peer ---- */

/* RFC 6298 section 2, in shifts. */
static __attribute__((noinline)) void measure(const struct mbcf *mbcf, struct channel *channel,
                                              uint64_t round_trip_ns)
{
    uint64_t distance;

    if (channel->srtt_ns == 0) {
        channel->srtt_ns = round_trip_ns;
        channel->deviation_ns = round_trip_ns / 2;
    } else {
        distance = channel->srtt_ns > round_trip_ns ? channel->srtt_ns - round_trip_ns
                                                    : round_trip_ns - channel->srtt_ns;
        channel->deviation_ns += distance / 4;
        channel->deviation_ns -= channel->deviation_ns / 4;
        channel->srtt_ns += round_trip_ns / 8;
        channel->srtt_ns -= channel->srtt_ns / 8;
    }
    channel->rto_ns = channel->srtt_ns + 4 * channel->deviation_ns;
    if (channel->rto_ns < mbcf->config.rto_least_ns)
        channel->rto_ns = mbcf->config.rto_least_ns;
    if (channel->rto_ns > mbcf->config.rto_most_ns)
        channel->rto_ns = mbcf->config.rto_most_ns;
}

/* From the first unacknowledged frame on everything is sent again, a few first. Nothing sent twice
 * is timed (Karn). */
static void go_back(struct channel *channel, uint32_t allowed)
{
    channel->cursor = channel->first;
    channel->timed_seq = 0;
    channel->same_acks = 0;
    channel->allowed = allowed < LEAST_ALLOWED ? LEAST_ALLOWED : allowed;
}

/* An ACK that says nothing new while frames are under way: the peer misses one. At most once a
 * round trip. */
static void same_ack(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    if (++channel->same_acks < QUICK_ACKS ||
        now_ns - channel->quick_at_ns < channel->srtt_ns + FRAME_NS)
        return;
    channel->quick_at_ns = now_ns;
    go_back(channel, channel->allowed / 2);
    pump(mbcf, channel, now_ns);
    restart_timer(mbcf, channel, now_ns);
}

/* The frame of a place is acknowledged. Its operation has succeeded, unless its error is still to
 * come. */
static void retire(struct mbcf *mbcf, struct channel *channel, const struct place *place, bool sure)
{
    if (!(place->name & NAME_CONNECTION) && !place->completes)
        return;
    if (!sure) {
        channel->undecided++;
        mbcf_undecided(mbcf, place->name);
    } else if (place->completes) {
        mbcf_operation_done(mbcf, place->name);
    } else {
        mbcf_connection_done(mbcf, place->name);
    }
}

/* All errors have come: what has been acknowledged without one has succeeded. */
static void decide(struct mbcf *mbcf, struct channel *channel)
{
    channel->undecided = 0;
    mbcf_operations_decide(mbcf, channel->node);
    mbcf_connections_decide(mbcf, channel->node, MB_OK);
}

/* `ack` is news. */
static void take_new_ack(struct mbcf *mbcf, struct channel *channel, uint32_t ack, bool sure,
                         uint64_t now_ns)
{
    uint32_t before = channel->first;

    while (channel->first != channel->end) {
        struct place *place = &channel->places[channel->first % WINDOW];

        if (!place->sent || seq_after(place->seq, ack))
            break;
        channel->acked = place->seq;
        retire(mbcf, channel, place, sure);
        release(mbcf, channel);
    }
    if (channel->first == before)
        return; /* acknowledges what was never sent */
    if ((int32_t)(channel->cursor - channel->first) < 0)
        channel->cursor = channel->first;
    if (channel->timed_seq != 0 && !seq_after(channel->timed_seq, ack)) {
        measure(mbcf, channel, now_ns - channel->timed_at_ns);
        channel->timed_seq = 0;
    }
    channel->failures = 0;
    channel->same_acks = 0;
    if (channel->allowed < WINDOW) {
        channel->allowed += channel->first - before;
        if (channel->allowed > WINDOW)
            channel->allowed = WINDOW;
    }
    /* With nothing under way only a probe can be due, later than what `due_ns` has been until now.
     */
    if (channel->first != channel->end)
        restart_timer(mbcf, channel, now_ns);
    else
        channel->timer_from_ns = now_ns;
    if (mbcf->chores != 0 || mbcf->starved)
        mbcf_window_open(mbcf, channel, now_ns);
    if (channel->cursor != channel->end)
        pump(mbcf, channel, now_ns);
}

void mbcf_channel_take_noted(struct mbcf *mbcf, struct channel *channel)
{
    uint32_t ack = channel->noted_ack;

    if (ack == 0)
        return;
    channel->noted_ack = 0;
    take_new_ack(mbcf, channel, ack, true, channel->noted_at_ns);
}

/* Of a frame in its turn. */
static void note_ack(struct mbcf *mbcf, struct channel *channel, uint32_t ack, uint64_t now_ns)
{
    if (!seq_after(ack, channel->noted_ack != 0 ? channel->noted_ack : channel->acked))
        return;
    mbcf_channel_take_noted(mbcf, channel);
    if (channel->awaited != 0 || channel->cursor != channel->end || channel->failures != 0 ||
        mbcf->starved || mbcf->chores != 0 || channel->refusals != 0 ||
        channel->end - channel->first > WINDOW / 2) {
        take_new_ack(mbcf, channel, ack, true, now_ns);
    } else {
        channel->noted_ack = ack;
        channel->noted_at_ns = now_ns;
    }
}

static void take_ack(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                     bool sure, uint64_t now_ns)
{
    if (sure && channel->undecided != 0 && !seq_after(channel->acked, packet->ack))
        decide(mbcf, channel);
    if (seq_after(packet->ack, channel->acked))
        take_new_ack(mbcf, channel, packet->ack, sure, now_ns);
    else if (packet->op == MBW_ACK && packet->ack == channel->acked &&
             channel->first != channel->end)
        same_ack(mbcf, channel, now_ns);
}

/* ---- epochs ---- */

static bool is_past(const struct channel *channel, uint32_t epoch)
{
    for (unsigned i = 0; i < PAST_EPOCHS; i++)
        if (channel->past[i] == epoch)
            return true;
    return false;
}

/* Everything towards the peer is given up; each operation says so to its task. */
static void give_up(struct mbcf *mbcf, struct channel *channel, int status)
{
    for (uint32_t i = channel->first; i != channel->end; i++) {
        const struct place *place = &channel->places[i % WINDOW];
        struct connection *connection = mbcf_connection_named(mbcf, place->name);

        if (connection != NULL)
            mbcf_connection_error(mbcf, connection, place->sent ? status | MB_MAYBE : status);
    }
    release_all(mbcf, channel);
    channel->undecided = 0;
    mbcf_connections_decide(mbcf, channel->node, status | MB_MAYBE);
    mbcf_operations_fail(mbcf, channel->node, status);
    mbcf_connections_break(mbcf, channel->node, 0, status);
    mbcf_segments_void(mbcf, channel->node, 0);
    mbcf_farewells_forget(mbcf, channel->node);
    ack_is_sent(channel, false);
    channel->failures = 0;
}

/* The peer node has started anew. It takes our frames from behind `base` on, as SYN or SYNACK told
 * it. */
static void adopt(struct mbcf *mbcf, struct channel *channel, uint32_t epoch, uint32_t received)
{
    if (channel->peer_epoch != 0) {
        channel->past[channel->past_next++ % PAST_EPOCHS] = channel->peer_epoch;
        give_up(mbcf, channel, MB_NODE_RESTART);
        channel->acked = channel->base;
        channel->next_seq = seq_next(channel->base);
    }
    channel->peer_epoch = epoch;
    channel->candidate_epoch = 0;
    make_ack_head(mbcf, channel);
    channel->received = received;
    channel->gap_acks = 0;
}

/* The peer has given up frames, errors among them, maybe: nobody knows what became of all that has
 * been sent. */
static void doubt(struct mbcf *mbcf, struct channel *channel)
{
    for (uint32_t i = channel->first; i != channel->end; i++) {
        const struct place *place = &channel->places[i % WINDOW];
        struct connection *connection = mbcf_connection_named(mbcf, place->name);

        if (connection != NULL && place->sent)
            mbcf_connection_error(mbcf, connection, MB_NODE_DEAD | MB_MAYBE);
    }
    channel->undecided = 0;
    mbcf_operations_doubt(mbcf, channel->node, MB_NODE_DEAD);
    mbcf_connections_decide(mbcf, channel->node, MB_NODE_DEAD | MB_MAYBE);
}

/* What the peer has given up will not come any more. */
static void skip_to(struct mbcf *mbcf, struct channel *channel, uint32_t seq)
{
    if (!seq_after(seq, channel->received))
        return;
    channel->received = seq;
    channel->gap_acks = 0;
    mbcf_segments_void(mbcf, channel->node, 0);
    doubt(mbcf, channel);
}

static void become_open(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    if (channel->state == MBCF_OPEN)
        return;
    channel->state = MBCF_OPEN;
    channel->failures = 0;
    go_back(channel, WINDOW);
    restart_timer(mbcf, channel, now_ns);
    pump(mbcf, channel, now_ns);
    mbcf_window_open(mbcf, channel, now_ns);
}

static void take_syn(struct mbcf *mbcf, struct channel *channel, const struct packet *packet)
{
    uint32_t received = packet->seq;

    if (is_past(channel, packet->epoch)) {
        mbcf->counters.stale_epoch++;
        return;
    }
    if (channel->peer_epoch == 0) {
        adopt(mbcf, channel, packet->epoch, packet->seq);
    } else if (channel->peer_epoch == packet->epoch) {
        skip_to(mbcf, channel, packet->seq);
        received = channel->received;
        if (channel->state == MBCF_OPEN && channel->candidate_epoch == 0)
            channel->base = channel->acked;
    } else {
        /* Maybe a new incarnation, maybe forged: nothing ends before it has shown that it knows our
         * epoch. */
        if (channel->candidate_epoch == 0 && channel->state == MBCF_OPEN)
            channel->base = channel->acked;
        channel->candidate_epoch = packet->epoch;
        channel->candidate_received = packet->seq;
    }
    send_control(mbcf, channel, MBW_SYNACK, 0, channel->base, received, epoch_half(packet->epoch));
}

static void take_synack(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                        uint64_t now_ns)
{
    if (channel->state != MBCF_OPENING || packet->ack_epoch != epoch_half(mbcf->config.epoch) ||
        is_past(channel, packet->epoch)) {
        mbcf->counters.stale_epoch++;
        return;
    }
    if (channel->peer_epoch == packet->epoch) {
        if (seq_after(channel->base, packet->ack))
            return; /* answers an older SYN */
        skip_to(mbcf, channel, packet->seq);
        take_ack(mbcf, channel, packet, false, now_ns);
    } else {
        if (packet->ack != channel->base)
            return;
        adopt(mbcf, channel, packet->epoch, packet->seq);
    }
    become_open(mbcf, channel, now_ns);
}

static void take_reset(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                       uint64_t now_ns)
{
    if (packet->ack_epoch != epoch_half(mbcf->config.epoch) || is_past(channel, packet->epoch)) {
        mbcf->counters.stale_epoch++;
        return;
    }
    /* The peer says that it does not know us. Believed only when it has answered a SYN. */
    if (channel->state == MBCF_OPEN)
        begin_opening(mbcf, channel, now_ns);
}

static void send_reset(struct mbcf *mbcf, struct channel *channel, const struct packet *packet)
{
    mbcf->counters.resets_sent++;
    send_control(mbcf, channel, MBW_RST, 0, 0, 0, epoch_half(packet->epoch));
}

/* Whether a frame belongs to this incarnation of both nodes. */
static bool is_current(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                       uint64_t now_ns)
{
    bool knows_us = packet->ack_epoch == epoch_half(mbcf->config.epoch);

    if (packet->epoch == channel->peer_epoch && knows_us) {
        if (channel->state == MBCF_OPEN)
            return true;
        if (!seq_after(channel->base, packet->ack)) {
            become_open(mbcf, channel, now_ns);
            return true;
        }
        /* It expects frames that have been given up. */
        if (channel->state == MBCF_DEAD || channel->state == MBCF_IDLE)
            begin_opening(mbcf, channel, now_ns);
        return false;
    }
    if (packet->epoch == channel->candidate_epoch && channel->candidate_epoch != 0 && knows_us &&
        packet->ack == channel->base) {
        adopt(mbcf, channel, packet->epoch, channel->candidate_received);
        become_open(mbcf, channel, now_ns);
        return true;
    }
    mbcf->counters.stale_epoch++;
    if (!is_past(channel, packet->epoch))
        send_reset(mbcf, channel, packet);
    return false;
}

/* ---- receiving ---- */

static void owe_ack(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    uint64_t latest;

    if (channel->owed++ == 0)
        channel->owed_from_ns = now_ns;
    if (channel->owed >= mbcf->config.ack_every) {
        send_ack(mbcf, channel);
        return;
    }
    latest = channel->owed_from_ns + ACK_PATIENCE * (uint64_t)mbcf->config.ack_delay_ns +
             FRAME_NS * channel->owed;
    channel->ack_due_ns = now_ns + mbcf->config.ack_delay_ns;
    if (channel->ack_due_ns > latest)
        channel->ack_due_ns = latest;
    due_by(mbcf, channel->ack_due_ns);
}

/* It cannot be executed now: the peer shall know what is missing, but not once for each frame
 * behind it. */
static void refuse_order(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    mbcf->counters.gaps++;
    if (channel->gap_acks < GAP_ACKS) {
        channel->gap_acks++;
        channel->ack_now = true;
    } else {
        owe_ack(mbcf, channel, now_ns);
    }
}

static void owe_ack_for(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                        uint64_t now_ns)
{
    if (packet->flags & MBW_ACK_NOW)
        channel->ack_now = true;
    else
        owe_ack(mbcf, channel, now_ns);
}

static void take_sequenced(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                           uint64_t now_ns)
{
    uint32_t before = channel->received;
    bool sure = !(packet->flags & MBW_UNSURE);
    uint32_t owed;

    if (packet->seq != seq_next(before)) {
        if (seq_after(packet->seq, before)) {
            /* An error that its acknowledgement passes over may be in the gap. */
            take_ack(mbcf, channel, packet, false, now_ns);
            refuse_order(mbcf, channel, now_ns);
            return;
        }
        mbcf->counters.duplicates++;
        take_ack(mbcf, channel, packet, sure, now_ns);
        owe_ack_for(mbcf, channel, packet, now_ns);
        return;
    }
    /* It makes places for results; but an error RESULT comes before what it acknowledges. */
    if (packet->op != MBW_RESULT)
        take_ack(mbcf, channel, packet, sure, now_ns);
    /* Before executing, for a result carries the acknowledgement. */
    channel->received = packet->seq;
    owed = channel->owed++;
    if (owed == 0)
        channel->owed_from_ns = now_ns;
    if (!mbcf_execute(mbcf, channel, packet, now_ns)) {
        channel->received = before;
        channel->owed = owed;
        refuse_order(mbcf, channel, now_ns);
        return;
    }
    channel->gap_acks = 0;
    if (packet->op == MBW_RESULT)
        take_ack(mbcf, channel, packet, sure, now_ns);
    if (channel->owed == 0)
        return; /* a frame that was sent meanwhile has acknowledged it */
    channel->owed--;
    owe_ack_for(mbcf, channel, packet, now_ns);
}

void mbcf_channel_receive(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                          uint64_t now_ns)
{
    mbcf_channel_take_noted(mbcf, channel);
    if (packet->op == MBW_SYN) {
        take_syn(mbcf, channel, packet);
        return;
    }
    if (packet->op == MBW_SYNACK) {
        take_synack(mbcf, channel, packet, now_ns);
        return;
    }
    if (packet->op == MBW_RST) {
        take_reset(mbcf, channel, packet, now_ns);
        return;
    }
    if (!is_current(mbcf, channel, packet, now_ns))
        return;
    if (packet->op == MBW_ACK || packet->op == MBW_PROBE) {
        take_ack(mbcf, channel, packet, !(packet->flags & MBW_UNSURE), now_ns);
        /* It is alive: probes need not go on. */
        if (channel->first == channel->end && channel->failures != 0) {
            channel->failures = 0;
            restart_timer(mbcf, channel, now_ns);
        }
        channel->ack_now |= packet->op == MBW_PROBE;
    } else {
        take_sequenced(mbcf, channel, packet, now_ns);
    }
    if (channel->ack_now)
        send_ack(mbcf, channel);
}

static void count_received(struct mbcf *mbcf, size_t length)
{
    mbcf->counters.frames_received++;
    mbcf->counters.bytes_received += length;
}

/*
 * The channel is open and owes nothing special, the frame is from this incarnation of the peer to
 * this one of ours, and is an ACK, or a WRITE or a FIFO of one packet that comes in its turn and
 * meets nothing unusual. Whatever is in doubt goes the long way.
 */
bool mbcf_channel_receive_quick(struct mbcf *mbcf, const uint8_t *frame, size_t length,
                                uint64_t now_ns)
{
    const uint8_t *header = frame + MBW_ETHERNET;
    struct channel *channel;
    uint32_t kind, seq, ack;

    if (length < MBW_ETHERNET + MBW_HEADER || length > MBW_FRAME_MOST ||
        mbw_source_node(header) > SSS_NODES)
        return false;
    channel = &mbcf->channels[mbw_source_node(header)];
    if (channel->state != MBCF_OPEN ||
        memcmp(frame + MBW_SOURCE_MAC_AT, channel->from, sizeof(channel->from)) != 0 ||
        mbw_target_node(header) != mbcf->config.node || mbw_epoch(header) != channel->peer_epoch ||
        mbw_ack_epoch(header) != mbcf->own_half ||
        mbw_length(header) != length - MBW_ETHERNET - MBW_HEADER)
        return false;
    kind = mbw_first_word(header) & ~(uint32_t)(MBW_ACK_NOW << 8);
    seq = mbw_seq(header);
    ack = mbw_ack(header);
    if (channel->undecided != 0)
        return false;
    if (kind == QUICK_ACK) {
        mbcf_channel_take_noted(mbcf, channel);
        if (seq != 0 || mbw_flags(header) != 0 || length != MBW_ETHERNET + MBW_HEADER ||
            !seq_after(ack, channel->acked))
            return false;
        take_new_ack(mbcf, channel, ack, true, now_ns);
        if (channel->ack_now)
            send_ack(mbcf, channel);
        count_received(mbcf, length);
        return true;
    }
    if ((kind != QUICK_WRITE && kind != QUICK_FIFO &&
         (kind & ~(uint32_t)QUICK_ARGUMENTS) != QUICK_SIGNAL) ||
        seq != seq_next(channel->received))
        return false;
    note_ack(mbcf, channel, ack, now_ns);
    if (!mbcf_execute_quick(mbcf, channel, header, (uint16_t)(length - MBW_ETHERNET - MBW_HEADER)))
        return false;
    count_received(mbcf, length);
    channel->received = seq;
    channel->gap_acks = 0;
    if ((mbw_flags(header) & MBW_ACK_NOW) || channel->ack_now)
        send_ack(mbcf, channel);
    else
        owe_ack(mbcf, channel, now_ns);
    return true;
}

/* ---- time ---- */

uint64_t mbcf_channel_due(const struct mbcf *mbcf, const struct channel *channel)
{
    uint64_t due_ns = timer_due(mbcf, channel);

    return due_ns < channel->ack_due_ns ? due_ns : channel->ack_due_ns;
}

static void die(struct mbcf *mbcf, struct channel *channel)
{
    uint32_t last = channel->first != channel->end
                        ? channel->places[(channel->end - 1) % WINDOW].seq
                        : channel->acked;

    give_up(mbcf, channel, MB_NODE_DEAD);
    channel->acked = channel->base = last;
    channel->candidate_epoch = 0;
    channel->state = MBCF_DEAD;
}

void mbcf_channel_timeout(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    mbcf_channel_take_noted(mbcf, channel);
    if (channel->ack_due_ns <= now_ns)
        send_ack(mbcf, channel);
    if (timer_due(mbcf, channel) > now_ns)
        return;
    mbcf->counters.timeouts++;
    if (++channel->failures > DEAD_FAILURES) {
        die(mbcf, channel);
        return;
    }
    channel->timer_from_ns = now_ns;
    if (channel->state == MBCF_OPENING) {
        send_control(mbcf, channel, MBW_SYN, 0, channel->base, 0, 0);
    } else if (channel->first == channel->end) {
        send_probe(mbcf, channel);
    } else {
        go_back(channel, LEAST_ALLOWED);
        pump(mbcf, channel, now_ns);
    }
}
