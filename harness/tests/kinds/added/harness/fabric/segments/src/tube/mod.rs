// SPDX-License-Identifier: Apache-2.0
//! A tube between two ports: each end sends at one rate, and what is sent arrives a fixed time later.

use serde::Deserialize;
use sundial_core::{
    Board, Frame, Invalid, Line, LinkType, Output, Ring, Segment, SegmentCounters, SegmentKind,
    SegmentParameters, Span, Time, check_rate,
};

use crate::ethernet::{GAP_BITS, MIN_WIRE_BITS, refusal, wire_bits};

/// A tube as `fabric.json` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    rate_bps: u64,
    delay_ns: u64,
}

impl SegmentKind for Config {
    const NAME: &'static str = "tube";
    type Parameters = Config;

    fn check(self, ports: usize) -> Result<Config, Invalid> {
        if ports != 2 {
            return Err(Invalid::new("ports", format!("a tube has 2 ends, not {ports}")));
        }
        check_rate(self.rate_bps, "rate_bps")?;
        Ok(self)
    }

    fn build(common: &SegmentParameters, parameters: &Config) -> Box<dyn Segment> {
        Box::new(Tube {
            max_frame_bytes: common.max_frame_bytes,
            rate_bps: parameters.rate_bps,
            delay: Span::from_ns(parameters.delay_ns),
            rings: [0, 1].map(|port| Ring::new(common.rings[port], common.adapter_latency[port])),
            lines: [Line::new(parameters.rate_bps), Line::new(parameters.rate_bps)],
            board: Board::new(common),
        })
    }
}

#[derive(Debug)]
struct Tube {
    max_frame_bytes: usize,
    rate_bps: u64,
    delay: Span,
    rings: [Ring; 2],
    lines: [Line; 2],
    board: Board,
}

impl Segment for Tube {
    fn handle_frame(&mut self, now: Time, port: usize, frame: Frame) {
        let refused = refusal(&frame, self.max_frame_bytes);
        if !self.board.admit(now, port, &frame, refused, &mut self.rings[port]) {
            return;
        }
        let (start, end) = self.lines[port].send(now, wire_bits(frame.len()), GAP_BITS);
        self.rings[port].leave(end);
        self.board.sent(start, end, port, &frame);
        self.board.deliver(end + self.delay, 1 - port, frame);
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.board.poll_output()
    }

    fn lookahead(&self, from: usize, to: usize) -> Span {
        if from == to {
            return Span::MAX;
        }
        Span::of_bits_floor(MIN_WIRE_BITS, self.rate_bps) + self.delay
    }

    fn earliest_delivery(&self, _port: usize) -> Option<Time> {
        None
    }

    fn earliest_tx_done(&self, _port: usize) -> Option<Time> {
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
