// SPDX-License-Identifier: Apache-2.0
//! A full duplex wire between two ports, with impairments in each direction.
//!
//! The way of a frame: transmit ring, the adapter's line at `rate_bps` (preamble, padding, FCS, gap),
//! impairments, propagation, and the line into the receiving adapter, which carries one frame at a time
//! as well. A link that impairs nothing adds nothing: the last bit arrives one propagation after it left.
//!
//! Where frames keep their order, their whole way is decided when they are handed in. Where jitter or
//! reordering lets a later frame overtake, a frame is held until none can any more.

mod config;
mod netem;

use std::collections::BTreeMap;

use sundial_core::{
    Board, Dropped, Fate, Frame, Line, LinkType, Output, Ring, Rule, Segment, SegmentCounters,
    SegmentParameters, Span, Time,
};

use crate::ethernet::{GAP_BITS, MIN_WIRE_BITS, refusal, wire_bits};
use netem::{Netem, Outcome};

pub use config::Config;
pub use netem::{Distribution, Gemodel, Impairments};

/// What a link is.
#[derive(Clone, Debug)]
pub struct LinkParameters {
    /// Bits per second in each direction.
    pub rate_bps: u64,
    /// From one end to the other.
    pub propagation: Span,
    /// By sending port; checked ones.
    pub impairments: [Option<Box<Impairments>>; 2],
}

/// Two adapters and a wire.
#[derive(Debug)]
pub struct Link {
    max_frame_bytes: usize,
    rate_bps: u64,
    propagation: Span,
    rings: [Ring; 2],
    ways: [Way; 2],
    board: Board,
    now: Time,
    /// Kept to save an allocation a frame.
    outcomes: Vec<Outcome>,
}

/// One direction, from the sending adapter on.
#[derive(Debug)]
struct Way {
    line: Line,
    netem: Option<Netem>,
    /// Frames that may still be overtaken, by time to send and order of arrival.
    held: BTreeMap<(Time, u64), Frame>,
    next_sequence: u64,
    /// A frame handed in from now on leaves the impairments no sooner than this after it.
    slack: Span,
    /// When the receiving adapter got its last bit.
    arrived: Time,
}

impl Link {
    /// A link between the two ports of `common`.
    pub fn new(common: &SegmentParameters, parameters: LinkParameters) -> Self {
        assert_eq!(common.ports.len(), 2, "a link has two ports");
        let LinkParameters { rate_bps, propagation, impairments } = parameters;
        let mut port = 0;
        let ways = impairments.map(|impairments| {
            let netem = impairments.map(|settings| Netem::new(common, port, *settings));
            port += 1;
            Way::new(rate_bps, netem)
        });
        Self {
            max_frame_bytes: common.max_frame_bytes,
            rate_bps,
            propagation,
            rings: [0, 1].map(|port| common.ring(port)),
            ways,
            board: Board::new(common),
            now: Time::ZERO,
            outcomes: Vec::new(),
        }
    }

    fn set_now(&mut self, now: Time) {
        assert!(now >= self.now, "time goes back: {now} after {}", self.now);
        self.now = now;
    }

    /// Announces what nothing handed in from now on can overtake any more, in order of certainty.
    fn release(&mut self) {
        while let Some((certain, port)) = self.next_release() {
            if certain > self.now {
                break;
            }
            let ((at, _), frame) =
                self.ways[port].held.pop_first().expect("it is the one just looked at");
            self.arrive(at, port, frame);
        }
    }

    fn next_release(&self) -> Option<(Time, usize)> {
        (0..2).filter_map(|port| Some((self.ways[port].next_certain()?, port))).min()
    }

    /// The frame leaves the impairments of `port` at `at`.
    fn arrive(&mut self, at: Time, port: usize, frame: Frame) {
        let way = &mut self.ways[port];
        let due = way.arrival(at, self.propagation, self.rate_bps, &frame);
        way.arrived = due;
        self.board.deliver(due, 1 - port, frame);
    }

