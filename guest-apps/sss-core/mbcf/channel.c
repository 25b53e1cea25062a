/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The sending side of channels, one for each other node, shared by all tasks: places of the window,
 * their frames and acknowledgements, and the timer. README.md has the rules in words.
 */
#include "channel.h"
#include "bytes.h"
#include "event.h"
#include "pool.h"

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
    mbw_set_target_epoch(header, channel->peer_epoch);
    mbw_set_ack(header, channel->received);
}

static inline void count_sent(struct mbcf *mbcf, const struct sss_frame *frame)
{
    mbcf->counters.frames_sent++;
    mbcf->counters.bytes_sent += frame->length;
}

static inline void hand_over(struct mbcf *mbcf, const struct channel *channel,
                             struct sss_frame *frame)
{
    if (channel->own)
        mbcf_loop_put(mbcf, frame);
    else
        surroundings_transmit(mbcf->context, frame);
    count_sent(mbcf, frame);
}

void mbcf_channel_send_control(struct mbcf *mbcf, const struct channel *channel,
                               const struct control *control)
{
    struct sss_frame *frame = mbcf_frame_get(mbcf);
    bool nonces = control->op == MBW_SYN || control->op == MBW_SYNACK || control->op == MBW_OPENED;
    uint8_t *header;

    if (frame == NULL)
        return;
    memcpy(frame->bytes, channel->ethernet, MBW_ETHERNET);
    header = frame_header(frame);
    memset(header, 0, MBW_HEADER);
    mbw_set_first_word(header, MBW_FIRST_WORD(control->op, control->flags, 0, 0));
    mbw_set_epoch(header, mbcf->config.epoch);
    mbw_set_target_epoch(header, control->target_epoch);
    mbw_set_seq(header, control->seq);
    mbw_set_ack(header, control->ack);
    if (nonces) {
        mbw_set_length(header, MBW_NONCES);
        mbw_set_nonce(frame_payload(frame, 0), control->nonce);
        mbw_set_echo(frame_payload(frame, 0), control->echo);
    }
    frame_end(frame, nonces ? MBW_NONCES : 0);
    hand_over(mbcf, channel, frame);
    mbcf_frame_put(mbcf, frame);
}

void mbcf_channel_send_probe(struct mbcf *mbcf, struct channel *channel)
{
    struct control probe = {.op = MBW_PROBE,
                            .flags = is_unsure(channel, channel->first) ? MBW_UNSURE : 0,
                            .target_epoch = channel->peer_epoch,
                            .ack = channel->received};

    mbcf_channel_send_control(mbcf, channel, &probe);
}

void mbcf_channel_make_ack_head(const struct mbcf *mbcf, struct channel *channel)
{
    uint8_t *header = (uint8_t *)channel->ack_head + MBW_ETHERNET;

    memset(channel->ack_head, 0, sizeof(channel->ack_head));
    memcpy(channel->ack_head, channel->ethernet, MBW_ETHERNET);
    mbw_set_first_word(header, MBW_FIRST_WORD(MBW_ACK, 0, 0, 0));
    mbw_set_epoch(header, mbcf->config.epoch);
    mbw_set_target_epoch(header, channel->peer_epoch);
    header = (uint8_t *)channel->from_ack + MBW_ETHERNET;
    memset(channel->from_ack, 0, sizeof(channel->from_ack));
    memcpy(channel->from_ack, channel->from, MBW_ETHERNET);
    mbw_set_first_word(header, MBW_FIRST_WORD(MBW_ACK, 0, 0, 0));
    mbw_set_epoch(header, channel->peer_epoch);
    mbw_set_target_epoch(header, mbcf->config.epoch);
}

void mbcf_channel_send_ack(struct mbcf *mbcf, struct channel *channel)
{
    struct sss_frame *frame = mbcf_frame_get(mbcf);
    bool unsure = is_unsure(channel, channel->first);

    if (frame != NULL) { /* else it is lost, as on the wire */
        put_head(frame->bytes, channel->ack_head);
        if (unsure)
            mbw_set_flags(frame_header(frame), MBW_UNSURE);
        mbw_set_ack(frame_header(frame), channel->received);
        frame->length = MBW_FRAME_LEAST;
        hand_over(mbcf, channel, frame);
        mbcf_frame_put(mbcf, frame);
    }
    mbcf->counters.acks_sent++;
    channel_ack_is_sent(channel, unsure);
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
        /* A receiver that has it already says so at once, but only for the first of a row. */
        if (channel->cursor == channel->first)
            mbw_set_flags(header, mbw_flags(header) | MBW_ACK_NOW);
        mbcf->counters.retransmitted++;
    } else {
        place->sent = true;
        if (place->decisive)
            mbcf_channel_event(mbcf, channel, CHANNEL_SENT, place->name, 0, now_ns);
        time_it(channel, place->seq, now_ns);
    }
    stamp(mbcf, channel, header, unsure);
    channel_ack_is_sent(channel, unsure);
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

inline uint64_t mbcf_channel_timer_due(const struct mbcf *mbcf, const struct channel *channel)
{
    if (channel->state == MBCF_OPENING ||
        (channel->state == MBCF_OPEN && channel->first != channel->end))
        return channel->timer_from_ns + timeout_of(mbcf, channel);
    if (channel->state == MBCF_OPEN && (channel->pending | channel->undecided) != 0)
        return channel->timer_from_ns + PROBE_NS + timeout_of(mbcf, channel);
    return NEVER;
}

