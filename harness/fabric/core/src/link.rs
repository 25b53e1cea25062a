// SPDX-License-Identifier: Apache-2.0
//! A full duplex wire between two ports.

use crate::adapter::{Board, GAP_BITS, Line, MIN_WIRE_BITS, Ring};
use crate::{Frame, Output, Segment, SegmentCounters, SegmentParameters, Span, Time, wire_bits};

/// What a link is.
#[derive(Clone, Debug)]
pub struct LinkParameters {
    /// Bits per second in each direction.
    pub rate_bps: u64,
    /// From one end to the other.
    pub propagation: Span,
}

/// Two adapters and a wire. Nothing in it depends on later frames, so the whole way of a frame is
/// decided when it is handed in.
#[derive(Debug)]
pub struct Link {
    max_frame_bytes: usize,
    parameters: LinkParameters,
    lines: [Line; 2],
    rings: [Ring; 2],
    board: Board,
    now: Time,
}

impl Link {
    /// A link between the two ports of `common`.
    pub fn new(common: &SegmentParameters, parameters: LinkParameters) -> Self {
        assert_eq!(common.ports.len(), 2, "a link has two ports");
        Self {
            max_frame_bytes: common.max_frame_bytes,
            lines: [Line::new(parameters.rate_bps), Line::new(parameters.rate_bps)],
            rings: [Ring::new(common.ring_frames), Ring::new(common.ring_frames)],
            parameters,
            board: Board::new(common),
            now: Time::ZERO,
        }
    }
}

impl Segment for Link {
    fn handle_frame(&mut self, now: Time, port: usize, frame: Frame) {
        assert!(now >= self.now, "time goes back: {now} after {}", self.now);
        self.now = now;
        let ring = &mut self.rings[port];
        if !self.board.admit(now, port, &frame, self.max_frame_bytes, ring) {
            return;
        }
        let (start, end) = self.lines[port].send(now, wire_bits(frame.len()), GAP_BITS);
        ring.leave(end);
        self.board.sent(start, end, port, &frame);
        self.board.deliver(end + self.parameters.propagation, 1 - port, frame);
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.board.outputs.pop_front()
    }

    fn lookahead(&self, from: usize, to: usize) -> Span {
        if from == to {
            return Span::MAX;
        }
        Span::of_bits(MIN_WIRE_BITS, self.parameters.rate_bps) + self.parameters.propagation
    }

    fn earliest_delivery(&self, _port: usize) -> Option<Time> {
        None
    }

    fn earliest_tx_done(&self, _port: usize) -> Option<Time> {
        None
    }

    fn counters(&self) -> SegmentCounters {
        SegmentCounters { ports: self.board.counters.clone() }
    }
}
