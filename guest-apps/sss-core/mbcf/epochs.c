/* SPDX-License-Identifier: Apache-2.0 */

/* Incarnations of a peer: the handshake, and what ends with one of them (README, "Epochs"). */
#include "epochs.h"
#include "acks.h"
#include "channel.h"
#include "event.h"
#include "fifo.h"

static bool is_past(const struct channel *channel, uint32_t epoch)
{
    for (unsigned i = 0; i < PAST_EPOCHS; i++)
        if (channel->past[i] == epoch)
            return true;
    return false;
}

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

/* The peer node has restarted. It takes our frames from behind `base` on, as SYN or SYNACK said. */
static void adopt(struct mbcf *mbcf, struct channel *channel, uint32_t epoch, uint32_t received,
                  uint64_t now_ns)
{
    if (channel->peer_epoch != 0) {
        channel->past[channel->past_next++ % PAST_EPOCHS] = channel->peer_epoch;
        give_up(mbcf, channel, MB_NODE_RESTART, now_ns);
        channel->acked = channel->base;
        channel->next_seq = seq_next(channel->base);
    }
    channel->peer_epoch = epoch;
    channel->candidate_epoch = 0;
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

/* What the peer has given up will not come any more. */
static void skip_to(struct mbcf *mbcf, struct channel *channel, uint32_t seq, uint64_t now_ns)
{
    if (!seq_after(seq, channel->received))
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

void mbcf_epoch_take_syn(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                         uint64_t now_ns)
{
    uint32_t received = packet->seq;

    if (is_past(channel, packet->epoch)) {
        mbcf->counters.stale_epoch++;
        return;
    }
    if (channel->peer_epoch == 0) {
        adopt(mbcf, channel, packet->epoch, packet->seq, now_ns);
    } else if (channel->peer_epoch == packet->epoch) {
        skip_to(mbcf, channel, packet->seq, now_ns);
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
    mbcf_channel_send_control(mbcf, channel, MBW_SYNACK, 0, channel->base, received,
                              epoch_half(packet->epoch));
}

void mbcf_epoch_take_synack(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
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
        skip_to(mbcf, channel, packet->seq, now_ns);
        mbcf_acks_take(mbcf, channel, packet, false, now_ns);
    } else {
        if (packet->ack != channel->base)
            return;
        adopt(mbcf, channel, packet->epoch, packet->seq, now_ns);
    }
    become_open(mbcf, channel, now_ns);
}

void mbcf_epoch_take_reset(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                           uint64_t now_ns)
{
    if (packet->ack_epoch != epoch_half(mbcf->config.epoch) || is_past(channel, packet->epoch)) {
        mbcf->counters.stale_epoch++;
        return;
    }
    /* The peer says that it does not know us. Believed only when it has answered a SYN. */
    if (channel->state == MBCF_OPEN)
        mbcf_channel_begin_opening(mbcf, channel, now_ns);
}

static void send_reset(struct mbcf *mbcf, struct channel *channel, const struct packet *packet)
{
    mbcf->counters.resets_sent++;
    mbcf_channel_send_control(mbcf, channel, MBW_RST, 0, 0, 0, epoch_half(packet->epoch));
}

/* Whether a frame belongs to this incarnation of both nodes. */
inline bool mbcf_epoch_is_current(struct mbcf *mbcf, struct channel *channel,
                                  const struct packet *packet, uint64_t now_ns)
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
            mbcf_channel_begin_opening(mbcf, channel, now_ns);
        return false;
    }
    if (packet->epoch == channel->candidate_epoch && channel->candidate_epoch != 0 && knows_us &&
        packet->ack == channel->base) {
        adopt(mbcf, channel, packet->epoch, channel->candidate_received, now_ns);
        become_open(mbcf, channel, now_ns);
        return true;
    }
    mbcf->counters.stale_epoch++;
    if (!is_past(channel, packet->epoch))
        send_reset(mbcf, channel, packet);
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
