// SPDX-License-Identifier: Apache-2.0
//! A backplane that carries stores from memory to memory: virtual memory-mapped communication.
//!
//! Each node has a line into the backplane, which takes its packets in the order in which they are ready, and one
//! engine that writes what arrives into memory, in the order of arrival. Nothing is lost; who is not there is
//! sent nothing.

mod config;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::BTreeMap;

use sundial_core::{
    Board, Frame, Line, LinkType, Output, Refusal, Ring, Rule, Segment, SegmentCounters,
    SegmentParameters, Span, Time, Why,
};

pub use config::Config;
pub use wire::HEADER_BYTES;
use wire::{DATA_MOST, LINK_TYPE, RECEIVER_AT, SENDER_AT, VERSION, VERSION_AT};

/// What a backplane is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackplaneParameters {
    /// From a packet's leaving until the receiver can begin to write it.
    pub way: Span,
    /// Of a node's line into the backplane.
    pub link_rate_bps: u64,
    /// At which a node writes what arrives.
    pub dma_rate_bps: u64,
    /// The number of the node at each port.
    pub nodes: Vec<u16>,
}

/// The model.
pub struct Backplane {
    parameters: BackplaneParameters,
    lines: Vec<Line>,
    /// No place is ever missing: the adapter itself keeps its queue within bounds.
    rings: Vec<Ring>,
    engines: Vec<Line>,
    /// By receiver: packets that have not left, by (leaving, sender, order of handing in).
    waiting: Vec<BTreeMap<(Time, usize, u64), Frame>>,
    handed_in: u64,
    board: Board,
}

impl Backplane {
    /// An idle backplane.
    pub fn new(common: &SegmentParameters, parameters: BackplaneParameters) -> Self {
        let ports = parameters.nodes.len();
        let ring = |port: usize| Ring::new(usize::MAX, common.adapter_latency[port]);
        Self {
            lines: vec![Line::new(parameters.link_rate_bps); ports],
            rings: (0..ports).map(ring).collect(),
            engines: vec![Line::new(parameters.dma_rate_bps); ports],
            waiting: (0..ports).map(|_| BTreeMap::new()).collect(),
            handed_in: 0,
            board: Board::new(common),
            parameters,
        }
    }

    /// The port that the packet is for, or why its sender's adapter refuses it.
    fn receiver(&self, port: usize, frame: &Frame) -> Result<usize, Refusal> {
        let refused = |rule, why| Err(Refusal::with(rule, why));
        let bytes = frame.len();
        let word = |at| u16::from_le_bytes([frame[at], frame[at + 1]]);
        if !(HEADER_BYTES..=HEADER_BYTES + DATA_MOST).contains(&bytes)
            || frame[VERSION_AT] != VERSION
        {
            return refused(Rule::NoPacket, Why::Bytes { bytes });
        }
        if word(SENDER_AT) != self.parameters.nodes[port] {
            return refused(Rule::Sender, Why::Node { node: word(SENDER_AT) });
        }
        let to = word(RECEIVER_AT);
        match self.parameters.nodes.iter().position(|&node| node == to) {
            Some(receiver) if receiver != port => Ok(receiver),
            _ => refused(Rule::UnknownNode, Why::Node { node: to }),
        }
    }

    /// The packet leaves at `at`: nothing that leaves later arrives sooner, so its place at the receiver is known.
    fn leave(&mut self, at: Time, receiver: usize, frame: Frame) {
        let bits = 8 * (frame.len() - HEADER_BYTES) as u64;
        let (_, end) = self.engines[receiver].send(at + self.parameters.way, bits, 0);
        // Rounded once, so that two packets one after another keep their distance.
        self.board.deliver(Time::from_ns(end.as_ns_ceil()), receiver, frame);
    }

    fn first(&self) -> Option<(Time, usize)> {
        let firsts = self.waiting.iter().enumerate().filter_map(|(receiver, waiting)| {
            waiting.first_key_value().map(|(&(at, from, _), _)| (at, from, receiver))
        });
        firsts.min().map(|(at, _, receiver)| (at, receiver))
    }
}

impl Segment for Backplane {
    fn handle_frame(&mut self, now: Time, port: usize, frame: Frame) {
        self.handle_timeout(now);
        let (refusal, receiver) = match self.receiver(port, &frame) {
            Ok(receiver) => (None, receiver),
            Err(refusal) => (Some(refusal), port),
        };
        if !self.board.admit(now, port, &frame, refusal, &mut self.rings[port]) {
            return;
        }
        let (start, end) = self.lines[port].send(now, 8 * frame.len() as u64, 0);
        self.rings[port].leave(end);
        self.board.sent(start, end, port, &frame);
        self.handed_in += 1;
        self.waiting[receiver].insert((start, port, self.handed_in), frame);
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some((at, receiver)) = self.first().filter(|&(at, _)| at < now) {
            let (_, frame) = self.waiting[receiver].pop_first().expect("it is the first");
            self.leave(at, receiver, frame);
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        // Who else leaves at that instant is known when it is over: at one instant the lower port goes first.
        self.first().map(|(at, _)| at + Span::from_ps(1))
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.board.poll_output()
    }

    fn lookahead(&self, from: usize, to: usize) -> Span {
        if from == to { Span::MAX } else { self.parameters.way }
    }

    fn earliest_delivery(&self, port: usize) -> Option<Time> {
        let first = self.waiting[port].first_key_value();
        first.map(|(&(at, _, _), _)| at + self.parameters.way)
    }

    fn earliest_tx_done(&self, _port: usize) -> Option<Time> {
        None
    }

    fn counters(&self) -> SegmentCounters {
        self.board.counters()
    }

    fn rate_bps(&self, _port: usize) -> u64 {
        self.parameters.link_rate_bps
    }

    fn link_type(&self) -> LinkType {
        LinkType(LINK_TYPE)
    }
}