inline void mbcf_channel_restart_timer(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    channel->timer_from_ns = now_ns;
    /* No timeout is shorter than the least; something that is due by then is enough to look again.
     */
    if (mbcf->due_ns > now_ns + mbcf->config.rto_least_ns)
        due_by(mbcf, mbcf_channel_timer_due(mbcf, channel));
}

void mbcf_channel_pump(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    if (channel->state != MBCF_OPEN)
        return;
    while (channel->cursor != channel->end && channel->cursor - channel->first < channel->allowed) {
        send_place(mbcf, channel, now_ns);
        channel->cursor++;
    }
}

uint32_t mbcf_channel_new_nonce(struct channel *channel)
{
    channel->nonces = seq_next(channel->nonces);
    return channel->nonces;
}

void mbcf_channel_send_syn(struct mbcf *mbcf, const struct channel *channel)
{
    struct control syn = {.op = MBW_SYN, .seq = channel->base, .nonce = channel->opening_nonce};

    mbcf_channel_send_control(mbcf, channel, &syn);
}

void mbcf_channel_begin_opening(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    if (channel->candidate_epoch == 0)
        channel->base = channel->acked;
    channel->state = MBCF_OPENING;
    channel->failures = 0;
    channel->opening_nonce = mbcf_channel_new_nonce(channel);
    mbcf_channel_send_syn(mbcf, channel);
    mbcf_channel_restart_timer(mbcf, channel, now_ns);
}

void mbcf_channel_queue(struct mbcf *mbcf, struct channel *channel, struct sss_frame *frame,
                        const struct header *header, uint64_t now_ns)
{
    struct place *place = &channel->places[channel->end % WINDOW];
    uint8_t *at = frame_header(frame);

    memcpy(frame->bytes, channel->ethernet, MBW_ETHERNET);
    mbw_set_first_word(at, MBW_FIRST_WORD(header->op, header->flags, header->status, header->tag));
    mbw_set_seq(at, channel->next_seq);
    mbw_set_length_to_end(at, header->length, header->op_id, header->last);
    if (header->flags & MBW_DEFINES) {
        mbw_set_tag_source_task(at, header->defines->source);
        mbw_set_tag_target_task(at, header->defines->target);
        mbw_set_tag_address_high(at, header->defines->address_high);
        mbw_set_tag_key(at, header->defines->key);
    }
    frame_end(frame, (uint32_t)mbw_definition_bytes(header->flags) + header->length);
    place->frame = frame;
    place->seq = channel->next_seq;
    place->name = header->name;
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
        mbcf_channel_pump(mbcf, channel, now_ns);
    else if (channel->state != MBCF_OPENING)
        mbcf_channel_begin_opening(mbcf, channel, now_ns);
}

inline void mbcf_channel_send_quick(struct mbcf *mbcf, struct channel *channel,
                                    struct sss_frame *frame, uint32_t name, bool decisive,
                                    bool completes, uint64_t now_ns)
{
    struct place *place = &channel->places[channel->end % WINDOW];
    uint32_t seq = channel->next_seq;

    mbw_set_seq_and_ack(frame_header(frame), seq, channel->received);
    surroundings_transmit(mbcf->context,
                          frame); /* first, for the rest can be done while it is on its way */
    *place = (struct place){.frame = frame,
                            .seq = seq,
                            .name = name,
                            .sent = true,
                            .decisive = decisive,
                            .completes = completes};
    channel->awaited += completes;
    channel->next_seq = seq_next(seq);
    if (channel->first == channel->end) {
        channel->timer_from_ns = now_ns;
        due_by(mbcf, now_ns + channel->rto_ns + FRAME_NS);
    }
    channel->cursor = ++channel->end;
    time_it(channel, seq, now_ns);
    channel_ack_is_sent(channel, false);
    count_sent(mbcf, frame);
}

void mbcf_channel_release(struct mbcf *mbcf, struct channel *channel)
{
    struct place *place = &channel->places[channel->first % WINDOW];

    mbcf_frame_put(mbcf, place->frame);
    place->frame = NULL;
    channel->awaited -= place->completes;
    if (place->refuses) {
        if (--channel->refusals == 0)
            channel->ack_now |= channel->unsure_sent;
    }
    channel->first++;
}

void mbcf_channel_release_all(struct mbcf *mbcf, struct channel *channel)
{
    while (channel->first != channel->end)
        mbcf_channel_release(mbcf, channel);
    channel->cursor = channel->end;
    channel->timed_seq = 0;
    channel->same_acks = 0;
    channel->allowed = WINDOW;
    channel->ack_now = false;
    channel->noted_ack = 0;
    memset(channel->tags, 0, sizeof(channel->tags));
}

/* From the first unacknowledged frame on everything is sent again, a few first. Nothing sent twice
 * is timed (Karn). */
void mbcf_channel_go_back(struct channel *channel, uint32_t allowed)
{
    channel->cursor = channel->first;
    channel->timed_seq = 0;
    channel->same_acks = 0;
    channel->allowed = allowed < LEAST_ALLOWED ? LEAST_ALLOWED : allowed;
}
