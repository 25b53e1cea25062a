/* SPDX-License-Identifier: Apache-2.0 */

/* Incarnations of a peer: the handshake, and what ends with one of them (README, "Epochs"). */
#include "epochs.h"
#include "acks.h"
#include "channel.h"
#include "event.h"
#include "fifo.h"

/* Everything towards the peer is given up; each operation says so to its task. */
static void give_up(struct mbcf *mbcf, struct channel *channel, int status, uint64_t now_ns)
{
    for (uint32_t i = channel->first; i != channel->end; i++) {
        const struct place *place = &channel->places[i % WINDOW];

        if (place->name & NAME_CONNECTION)
            mbcf_channel_event(mbcf, channel, CHANNEL_LOST, place->name,
                               place->sent ? status | MB_MAYBE : status, now_ns);
    }
    mbcf_channel_release_all(mbcf, channel);
    channel->undecided = 0;
    mbcf_channel_event(mbcf, channel, CHANNEL_FAILED, 0, status, now_ns);
    channel_ack_is_sent(channel, false);
    channel->failures = 0;
}

/* The peer has shown that it lives: it is believed, and what was before it ends. It takes our
 * frames from behind `base` on, as SYN or SYNACK said. */
static void adopt(struct mbcf *mbcf, struct channel *channel, uint32_t epoch, uint32_t received,
                  uint64_t now_ns)
{
    if (channel->peer_epoch != 0) {
        give_up(mbcf, channel, MB_NODE_RESTART, now_ns);
        channel->acked = channel->base;
        channel->next_seq = seq_next(channel->base);
    }
    channel->peer_epoch = epoch;
    channel->epochs = (uint64_t)epoch << 32 | mbcf->config.epoch;
    channel->candidate_epoch = 0;
    memset(channel->definitions, 0, sizeof(channel->definitions));
    mbcf_channel_make_ack_head(mbcf, channel);
    channel->received = received;
    channel->gap_acks = 0;
}

/* The peer has given up frames, errors among them, maybe: what became of all that has been sent is
 * not known. */
static void doubt(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    for (uint32_t i = channel->first; i != channel->end; i++) {
        const struct place *place = &channel->places[i % WINDOW];

        if ((place->name & NAME_CONNECTION) && place->sent)
            mbcf_channel_event(mbcf, channel, CHANNEL_LOST, place->name, MB_NODE_DEAD | MB_MAYBE,
                               now_ns);
    }
    channel->undecided = 0;
    mbcf_channel_event(mbcf, channel, CHANNEL_DOUBTED, 0, MB_NODE_DEAD, now_ns);
}

/* What the peer has given up will not come any more: that was a window at most, so what seems to be
 * further ahead is old. */
static void skip_to(struct mbcf *mbcf, struct channel *channel, uint32_t seq, uint64_t now_ns)
{
    if (!seq_after(seq, channel->received) || seq - channel->received > WINDOW + 1)
        return;
    channel->received = seq;
    channel->gap_acks = 0;
    mbcf_segments_void(mbcf, channel->node, 0);
    doubt(mbcf, channel, now_ns);
}

static void become_open(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    if (channel->state == MBCF_OPEN)
        return;
    channel->state = MBCF_OPEN;
    channel->failures = 0;
    mbcf_channel_go_back(channel, WINDOW);
    mbcf_channel_restart_timer(mbcf, channel, now_ns);
    mbcf_channel_pump(mbcf, channel, now_ns);
    mbcf_channel_event(mbcf, channel, CHANNEL_FREED, 0, MB_OK, now_ns);
}

static void send_synack(struct mbcf *mbcf, const struct channel *channel, uint32_t epoch,
                        uint32_t nonce, uint32_t echo)
{
    struct control synack = {.op = MBW_SYNACK,
                             .target_epoch = epoch,
                             .seq = channel->base,
                             .ack = nonce == 0 ? channel->received : 0,
                             .nonce = nonce,
                             .echo = echo};

    mbcf_channel_send_control(mbcf, channel, &synack);
}

