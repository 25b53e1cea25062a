// SPDX-License-Identifier: Apache-2.0
//! A store-and-forward switch, full duplex on every port (IEEE 802.1D clause 7: learning, filtering,
//! flooding, ageing).
//!
//! The way of a frame: transmit ring, the adapter's line, propagation; fully received, its source is
//! learned and its ports are chosen; after the forwarding latency it joins the output queue of each of
//! them or, if that is full, is dropped there; the port's line, propagation, delivery.
//!
//! A cable that is cut loses what begins on it then, towards the switch or away from it. A partition loses copies for
//! ports of other groups; the frame began when its sender sent it.
//!
//! Frames are looked at in order of reception; at one instant the lower port comes first. As nothing
//! handed in from now on can be received before the least serialisation and propagation are over, a
//! reception is acted upon that much ahead of its time, and all deliveries are announced then.

mod config;

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;
use sundial_core::{
    AddressTable, Blocks, Board, Dropped, End, Fate, Frame, Invalid, Line, LinkType, Output, Ring,
    Rule, Segment, SegmentCounters, SegmentParameters, Span, Time, change_instant, read_change,
};
use sundial_wire::ethernet::Header;

use crate::ethernet::{GAP_BITS, MIN_WIRE_BITS, refusal, wire_bits};

use config::check_change;

pub use config::Config;

/// What a switch is.
#[derive(Clone, Debug)]
pub struct SwitchParameters {
    /// Bits per second of each port, both ways.
    pub rate_bps: Vec<u64>,
    /// One way through each port's cable.
    pub propagation: Vec<Span>,
    /// From the last bit received to the frame's place in the output queue.
    pub forwarding_latency: Span,
    /// Places in each output queue; the frame being sent takes none.
    pub queue_frames: usize,
    /// Addresses that the table holds; what does not fit is not learned.
    pub mac_table_entries: usize,
    /// An address not seen for this long is forgotten.
    pub ageing: Span,
    /// In order of time.
    pub timeline: Vec<SwitchChange>,
}

/// What a switch does from an instant on.
#[derive(Clone, Debug)]
pub struct SwitchChange {
    /// From when on.
    pub at: Time,
    /// The comment in the capture.
    pub note: String,
    /// Between which ports nothing passes.
    pub blocks: Blocks,
}

/// The switch and the adapters at the other ends of its cables.
#[derive(Debug)]
pub struct Switch {
    max_frame_bytes: usize,
    parameters: SwitchParameters,
    inputs: Vec<Input>,
    outputs: Vec<OutputPort>,
    table: AddressTable,
    /// Frames on their way in and when they began, by end of reception, port and order.
    arriving: BTreeMap<(Time, usize, u64), (Time, Frame)>,
    /// How many comments of changes have been made.
    noted: usize,
    next_sequence: u64,
    /// No frame handed in from now on is received sooner than this after it.
    least_input: Span,
    board: Board,
    now: Time,
}

/// The adapter at the other end of a port's cable.
#[derive(Debug)]
struct Input {
    line: Line,
    ring: Ring,
}

/// A port's transmitter and the frames waiting for it.
#[derive(Debug)]
struct OutputPort {
    line: Line,
    /// When each frame that is decided leaves its place in the queue: its first bit.
    starts: VecDeque<Time>,
}

impl Switch {
    /// A switch with the ports of `common`.
    pub fn new(common: &SegmentParameters, parameters: SwitchParameters) -> Self {
        let ports = common.ports.len();
        assert!(ports >= 2, "a switch joins at least two machines");
        assert_eq!(parameters.rate_bps.len(), ports, "one rate a port");
        assert_eq!(parameters.propagation.len(), ports, "one cable a port");
        let least_input = (0..ports)
            .map(|port| {
                let serialisation = Span::of_bits(MIN_WIRE_BITS, parameters.rate_bps[port]);
                serialisation + parameters.propagation[port]
            })
            .min()
            .expect("there are ports");
        let lines = || parameters.rate_bps.iter().map(|&rate| Line::new(rate));
        Self {
            max_frame_bytes: common.max_frame_bytes,
            inputs: lines()
                .zip(0..)
                .map(|(line, port)| Input { line, ring: common.ring(port) })
                .collect(),
            outputs: lines().map(|line| OutputPort { line, starts: VecDeque::new() }).collect(),
            table: AddressTable::new(parameters.mac_table_entries, parameters.ageing),
            arriving: BTreeMap::new(),
            noted: 0,
            next_sequence: 0,
            least_input,
            board: Board::new(common),
            now: Time::ZERO,
            parameters,
        }
    }

