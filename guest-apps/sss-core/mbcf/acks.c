/* SPDX-License-Identifier: Apache-2.0 */

/* Acknowledgements of the peer, and those that are owed to it (README, "Who acknowledges when"). */
#include "acks.h"
#include "channel.h"
#include "event.h"
#include "pool.h"

/* ---- of the peer ---- */

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

/* An ACK that says nothing new while frames are under way: the peer misses one. At most once a
 * round trip. */
static void same_ack(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    if (++channel->same_acks < QUICK_ACKS ||
        now_ns - channel->quick_at_ns < channel->srtt_ns + FRAME_NS)
        return;
    channel->quick_at_ns = now_ns;
    mbcf_channel_go_back(channel, channel->allowed / 2);
    mbcf_channel_pump(mbcf, channel, now_ns);
    mbcf_channel_restart_timer(mbcf, channel, now_ns);
}

/* The frame of a place is acknowledged. Its operation has succeeded, unless its error is still to
 * come. */
static void retire(struct mbcf *mbcf, struct channel *channel, const struct place *place, bool sure,
                   uint64_t now_ns)
{
    if (!(place->name & NAME_CONNECTION) && !place->completes)
        return;
    if (sure) {
        mbcf_channel_event(mbcf, channel, CHANNEL_DONE, place->name, MB_OK, now_ns);
    } else {
        channel->undecided++;
        mbcf_channel_event(mbcf, channel, CHANNEL_UNDECIDED, place->name, MB_OK, now_ns);
    }
}

/* All errors have come: what has been acknowledged without one has succeeded. */
static void decide(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    channel->undecided = 0;
    mbcf_channel_event(mbcf, channel, CHANNEL_DECIDED, 0, MB_OK, now_ns);
}

/* `ack` is news. */
void mbcf_acks_take_new(struct mbcf *mbcf, struct channel *channel, uint32_t ack, bool sure,
                        uint64_t now_ns)
{
    uint32_t before = channel->first;

    while (channel->first != channel->end) {
        struct place *place = &channel->places[channel->first % WINDOW];

        if (!place->sent || seq_after(place->seq, ack))
            break;
        channel->acked = place->seq;
        retire(mbcf, channel, place, sure, now_ns);
        mbcf_channel_release(mbcf, channel);
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
        mbcf_channel_restart_timer(mbcf, channel, now_ns);
    else
        channel->timer_from_ns = now_ns;
    if (mbcf->chores != 0 || mbcf->starved)
        mbcf_channel_event(mbcf, channel, CHANNEL_FREED, 0, MB_OK, now_ns);
    if (channel->cursor != channel->end)
        mbcf_channel_pump(mbcf, channel, now_ns);
}

inline void mbcf_acks_take_quick(struct mbcf *mbcf, struct channel *channel, uint32_t ack,
                                 bool done, uint64_t now_ns)
{
    struct place *place = &channel->places[channel->first % WINDOW];

    if (!done) {
        mbcf_acks_take_new(mbcf, channel, ack, true, now_ns);
        return;
    }
    /* No operation waits for its frame any more. */
    place->name = 0;
    place->completes = false;
    channel->awaited--;
    channel->noted_ack = ack;
    channel->noted_at_ns = now_ns;
}

void mbcf_acks_take_noted(struct mbcf *mbcf, struct channel *channel)
{
    uint32_t ack = channel->noted_ack;

    if (ack == 0)
        return;
    channel->noted_ack = 0;
    mbcf_acks_take_new(mbcf, channel, ack, true, channel->noted_at_ns);
}

void mbcf_acks_take_noted_behind(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    if (channel->noted_ack == 0)
        return;
    mbcf_acks_take_noted(mbcf, channel);
    if (channel->end - channel->first == 1)
        channel->timer_from_ns = now_ns;
}

/* Of a frame in its turn. */
inline void mbcf_acks_note(struct mbcf *mbcf, struct channel *channel, uint32_t ack,
                           uint64_t now_ns)
{
    if (!seq_after(ack, channel->noted_ack != 0 ? channel->noted_ack : channel->acked))
        return;
    mbcf_acks_take_noted(mbcf, channel);
    if (channel->awaited != 0 || channel->cursor != channel->end || channel->failures != 0 ||
        mbcf->starved || mbcf->chores != 0 || channel->refusals != 0 ||
        channel->end - channel->first > WINDOW / 2) {
        mbcf_acks_take_new(mbcf, channel, ack, true, now_ns);
    } else {
        channel->noted_ack = ack;
        channel->noted_at_ns = now_ns;
    }
}

inline void mbcf_acks_take(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                           bool sure, uint64_t now_ns)
{
    if (sure && channel->undecided != 0 && !seq_after(channel->acked, packet->ack))
        decide(mbcf, channel, now_ns);
    if (seq_after(packet->ack, channel->acked))
        mbcf_acks_take_new(mbcf, channel, packet->ack, sure, now_ns);
    else if (packet->op == MBW_ACK && packet->ack == channel->acked &&
             channel->first != channel->end)
        same_ack(mbcf, channel, now_ns);
}

/* ---- owed to it ---- */

inline void mbcf_acks_owe(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    uint64_t latest;

    if (channel->owed++ == 0)
        channel->owed_from_ns = now_ns;
    if (channel->owed >= mbcf->config.ack_every) {
        mbcf_channel_send_ack(mbcf, channel);
        return;
    }
    latest = channel->owed_from_ns + ACK_PATIENCE * (uint64_t)mbcf->config.ack_delay_ns +
             FRAME_NS * channel->owed;
    channel->ack_due_ns = now_ns + mbcf->config.ack_delay_ns;
    if (channel->ack_due_ns > latest)
        channel->ack_due_ns = latest;
    due_by(mbcf, channel->ack_due_ns);
}

/* A frame cannot be executed now: the peer must learn what is missing, but not once for each frame
 * behind it. */
void mbcf_acks_owe_for_gap(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    mbcf->counters.gaps++;
    if (channel->gap_acks < GAP_ACKS) {
        channel->gap_acks++;
        channel->ack_now = true;
    } else {
        mbcf_acks_owe(mbcf, channel, now_ns);
    }
}

void mbcf_acks_owe_for(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                       uint64_t now_ns)
{
    if (packet->flags & MBW_ACK_NOW)
        channel->ack_now = true;
    else
        mbcf_acks_owe(mbcf, channel, now_ns);
}
