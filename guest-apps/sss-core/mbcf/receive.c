/* SPDX-License-Identifier: Apache-2.0 */

/* The receiving side of channels, and what time does to them. */
#include "receive.h"
#include "acks.h"
#include "bytes.h"
#include "channel.h"
#include "epochs.h"

/* -> whether it is to be executed now. */
static bool take_sequenced(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                           uint32_t *before, uint64_t now_ns)
{
    bool sure = !(packet->flags & MBW_UNSURE);

    *before = channel->received;
    if (packet->seq != seq_next(*before)) {
        if (seq_after(packet->seq, *before)) {
            /* An error that its acknowledgement passes over may be in the gap. */
            mbcf_acks_take(mbcf, channel, packet, false, now_ns);
            mbcf_acks_owe_for_gap(mbcf, channel, now_ns);
            return false;
        }
        mbcf->counters.duplicates++;
        mbcf_acks_take(mbcf, channel, packet, sure, now_ns);
        mbcf_acks_owe_for(mbcf, channel, packet, now_ns);
        return false;
    }
    /* It makes places for results; but an error RESULT comes before what it acknowledges. */
    if (packet->op != MBW_RESULT)
        mbcf_acks_take(mbcf, channel, packet, sure, now_ns);
    /* Before executing, for a result carries the acknowledgement. */
    channel->received = packet->seq;
    if (channel->owed++ == 0)
        channel->owed_from_ns = now_ns;
    return true;
}

bool mbcf_channel_receive(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                          uint32_t *before, uint64_t now_ns)
{
    mbcf_acks_take_noted(mbcf, channel);
    if (packet->op == MBW_SYN) {
        mbcf_epoch_take_syn(mbcf, channel, packet, now_ns);
        return false;
    }
    if (packet->op == MBW_SYNACK) {
        mbcf_epoch_take_synack(mbcf, channel, packet, now_ns);
        return false;
    }
    if (packet->op == MBW_OPENED) {
        mbcf_epoch_take_opened(mbcf, channel, packet, now_ns);
        return false;
    }
    if (packet->op == MBW_RST) {
        mbcf_epoch_take_reset(mbcf, channel, packet, now_ns);
        return false;
    }
    if (!mbcf_epoch_is_current(mbcf, channel, packet, now_ns))
        return false;
    if (packet->op == MBW_ACK || packet->op == MBW_PROBE) {
        mbcf_acks_take(mbcf, channel, packet, !(packet->flags & MBW_UNSURE), now_ns);
        /* It is alive: probes need not go on. */
        if (channel->first == channel->end && channel->failures != 0) {
            channel->failures = 0;
            mbcf_channel_restart_timer(mbcf, channel, now_ns);
        }
        channel->ack_now |= packet->op == MBW_PROBE;
    } else if (take_sequenced(mbcf, channel, packet, before, now_ns)) {
        return true;
    }
    if (channel->ack_now)
        mbcf_channel_send_ack(mbcf, channel);
    return false;
}

static void take_executed(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                          uint64_t now_ns)
{
    channel->gap_acks = 0;
    if (packet->op == MBW_RESULT)
        mbcf_acks_take(mbcf, channel, packet, !(packet->flags & MBW_UNSURE), now_ns);
    if (channel->owed == 0)
        return; /* a frame that was sent meanwhile has acknowledged it */
    channel->owed--;
    mbcf_acks_owe_for(mbcf, channel, packet, now_ns);
}

inline void mbcf_channel_executed(struct mbcf *mbcf, struct channel *channel,
                                  const struct packet *packet, uint64_t now_ns)
{
    take_executed(mbcf, channel, packet, now_ns);
    if (channel->ack_now)
        mbcf_channel_send_ack(mbcf, channel);
}

void mbcf_channel_not_executed(struct mbcf *mbcf, struct channel *channel, uint32_t before,
                               uint64_t now_ns)
{
    channel->received = before;
    channel->owed--;
    mbcf_acks_owe_for_gap(mbcf, channel, now_ns);
    if (channel->ack_now)
        mbcf_channel_send_ack(mbcf, channel);
}

/* ---- the short way ---- */

/* The first words of frames that are taken on the shortest way, without ACK_NOW and tag; of a
 * SIGNAL also without the number of its arguments. */
enum {
    QUICK_ACK = MBW_FIRST_WORD(MBW_ACK, 0, 0, 0),
    QUICK_WRITE = MBW_FIRST_WORD(MBW_WRITE, 0, 0, 0),
    QUICK_FIFO = MBW_FIRST_WORD(MBW_FIFO, 0, 0, 0),
    QUICK_SIGNAL = MBW_FIRST_WORD(MBW_SIGNAL, 0, 0, 0),
    QUICK_READ = MBW_FIRST_WORD(MBW_READ, 0, 0, 0),
    QUICK_SWAP = MBW_FIRST_WORD(MBW_SWAP, 0, 0, 0),
    QUICK_CAS = MBW_FIRST_WORD(MBW_CAS, 0, 0, 0),
    QUICK_FETCH_ADD = MBW_FIRST_WORD(MBW_FETCH_ADD, 0, 0, 0),
    QUICK_RESULT = MBW_FIRST_WORD(MBW_RESULT, 0, MB_OK, 0),
    QUICK_ARGUMENTS = 7 << 8,
    NOT_QUICK = ~(MBW_ACK_NOW << 16 | 0xff),
};