    /// The first one whose comment is still to come.
    fn next_change(&self) -> Option<&SwitchChange> {
        self.parameters.timeline.get(self.noted)
    }

    /// From when on nothing can be received before or together with a frame received at `received`.
    fn certain(&self, received: Time) -> Time {
        // One picosecond more, for a lower port has precedence at the same instant.
        received.back(self.least_input) + Span::from_ps(1)
    }

    fn process(&mut self) {
        while let Some((&(received, _, _), _)) = self.arriving.first_key_value() {
            if self.certain(received) > self.now {
                break;
            }
            let ((_, port, _), (begun, frame)) =
                self.arriving.pop_first().expect("it is the one just looked at");
            self.forward(received, port, begun, &frame);
        }
    }

    /// The change in force for what begins at `begun`, as the capture stamps it.
    fn change(&self, begun: Time) -> Option<&SwitchChange> {
        let stamped = Time::from_ns(begun.as_ns_ceil());
        let timeline = &self.parameters.timeline;
        timeline[..timeline.partition_point(|change| change.at <= stamped)].last()
    }

    /// Whether the cable of `port` is cut for what begins at `begun`.
    fn is_cut(&self, begun: Time, port: usize) -> bool {
        self.change(begun).is_some_and(|change| change.blocks.is_cut(port))
    }

    /// Whether the machine at `port` is off for what begins at `begun`.
    fn is_off(&self, begun: Time, port: usize) -> bool {
        self.change(begun).is_some_and(|change| change.blocks.is_off(port))
    }

    /// The last bit of `frame`, which began at `begun`, reached the switch through `port`.
    fn forward(&mut self, received: Time, port: usize, begun: Time, frame: &Frame) {
        let (header, _) = Header::parse(frame).expect("shorter frames are refused by the adapter");
        if !header.source.is_group() {
            self.table.learn(received, header.source, port);
        }
        let queued = received + self.parameters.forwarding_latency;
        let known = if header.destination.is_group() {
            None
        } else {
            self.table.find(received, header.destination)
        };
        match known {
            Some(to) if to == port => self.board.port(port).filtered += 1,
            Some(to) => self.pass(queued, (port, to), begun, frame),
            None => {
                self.board.port(port).flooded += 1;
                for to in (0..self.outputs.len()).filter(|&to| to != port) {
                    self.pass(queued, (port, to), begun, frame);
                }
            }
        }
    }

    /// Hands a copy for the port `to` to its queue, unless it is in another group.
    fn pass(&mut self, queued: Time, (from, to): (usize, usize), begun: Time, frame: &Frame) {
        if self.change(begun).is_some_and(|change| change.blocks.are_apart(from, to)) {
            self.board.sever(queued, to, Rule::Partition, frame.clone(), (from, Some(to)));
        } else {
            self.enqueue(queued, from, to, frame);
        }
    }

    fn enqueue(&mut self, queued: Time, from: usize, to: usize, frame: &Frame) {
        let output = &mut self.outputs[to];
        while output.starts.front().is_some_and(|&start| start <= queued) {
            output.starts.pop_front();
        }
        if output.starts.len() >= self.parameters.queue_frames && output.line.free() > queued {
            let (rule, end) = (Rule::QueueFull, End::To(self.board.name(to).to_owned()));
            self.board.port(to).count_drop(rule.name());
            self.board.fate(queued, frame.clone(), Fate::Dropped { rule, how: Dropped::End(end) });
            return;
        }
        let (start, end) = output.line.send(queued, wire_bits(frame.len()), GAP_BITS);
        output.starts.push_back(start);
        if self.is_cut(start, to) {
            self.board.sever(end, to, Rule::Cut, frame.clone(), (from, Some(to)));
            return;
        }
        if self.is_off(start, to) {
            self.board.sever(end, to, Rule::Off, frame.clone(), (from, Some(to)));
            return;
        }
        self.board.deliver(end + self.parameters.propagation[to], to, frame.clone());
    }

