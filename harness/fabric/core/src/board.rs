// SPDX-License-Identifier: Apache-2.0
//! What every model writes to: outputs, counters, fates; and the transmit rings of its adapters.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::{
    Direction, Fate, Frame, Gap, Output, PortCounters, Refusal, Rule, SegmentCounters,
    SegmentParameters, Span, Time, Train, Way,
};

/// The transmit ring of one adapter: how many frames are in it at an instant.
///
/// A frame takes its place when it is handed in, which is the adapter's latency before the model has it.
#[derive(Clone, Debug)]
pub struct Ring {
    places: usize,
    latency: Span,
    /// Frames handed in whose end is not known yet.
    open: usize,
    /// Ends that are known, in order.
    ends: VecDeque<Time>,
}

impl Ring {
    /// An empty ring of an adapter that begins with a frame `latency` after it was handed in.
    pub fn new(places: usize, latency: Span) -> Self {
        Self { places, latency, open: 0, ends: VecDeque::new() }
    }

    /// Takes a place for the frame that the adapter can begin with at `now`, if there was one when it was
    /// handed in.
    pub fn enter(&mut self, now: Time) -> bool {
        let handed_in = now.back(self.latency);
        while self.ends.front().is_some_and(|&end| end <= handed_in) {
            self.ends.pop_front();
        }
        if self.open + self.ends.len() >= self.places {
            return false;
        }
        self.open += 1;
        true
    }

    /// One frame that entered leaves at `end`.
    pub fn leave(&mut self, end: Time) {
        self.open = self.open.checked_sub(1).expect("only a frame that entered leaves");
        // A frame that is dropped may leave before one that is being sent.
        let behind = self.ends.iter().rev().take_while(|&&other| other > end).count();
        self.ends.insert(self.ends.len() - behind, end);
    }
}

/// Outputs and counters of a segment: what every model writes to.
#[derive(Clone, Debug)]
pub struct Board {
    outputs: VecDeque<Output>,
    counters: Vec<PortCounters>,
    names: Vec<String>,
}

impl Board {
    /// Nothing decided, nothing counted.
    pub fn new(parameters: &SegmentParameters) -> Self {
        Self {
            outputs: VecDeque::new(),
            counters: vec![PortCounters::default(); parameters.ports.len()],
            names: parameters.ports.clone(),
        }
    }

    /// `OWNER:INTERFACE` of `port`, for records.
    pub fn name(&self, port: usize) -> &str {
        &self.names[port]
    }

    /// The way between two ports.
    pub fn way(&self, from: usize, to: usize) -> Way {
        Way { from: self.names[from].clone(), to: self.names[to].clone() }
    }

    /// What [`crate::Segment::poll_output`] hands out.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// What [`crate::Segment::counters`] hands out, for a medium without channels.
    pub fn counters(&self) -> SegmentCounters {
        SegmentCounters { ports: self.counters.clone(), ..SegmentCounters::default() }
    }

    /// The counters of `port`, for what only the model knows of.
    pub fn port(&mut self, port: usize) -> &mut PortCounters {
        &mut self.counters[port]
    }

    /// The frame arrives at `port`, and the capture says so.
    pub fn deliver(&mut self, due: Time, port: usize, frame: Frame) {
        let counters = &mut self.counters[port];
        counters.rx_frames += 1;
        counters.rx_bytes += frame.len() as u64;
        self.record(due, port, Direction::Inbound, frame.clone());
        self.outputs.push_back(Output::Deliver { due, port, frame });
    }

    /// The adapter of `port` sent the frame in full: its first bit at `start`, its last at `end`.
    pub fn sent(&mut self, start: Time, end: Time, port: usize, frame: &Frame) {
        self.started(start, port, frame);
        self.tx_done(end, port);
    }

    /// The adapter of `port` sends the frame in full, its first bit at `start`; when its last one leaves is
    /// announced apart.
    pub fn started(&mut self, start: Time, port: usize, frame: &Frame) {
        let counters = &mut self.counters[port];
        counters.tx_frames += 1;
        counters.tx_bytes += frame.len() as u64;
        self.record(start, port, Direction::Outbound, frame.clone());
    }

