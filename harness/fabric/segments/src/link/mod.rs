// SPDX-License-Identifier: Apache-2.0
//! A full duplex wire between two ports, with impairments in each direction.
//!
//! The way of a frame: transmit ring, the adapter's line at `rate_bps` (preamble, padding, FCS, gap),
//! impairments, propagation, and the line into the receiving adapter, which carries one frame at a time
//! as well. A link that impairs nothing adds nothing: the last bit arrives one propagation after it left.
//!
//! Where frames keep their order, their whole way is decided when they are handed in. Where jitter or
//! reordering lets a later frame overtake, or a change of the delay, a frame is held until none can any more.
//!
//! A change of the timeline applies to frames whose transmission begins at its instant or later. One that meets a cut
//! is lost where the impairments would take it; these draw nothing for it.

mod config;
mod netem;
mod way;

use std::collections::VecDeque;

use serde_json::Value;
use sundial_core::{
    Blocks, Board, Dropped, Fate, Frame, Invalid, LinkType, Output, Ring, Rule, Segment,
    SegmentCounters, SegmentParameters, Span, Time, change_instant, read_change,
};

use crate::ethernet::refusal;
use netem::Outcome;
use way::{State, Way};

use config::check_change;

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
    /// In order of time.
    pub timeline: Vec<LinkChange>,
    /// Whether changes may come that are not known yet.
    pub by_hand: bool,
}

/// What a link does from an instant on.
#[derive(Clone, Debug)]
pub struct LinkChange {
    /// From when on.
    pub at: Time,
    /// The comment in the capture.
    pub note: String,
    /// Between which ports nothing passes.
    pub blocks: Blocks,
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
    by_hand: bool,
    now: Time,
    /// Comments of changes that are still to come.
    notes: VecDeque<(Time, String)>,
    /// Kept to save an allocation a frame.
    outcomes: Vec<Outcome>,
}

impl Link {
    /// A link between the two ports of `common`.
    pub fn new(common: &SegmentParameters, parameters: LinkParameters) -> Self {
        assert_eq!(common.ports.len(), 2, "a link has two ports");
        let LinkParameters { rate_bps, propagation, impairments, timeline, by_hand } = parameters;
        let ways = [0, 1].map(|port| {
            let first = State { impairments: impairments[port].clone(), ..State::default() };
            let later = timeline.iter().map(|change| {
                let impairments = change.impairments[port].clone();
                (change.at, State::new(&change.blocks, port, impairments))
            });
            Way::new(common, port, rate_bps, first, later.collect(), by_hand)
        });
        Self {
            max_frame_bytes: common.max_frame_bytes,
            rate_bps,
            propagation,
            rings: [0, 1].map(|port| common.ring(port)),
            ways,
            board: Board::new(common),
            by_hand,
            now: Time::ZERO,
            notes: timeline.into_iter().map(|change| (change.at, change.note)).collect(),
            outcomes: Vec::new(),
        }
    }

    fn set_now(&mut self, now: Time) {
        assert!(now >= self.now, "time goes back: {now} after {}", self.now);
        self.now = now;
        while let Some((at, text)) = self.notes.pop_front_if(|(at, _)| *at <= now) {
            self.board.note(at, text);
        }
    }

    /// Announces what nothing handed in from now on can overtake any more, in order of certainty.
    fn release(&mut self) {
        while let Some((certain, port)) = self.next_release() {
            if certain > self.now {
                break;
            }
            let (at, frame) = self.ways[port].release_first();
            self.arrive(at, port, frame);
        }
    }

    fn next_release(&self) -> Option<(Time, usize)> {
        (0..2).filter_map(|port| Some((self.ways[port].next_certain()?, port))).min()
    }

    /// The frame leaves the impairments of `port` at `at`.
    fn arrive(&mut self, at: Time, port: usize, frame: Frame) {
        let due = self.ways[port].arrive(at, self.propagation, &frame);
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
            Outcome::Blocked(frame, rule) => {
                self.board.sever(at, port, rule, frame, (port, Some(1 - port)));
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
                if way.holds() {
                    way.hold(leaves, frame);
                } else {
                    self.arrive(leaves, port, frame);
                }
            }
        }
    }
}

impl Segment for Link {
    fn handle_frame(&mut self, now: Time, port: usize, frame: Frame) {
        self.handle_timeout(now);
        let refused = refusal(&frame, self.max_frame_bytes);
        if !self.board.admit(now, port, &frame, refused, &mut self.rings[port]) {
            return;
        }
        let (start, end) = match self.ways[port].send(now, &frame) {
            Ok(times) => times,
            Err(begin) => {
                self.board.lose(begin, port, frame, &mut self.rings[port]);
                return;
            }
        };
        self.rings[port].leave(end);
        self.board.sent(start, end, port, &frame);
        let mut outcomes = std::mem::take(&mut self.outcomes);
        self.ways[port].enter(end, frame, &mut outcomes);
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
        let release = self.next_release().map(|(certain, _)| certain);
        let note = self.notes.front().map(|(at, _)| *at);
        release.into_iter().chain(note).min()
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.board.poll_output()
    }

    fn lookahead(&self, from: usize, to: usize) -> Span {
        if from == to { Span::MAX } else { self.ways[from].slack() + self.propagation }
    }

    fn earliest_delivery(&self, port: usize) -> Option<Time> {
        self.ways[1 - port].earliest_arrival(self.propagation)
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

    fn change_by_hand(&mut self, now: Time, change: Value) -> Result<Time, Invalid> {
        if !self.by_hand {
            return Err(Invalid::new("", "this link has no `by_hand`"));
        }
        let LinkChange { note, blocks, impairments, .. } = check_change(read_change(change)?)?;
        let last = self.notes.back().map(|(at, _)| *at);
        let at = change_instant(now, self.ways.iter().map(Way::free), last);
        for (port, impairments) in impairments.into_iter().enumerate() {
            self.ways[port].add_change(at, State::new(&blocks, port, impairments));
        }
        self.notes.push_back((at, note));
        Ok(at)
    }
}

#[cfg(test)]
mod tests;
