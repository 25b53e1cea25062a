// SPDX-License-Identifier: Apache-2.0
//! What one adapter on a hub knows.

use std::collections::VecDeque;

use sundial_core::{Frame, Ring, SegmentParameters, Span, Stream, Time};

use super::JAM_BITS;
use crate::ethernet::PREAMBLE_BITS;

/// Purpose number of the backoff's random stream.
const BACKOFF_STREAM: u64 = 16;

/// One station's adapter.
#[derive(Debug)]
pub(super) struct Station {
    /// The frame being sent (until its outcome is certain) and those after it.
    pub(super) queue: VecDeque<Frame>,
    pub(super) ring: Ring,
    /// Collisions of the frame at the head.
    pub(super) attempts: u32,
    /// The head was counted as deferred.
    pub(super) deferred: bool,
    pub(super) sending: Option<Transmission>,
    /// Signals of others that this station senses now.
    pub(super) heard: Vec<Heard>,
    /// Signals of others that this station does not sense yet.
    pub(super) approaching: usize,
    pub(super) deference: Deference,
    /// When the last gap after another's frame ended. What comes at that instant counts as deferred: it begins when
    /// what has waited does, and no capture tells them apart.
    pub(super) freed: Option<Time>,
    pub(super) backoff_until: Option<Time>,
    pub(super) backoff: Stream,
}

/// `deferring` of clause 4.2.8, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deference {
    /// Not deferring.
    Free,
    /// Carrier; `sent`: this station itself sent meanwhile (`wasTransmitting`).
    Busy { sent: bool },
    /// The gap is timed; from `deaf_from` on a carrier does not end it.
    Gap { end: Time, deaf_from: Time, own: bool },
}

/// A transmission under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmission {
    pub(super) id: u64,
    pub(super) start: Time,
    pub(super) end: Time,
    pub(super) collided: bool,
    /// Its success has been announced.
    pub(super) announced: bool,
    /// Other stations that may still start because they do not defer to this yet.
    pub(super) unaware: usize,
}

impl Transmission {
    /// What a station sends that hears another at `now`: the preamble to its end, a bit that has begun to
    /// its end, and the jam.
    pub(super) fn jammed_bits(&self, now: Time, bit: Span) -> u64 {
        let sent = now.since(self.start).as_ps().div_ceil(bit.as_ps());
        sent.max(PREAMBLE_BITS) + JAM_BITS
    }

    /// The station hears another at `now`; the bits it sends in all.
    pub(super) fn jam(&mut self, now: Time, bit: Span) -> u64 {
        let bits = self.jammed_bits(now, bit);
        self.collided = true;
        self.end = self.start + bit * bits;
        bits
    }
}

/// Another station's signal at this station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub(super) from: usize,
    pub(super) id: u64,
    /// This station defers to it.
    pub(super) aware: bool,
}

impl Station {
    pub(super) fn new(common: &SegmentParameters, port: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            ring: common.ring(port),
            attempts: 0,
            deferred: false,
            sending: None,
            heard: Vec::new(),
            approaching: 0,
            deference: Deference::Free,
            freed: None,
            backoff_until: None,
            backoff: Stream::new(common.seed, &common.name, port, BACKOFF_STREAM),
        }
    }

    /// Deferring because of another's carrier or the gap after it.
    pub(super) fn is_waiting_for_others(&self) -> bool {
        !self.heard.is_empty() || matches!(self.deference, Deference::Gap { own: false, .. })
    }
}