void mbcf_epoch_take_syn(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                         uint64_t now_ns)
{
    const uint32_t theirs = mbw_nonce(packet->payload);

    if (channel->candidate_epoch == 0 && channel->state == MBCF_OPEN)
        channel->base = channel->acked;
    if (channel->peer_epoch == packet->epoch) {
        skip_to(mbcf, channel, packet->seq, now_ns);
        send_synack(mbcf, channel, packet->epoch, 0, theirs);
        return;
    }
    /* A new incarnation, or an old frame: nothing ends before it has returned what it is given
     * now. */
    if (channel->candidate_epoch != packet->epoch) {
        channel->candidate_epoch = packet->epoch;
        channel->candidate_nonce = mbcf_channel_new_nonce(channel);
    }
    channel->candidate_echo = theirs;
    send_synack(mbcf, channel, packet->epoch, channel->candidate_nonce, theirs);
}

void mbcf_epoch_take_synack(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                            uint64_t now_ns)
{
    struct control opened = {
        .op = MBW_OPENED, .target_epoch = packet->epoch, .echo = mbw_nonce(packet->payload)};

    if (packet->target_epoch != mbcf->config.epoch || channel->opening_nonce == 0 ||
        mbw_echo(packet->payload) != channel->opening_nonce ||
        (channel->state != MBCF_OPENING && packet->epoch != channel->peer_epoch)) {
        mbcf->counters.stale_epoch++;
        return;
    }
    if (channel->peer_epoch != packet->epoch) {
        adopt(mbcf, channel, packet->epoch, packet->seq, now_ns);
    } else if (channel->state == MBCF_OPENING && opened.echo == 0) {
        if (seq_after(channel->base, packet->ack))
            return; /* made before it had our SYN */
        skip_to(mbcf, channel, packet->seq, now_ns);
        mbcf_acks_take(mbcf, channel, packet, false, now_ns);
    }
    opened.seq = channel->base;
    if (opened.echo != 0)
        mbcf_channel_send_control(mbcf, channel, &opened);
    become_open(mbcf, channel, now_ns);
}

void mbcf_epoch_take_opened(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                            uint64_t now_ns)
{
    if (packet->target_epoch != mbcf->config.epoch || channel->candidate_epoch == 0 ||
        packet->epoch != channel->candidate_epoch ||
        mbw_echo(packet->payload) != channel->candidate_nonce) {
        mbcf->counters.stale_epoch++;
        return;
    }
    adopt(mbcf, channel, packet->epoch, packet->seq, now_ns);
    become_open(mbcf, channel, now_ns);
}

void mbcf_epoch_take_reset(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                           uint64_t now_ns)
{
    if (packet->target_epoch != mbcf->config.epoch) {
        mbcf->counters.stale_epoch++;
        return;
    }
    /* The peer says that it does not know us. Believed only when it has answered a SYN. */
    if (channel->state == MBCF_OPEN)
        mbcf_channel_begin_opening(mbcf, channel, now_ns);
}

/* Whether a frame belongs to this incarnation of both nodes. */
inline bool mbcf_epoch_is_current(struct mbcf *mbcf, struct channel *channel,
                                  const struct packet *packet, uint64_t now_ns)
{
    bool knows_us = packet->target_epoch == mbcf->config.epoch;
    struct control reset = {.op = MBW_RST, .target_epoch = packet->epoch};

    if (packet->epoch == channel->peer_epoch && knows_us) {
        if (channel->state == MBCF_OPEN)
            return true;
        if (!seq_after(channel->base, packet->ack)) {
            become_open(mbcf, channel, now_ns);
            return true;
        }
        /* It expects frames that have been given up. */
        if (channel->state == MBCF_DEAD || channel->state == MBCF_IDLE)
            mbcf_channel_begin_opening(mbcf, channel, now_ns);
        return false;
    }
    mbcf->counters.stale_epoch++;
    if (packet->epoch == channel->candidate_epoch && channel->candidate_epoch != 0 && knows_us) {
        /* Its OPENED is lost, or late. */
        send_synack(mbcf, channel, packet->epoch, channel->candidate_nonce,
                    channel->candidate_echo);
    } else {
        mbcf->counters.resets_sent++;
        mbcf_channel_send_control(mbcf, channel, &reset);
    }
    return false;
}

void mbcf_epoch_die(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    uint32_t last = channel->first != channel->end
                        ? channel->places[(channel->end - 1) % WINDOW].seq
                        : channel->acked;

    give_up(mbcf, channel, MB_NODE_DEAD, now_ns);
    channel->acked = channel->base = last;
    channel->candidate_epoch = 0;
    channel->state = MBCF_DEAD;
}
