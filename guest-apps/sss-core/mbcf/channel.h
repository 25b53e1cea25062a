/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state.h"

/* What a place is to carry. */
struct header {
    uint8_t op, flags, status, tag;
    uint16_t length; /* of the payload */
    uint16_t op_id;
    uint32_t last;                    /* the word behind op_id: offset, tasks or request */
    uint32_t name;                    /* of the place */
    const struct definition *defines; /* with DEFINES */
    bool decisive;
    bool completes;
};
static inline uint32_t header_tasks(uint16_t source, uint16_t target)
{
    return (uint32_t)source << 16 | target;
}
/* Takes `frame`, whose payload is there, into the window and sends it as soon as that is possible.
 */
void mbcf_channel_queue(struct mbcf *mbcf, struct channel *channel, struct sss_frame *frame,
                        const struct header *header, uint64_t now_ns);
/* The same for a frame that can go at once and is complete but for seq and ack: `channel_is_clear`.
 */
void mbcf_channel_send_quick(struct mbcf *mbcf, struct channel *channel, struct sss_frame *frame,
                             uint32_t name, bool decisive, bool completes, uint64_t now_ns);
/* Nothing waits in front of a new request, and nothing about it is special. */
static inline bool channel_is_clear(const struct channel *channel)
{
    uint32_t used = channel->end - channel->first;

    /* Whether the last place is the last one is not known before a noted acknowledgement is taken.
     */
    return channel->state == MBCF_OPEN && channel->cursor == channel->end &&
           (used < REQUEST_PLACES - 1 || (used < REQUEST_PLACES && channel->noted_ack == 0)) &&
           used < channel->allowed && channel->refusals == 0 && !channel->own;
}
/* And so it stays for one request more, whatever is acknowledged before, and noted or taken. */
static inline bool channel_stays_clear(const struct channel *channel)
{
    return channel_is_clear(channel) && channel->end - channel->first < REQUEST_PLACES - 1;
}
static inline bool channel_has_request_place(const struct channel *channel)
{
    return channel->end - channel->first < REQUEST_PLACES;
}
/* Nothing more will be sent before the acknowledgement has come, which then has a half-duplex wire
 * to itself. */
static inline bool is_last_place(const struct channel *channel)
{
    return channel->end - channel->first == REQUEST_PLACES - 1;
}
static inline bool channel_has_result_place(const struct channel *channel)
{
    return channel->end - channel->first < WINDOW;
}

static inline const struct place *channel_first_place(const struct channel *channel)
{
    return &channel->places[channel->first % WINDOW];
}
/* Of all that is under way `ack` acknowledges one frame, the only one; nothing waits for its place.
 */
static inline bool channel_is_answered_by(const struct channel *channel, uint32_t ack)
{
    const struct place *place = channel_first_place(channel);

    return channel->end - channel->first == 1 && place->seq == ack && place->sent &&
           place->completes && channel->failures == 0 && !channel->ack_now;
}

/* Whatever carries an acknowledgement has been sent. */
static inline void channel_ack_is_sent(struct channel *channel, bool unsure)
{
    channel->owed = 0;
    channel->ack_now = false;
    channel->unsure_sent = unsure;
    channel->ack_due_ns = NEVER;
}

/* A frame outside the sequence. Where there is no buffer it is lost, as on the wire. */
struct control {
    uint8_t op, flags;
    uint32_t target_epoch, seq, ack;
    uint32_t nonce, echo; /* SYN, SYNACK, OPENED */
};
void mbcf_channel_send_control(struct mbcf *mbcf, const struct channel *channel,
                               const struct control *control);
void mbcf_channel_send_probe(struct mbcf *mbcf, struct channel *channel);
void mbcf_channel_send_ack(struct mbcf *mbcf, struct channel *channel);
/* To be called when the peer's epoch changes. */
void mbcf_channel_make_ack_head(const struct mbcf *mbcf, struct channel *channel);
/* Sends what the window lets out. */
void mbcf_channel_pump(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns);
/* One that this incarnation has not used, not 0. */
uint32_t mbcf_channel_new_nonce(struct channel *channel);
void mbcf_channel_send_syn(struct mbcf *mbcf, const struct channel *channel);
void mbcf_channel_begin_opening(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns);
void mbcf_channel_release(struct mbcf *mbcf, struct channel *channel);
/* All of them, and the tags that the peer knows. */
void mbcf_channel_release_all(struct mbcf *mbcf, struct channel *channel);
void mbcf_channel_go_back(struct channel *channel, uint32_t allowed);
uint64_t mbcf_channel_timer_due(const struct mbcf *mbcf, const struct channel *channel);
void mbcf_channel_restart_timer(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns);