    /// When a frame received at `received` would be delivered at `to` if nothing comes before it.
    fn delivery(&self, received: Time, to: usize, bits: u64) -> Time {
        let queued = received + self.parameters.forwarding_latency;
        let start = queued.max(self.outputs[to].line.free());
        // Rounded down: the line may have a fraction of a picosecond less to go than `free` says.
        let serialisation = Span::of_bits_floor(bits, self.parameters.rate_bps[to]);
        start + serialisation + self.parameters.propagation[to]
    }
}

impl Segment for Switch {
    fn handle_frame(&mut self, now: Time, port: usize, frame: Frame) {
        self.handle_timeout(now);
        let refused = refusal(&frame, self.max_frame_bytes);
        if !self.board.admit(now, port, &frame, refused, &mut self.inputs[port].ring) {
            return;
        }
        let begin = self.inputs[port].line.begin(now);
        if self.is_off(begin, port) {
            self.board.lose(begin, port, frame, &mut self.inputs[port].ring);
            return;
        }
        let Input { line, ring } = &mut self.inputs[port];
        let (start, end) = line.send(now, wire_bits(frame.len()), GAP_BITS);
        ring.leave(end);
        self.board.sent(start, end, port, &frame);
        if self.is_cut(start, port) {
            self.board.sever(end, port, Rule::Cut, frame, (port, None));
            return;
        }
        let received = end + self.parameters.propagation[port];
        self.arriving.insert((received, port, self.next_sequence), (start, frame));
        self.next_sequence += 1;
    }

    fn handle_timeout(&mut self, now: Time) {
        assert!(now >= self.now, "time goes back: {now} after {}", self.now);
        self.now = now;
        while let Some(change) = self.next_change().filter(|change| change.at <= now) {
            let (at, note) = (change.at, change.note.clone());
            self.board.note(at, note);
            self.noted += 1;
        }
        self.process();
    }

    fn poll_timeout(&self) -> Option<Time> {
        let first = self.arriving.first_key_value();
        let certain = first.map(|(&(received, _, _), _)| self.certain(received));
        certain.into_iter().chain(self.next_change().map(|change| change.at)).min()
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.board.poll_output()
    }

    fn lookahead(&self, from: usize, to: usize) -> Span {
        if from == to {
            return Span::MAX;
        }
        let SwitchParameters { rate_bps, propagation, forwarding_latency, .. } = &self.parameters;
        Span::of_bits(MIN_WIRE_BITS, rate_bps[from])
            + propagation[from]
            + *forwarding_latency
            + Span::of_bits(MIN_WIRE_BITS, rate_bps[to])
            + propagation[to]
    }

    fn earliest_delivery(&self, port: usize) -> Option<Time> {
        // The table may send any of them anywhere. The first that can come here is taken at its length;
        // those after it may be shorter, but they are received later.
        let mut coming = self.arriving.iter().filter(|((_, from, _), _)| *from != port);
        let (&(received, _, _), (_, frame)) = coming.next()?;
        let first = self.delivery(received, port, wire_bits(frame.len()));
        match coming.next() {
            Some((&(received, _, _), _)) => {
                Some(first.min(self.delivery(received, port, MIN_WIRE_BITS)))
            }
            None => Some(first),
        }
    }

    fn earliest_tx_done(&self, _port: usize) -> Option<Time> {
        // The end of each transmission is announced when the frame is handed in.
        None
    }

    fn counters(&self) -> SegmentCounters {
        self.board.counters()
    }

    fn rate_bps(&self, port: usize) -> u64 {
        self.parameters.rate_bps[port]
    }

    fn link_type(&self) -> LinkType {
        LinkType::ETHERNET
    }

    fn record_lag(&self) -> Span {
        Span::ZERO
    }

    fn change_by_hand(&mut self, now: Time, change: Value) -> Result<Time, Invalid> {
        let change = check_change(read_change(change)?, self.outputs.len())?;
        let inputs = self.inputs.iter().map(|input| input.line.free());
        let lines = inputs.chain(self.outputs.iter().map(|output| output.line.free()));
        let timeline = &mut self.parameters.timeline;
        let at = change_instant(now, lines, timeline.last().map(|change| change.at));
        timeline.push(SwitchChange { at, ..change });
        Ok(at)
    }
}

#[cfg(test)]
mod tests;