/*
 * The channel is open and owes nothing special, the frame is from this incarnation of the peer to
 * this one of ours, and is an ACK, or a WRITE, FIFO or SIGNAL of one packet that comes in its turn.
 * Whatever is in doubt goes the long way.
 */
enum turn mbcf_channel_receive_quick(struct mbcf *mbcf, const uint8_t *frame, size_t length,
                                     struct channel **from, uint64_t now_ns)
{
    const uint8_t *header = frame + MBW_ETHERNET;
    struct channel *channel;
    uint32_t kind, seq, ack;

    if (length < MBW_FRAME_LEAST || length > MBW_FRAME_MOST)
        return TURN_SPECIAL;
    channel = mbcf_channel_of(mbcf, frame);
    if (channel == NULL || channel->state != MBCF_OPEN || mbw_epochs(header) != channel->epochs ||
        mbw_frame_bytes(mbw_length(header)) != length)
        return TURN_SPECIAL;
    kind = mbw_first_word(header) & (uint32_t)NOT_QUICK;
    seq = mbw_seq(header);
    ack = mbw_ack(header);
    if (channel->undecided != 0)
        return TURN_SPECIAL;
    if (kind == QUICK_ACK) {
        mbcf_acks_take_noted(mbcf, channel);
        if (seq != 0 || (mbw_first_word(header) & 0xffffff) != (QUICK_ACK & 0xffffff) ||
            mbw_length(header) != 0 || !seq_after(ack, channel->acked))
            return TURN_SPECIAL;
        if (channel_is_answered_by(channel, ack) && !mbcf->starved && mbcf->chores == 0) {
            *from = channel;
            return TURN_TO_COMPLETE;
        }
        mbcf_acks_take_new(mbcf, channel, ack, true, now_ns);
        if (channel->ack_now)
            mbcf_channel_send_ack(mbcf, channel);
        count_received(mbcf, length);
        return TURN_OVER;
    }
    if (seq != seq_next(channel->received))
        return TURN_SPECIAL;
    *from = channel;
    if (kind == QUICK_WRITE || kind == QUICK_FIFO ||
        (kind & ~(uint32_t)QUICK_ARGUMENTS) == QUICK_SIGNAL) {
        mbcf_acks_note(mbcf, channel, ack, now_ns);
        return TURN_TO_EXECUTE;
    }
    /* Its error, had it one, would come before what it acknowledges. */
    if (kind == QUICK_RESULT && (mbw_first_word(header) & 0xff) == 0 && channel_is_clear(channel) &&
        !mbcf->starved && mbcf->chores == 0)
        return TURN_TO_END;
    kind &= ~(uint32_t)(MBW_WIDE << 16);
    if (kind == QUICK_SWAP || kind == QUICK_CAS || kind == QUICK_FETCH_ADD ||
        (kind == QUICK_READ && !(mbw_flags(header) & MBW_WIDE))) {
        mbcf_acks_note(mbcf, channel, ack, now_ns);
        return TURN_TO_ANSWER;
    }
    return TURN_SPECIAL;
}

void mbcf_channel_executed_quick(struct mbcf *mbcf, struct channel *channel, const uint8_t *frame,
                                 size_t length, uint64_t now_ns)
{
    const uint8_t *header = frame + MBW_ETHERNET;

    count_received(mbcf, length);
    channel->received = mbw_seq(header);
    channel->gap_acks = 0;
    if ((mbw_flags(header) & MBW_ACK_NOW) || channel->ack_now)
        mbcf_channel_send_ack(mbcf, channel);
    else
        mbcf_acks_owe(mbcf, channel, now_ns);
}

void mbcf_channel_answered_quick(struct mbcf *mbcf, struct channel *channel, size_t length)
{
    count_received(mbcf, length);
    channel->gap_acks = 0;
}

/* ---- time ---- */

uint64_t mbcf_channel_due(const struct mbcf *mbcf, const struct channel *channel)
{
    uint64_t due_ns = mbcf_channel_timer_due(mbcf, channel);

    return due_ns < channel->ack_due_ns ? due_ns : channel->ack_due_ns;
}

void mbcf_channel_timeout(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    mbcf_acks_take_noted(mbcf, channel);
    if (channel->ack_due_ns <= now_ns)
        mbcf_channel_send_ack(mbcf, channel);
    if (mbcf_channel_timer_due(mbcf, channel) > now_ns)
        return;
    mbcf->counters.timeouts++;
    if (++channel->failures > DEAD_FAILURES) {
        mbcf_epoch_die(mbcf, channel, now_ns);
        return;
    }
    channel->timer_from_ns = now_ns;
    if (channel->state == MBCF_OPENING) {
        mbcf_channel_send_syn(mbcf, channel);
    } else if (channel->first == channel->end) {
        mbcf_channel_send_probe(mbcf, channel);
    } else {
        mbcf_channel_go_back(channel, LEAST_ALLOWED);
        mbcf_channel_pump(mbcf, channel, now_ns);
    }
}