    /// Records and counts what became of a frame that entered the impairments of `port` at `at`.
    fn settle(&mut self, at: Time, port: usize, outcome: Outcome) {
        let way = |board: &Board| board.way(port, 1 - port);
        let counters = self.board.port(port);
        match outcome {
            Outcome::Lost(frame) => {
                counters.count_drop("lost");
                let fate = Fate::Lost(way(&self.board));
                self.board.fate(at, frame, fate);
            }
            Outcome::Full(frame) => {
                let rule = Rule::QueueFull;
                counters.count_drop(rule.name());
                let fate = Fate::Dropped { rule, how: Dropped::Way(way(&self.board)) };
                self.board.fate(at, frame, fate);
            }
            Outcome::Corrupted { frame, byte, bit } => {
                counters.corrupted += 1;
                let fate = Fate::Corrupted { bit, byte, way: way(&self.board) };
                self.board.fate(at, frame, fate);
            }
            Outcome::Duplicated(frame) => {
                counters.duplicated += 1;
                let fate = Fate::Duplicated(way(&self.board));
                self.board.fate(at, frame, fate);
            }
            Outcome::Sent { at: leaves, frame, ahead } => {
                counters.reordered += u64::from(ahead);
                let way = &mut self.ways[port];
                if way.netem.as_ref().is_some_and(|netem| !netem.keeps_order()) {
                    way.held.insert((leaves, way.next_sequence), frame);
                    way.next_sequence += 1;
                } else {
                    self.arrive(leaves, port, frame);
                }
            }
        }
    }
}

impl Way {
    fn new(rate_bps: u64, netem: Option<Netem>) -> Self {
        let least_delay = netem.as_ref().map_or(Span::ZERO, Netem::least_delay);
        Self {
            line: Line::new(rate_bps),
            slack: Span::of_bits_floor(MIN_WIRE_BITS, rate_bps) + least_delay,
            netem,
            held: BTreeMap::new(),
            next_sequence: 0,
            arrived: Time::ZERO,
        }
    }

    /// From when on the first of the held frames cannot be overtaken.
    fn next_certain(&self) -> Option<Time> {
        let (&(at, _), _) = self.held.first_key_value()?;
        let certain = at.back(self.slack);
        // A frame handed in before the adapter's line falls free has to wait for it.
        Some(if certain <= self.line.free() { Time::ZERO } else { certain })
    }

    /// When the receiving adapter has the last bit of `frame`, which leaves the impairments at `at`.
    fn arrival(&self, at: Time, propagation: Span, rate_bps: u64, frame: &Frame) -> Time {
        let due = at + propagation;
        if self.netem.is_none() || self.arrived == Time::ZERO {
            return due;
        }
        // Rounded down, so that frames in step with the line are never pushed out of it.
        let bits = GAP_BITS + wire_bits(frame.len());
        due.max(self.arrived + Span::of_bits_floor(bits, rate_bps))
    }
}

impl Segment for Link {
    fn handle_frame(&mut self, now: Time, port: usize, frame: Frame) {
        self.handle_timeout(now);
        let refused = refusal(&frame, self.max_frame_bytes);
        if !self.board.admit(now, port, &frame, refused, &mut self.rings[port]) {
            return;
        }
        let (start, end) = self.ways[port].line.send(now, wire_bits(frame.len()), GAP_BITS);
        self.rings[port].leave(end);
        self.board.sent(start, end, port, &frame);
        let mut outcomes = std::mem::take(&mut self.outcomes);
        match &mut self.ways[port].netem {
            None => self.arrive(end, port, frame),
            Some(netem) => netem.enqueue(end, frame, &mut outcomes),
        }
        for outcome in outcomes.drain(..) {
            self.settle(end, port, outcome);
        }
        self.outcomes = outcomes;
        self.release();
    }

    fn handle_timeout(&mut self, now: Time) {
        self.set_now(now);
        self.release();
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.next_release().map(|(certain, _)| certain)
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.board.poll_output()
    }

    fn lookahead(&self, from: usize, to: usize) -> Span {
        if from == to { Span::MAX } else { self.ways[from].slack + self.propagation }
    }

    fn earliest_delivery(&self, port: usize) -> Option<Time> {
        let way = &self.ways[1 - port];
        let (&(at, _), frame) = way.held.first_key_value()?;
        Some(way.arrival(at, self.propagation, self.rate_bps, frame))
    }

    fn earliest_tx_done(&self, _port: usize) -> Option<Time> {
        // The end of each transmission is announced when the frame is handed in.
        None
    }

    fn counters(&self) -> SegmentCounters {
        self.board.counters()
    }

    fn rate_bps(&self, _port: usize) -> u64 {
        self.rate_bps
    }

    fn link_type(&self) -> LinkType {
        LinkType::ETHERNET
    }

    fn record_lag(&self) -> Span {
        Span::ZERO
    }
}

#[cfg(test)]
mod tests;