    /// The adapter of `port` is through with a frame at `due`.
    pub fn tx_done(&mut self, due: Time, port: usize) {
        self.outputs.push_back(Output::TxDone { due, port });
    }

    /// A line on the fate interface.
    pub fn fate(&mut self, at: Time, frame: Frame, fate: Fate) {
        self.outputs.push_back(Output::Record {
            at,
            interface: self.counters.len(),
            direction: Direction::Unknown,
            frame,
            fate: Some(Box::new(fate)),
        });
    }

    /// A comment of the capture.
    pub fn note(&mut self, at: Time, text: String) {
        self.outputs.push_back(Output::Note { at, text });
    }

    /// Counts for `port` and records that nothing passed from one port to another when the frame began; `None`: from
    /// the port to its switch.
    pub fn sever(
        &mut self,
        at: Time,
        port: usize,
        rule: Rule,
        frame: Frame,
        (from, to): (usize, Option<usize>),
    ) {
        self.counters[port].count_drop(rule.name());
        let gap = match to {
            Some(to) => Gap::Between(self.way(from, to)),
            None => Gap::Before { from: self.names[from].clone() },
        };
        self.fate(at, frame, Fate::Severed { rule, gap });
    }

    /// Lines of the further capture numbered `capture`, from `at` on.
    pub fn train(
        &mut self,
        capture: usize,
        at: Time,
        interface: usize,
        direction: Direction,
        train: Arc<dyn Train>,
    ) {
        self.outputs.push_back(Output::Train { capture, at, interface, direction, train });
    }

    fn record(&mut self, at: Time, port: usize, direction: Direction, frame: Frame) {
        self.outputs.push_back(Output::Record {
            at,
            interface: port,
            direction,
            frame,
            fate: None,
        });
    }

    /// Counts a frame handed in at `now` and takes it into the ring, unless the adapter refuses it.
    /// `false`: it was refused or the ring was full, which is recorded, and its `TxDone` is announced.
    pub fn admit(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        refusal: Option<Refusal>,
        ring: &mut Ring,
    ) -> bool {
        self.counters[port].offered_frames += 1;
        let refusal = match refusal {
            Some(refusal) => refusal,
            None if ring.enter(now) => return true,
            None => {
                self.counters[port].adapter_full += 1;
                Refusal::by(Rule::AdapterFull)
            }
        };
        self.refuse(now, port, frame.clone(), refusal);
        self.tx_done(now, port);
        false
    }

    /// The machine at `port` is off when its adapter could begin with the frame, at `begin`: its ring is lost.
    pub fn lose(&mut self, begin: Time, port: usize, frame: Frame, ring: &mut Ring) {
        ring.leave(begin);
        self.refuse(begin, port, frame, Refusal::by(Rule::AdapterOff));
        self.tx_done(begin, port);
    }

    /// Counts and records that the adapter of `port` does not send the frame.
    pub fn refuse(&mut self, at: Time, port: usize, frame: Frame, refusal: Refusal) {
        self.counters[port].count_drop(refusal.rule.name());
        let fate = Fate::refused(self.name(port), refusal);
        self.fate(at, frame, fate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_the_ring_falls_free_at_the_end() {
        let mut ring = Ring::new(1, Span::ZERO);
        assert!(ring.enter(Time::ZERO));
        ring.leave(Time::from_ns(5));
        assert!(!ring.enter(Time::from_ns(4)));
        assert!(ring.enter(Time::from_ns(5)));
    }

    #[test]
    fn a_place_is_asked_for_when_the_frame_is_handed_in() {
        let mut ring = Ring::new(1, Span::from_ns(3));
        assert!(ring.enter(Time::from_ns(3)), "handed in at 0");
        ring.leave(Time::from_ns(5));
        assert!(!ring.enter(Time::from_ns(7)), "handed in at 4, when the first was still there");
        assert!(ring.enter(Time::from_ns(8)), "handed in at 5");
    }
}
