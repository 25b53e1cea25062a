/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state.h"

/* That of a received frame; `sure`: no error may come for what it acknowledges. */
void mbcf_acks_take(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                    bool sure, uint64_t now_ns);
/* The same for one that is news. */
void mbcf_acks_take_new(struct mbcf *mbcf, struct channel *channel, uint32_t ack, bool sure,
                        uint64_t now_ns);
/*
 * An acknowledgement that no operation waits for any more is only noted when it comes with a frame
 * that brings something else, or has completed the only one, and taken when the next request has
 * gone out, so that neither is late. Whatever looks at what is unfinished takes it first. Taking it
 * may queue what waits for a place: not to be called in the middle of that.
 */
void mbcf_acks_note(struct mbcf *mbcf, struct channel *channel, uint32_t ack, uint64_t now_ns);
/* Acknowledges the only frame under way; `done`: its operation has been completed, and the rest has
 * time. */
void mbcf_acks_take_quick(struct mbcf *mbcf, struct channel *channel, uint32_t ack, bool done,
                          uint64_t now_ns);
void mbcf_acks_take_noted(struct mbcf *mbcf, struct channel *channel);
/* The same just behind a frame that has been sent at `now_ns`: where it is the first one again, its
 * timer runs from then. */
void mbcf_acks_take_noted_behind(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns);

/* An acknowledgement is owed: at once, or delayed. */
void mbcf_acks_owe(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns);
void mbcf_acks_owe_for(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                       uint64_t now_ns);
void mbcf_acks_owe_for_gap(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns);
