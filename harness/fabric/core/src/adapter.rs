// SPDX-License-Identifier: Apache-2.0
//! What all Ethernet adapters have in common: how long a frame takes, the line it is sent on, the
//! transmit ring (IEEE 802.3 clauses 3 and 4).

use std::collections::VecDeque;

use crate::time::PS_PER_S;
use crate::{Frame, Output, PortCounters, Span, Time};

/// Shorter than an Ethernet header: no frame.
pub const MIN_FRAME_BYTES: usize = 14;
/// The longest frame the fabric carries.
pub const MAX_FRAME_BYTES: usize = 9216;

/// Preamble and start frame delimiter (802.3 clause 3.2.1, 3.2.2).
pub(crate) const PREAMBLE_BITS: u64 = 64;
/// `interPacketGap`, clause 4.4.2.
pub(crate) const GAP_BITS: u64 = 96;
const FCS_BYTES: u64 = 4;
/// `minFrameSize` is 512 bits (clause 4.4.2): 60 octets and the FCS.
const PADDED_BYTES: u64 = 60;
/// Bits of the smallest transmission.
pub(crate) const MIN_WIRE_BITS: u64 = PREAMBLE_BITS + 8 * (PADDED_BYTES + FCS_BYTES);

/// Bits on the wire for a frame of `bytes` (header and payload): preamble, padding and FCS included,
/// the gap after it not.
pub const fn wire_bits(bytes: usize) -> u64 {
    let padded = if (bytes as u64) < PADDED_BYTES { PADDED_BYTES } else { bytes as u64 };
    PREAMBLE_BITS + 8 * (padded + FCS_BYTES)
}

/// What every kind of segment is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentParameters {
    /// Seeds the segment's random streams, together with the run's seed.
    pub name: String,
    /// The run's seed.
    pub seed: u64,
    /// `MACHINE:INTERFACE` of each port, for comments.
    pub ports: Vec<String>,
    /// Longer frames are refused. At most [`MAX_FRAME_BYTES`].
    pub max_frame_bytes: usize,
    /// Places in each adapter's transmit ring.
    pub ring_frames: usize,
}

/// A transmitter that sends one frame after the other at a fixed rate, with the gap between them.
///
/// Times are rounded up to a picosecond where they are read; the rest is carried, so that a train of
/// frames at 155.52 Mbit/s does not drift.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    rate_bps: u64,
    free: Time,
    /// What `free` lacks to the exact instant, in picoseconds / `rate_bps`.
    fraction: u64,
}

impl Line {
    pub(crate) fn new(rate_bps: u64) -> Self {
        Self { rate_bps, free: Time::ZERO, fraction: 0 }
    }

    /// The exact instant at which the line falls free, rounded up.
    pub(crate) fn free(&self) -> Time {
        self.free + Span::from_ps(u64::from(self.fraction > 0))
    }

    /// Sends `bits` at `now` or as soon as the line is free; the line stays taken for `gap_bits` more.
    /// Start of the first and end of the last bit.
    pub(crate) fn send(&mut self, now: Time, bits: u64, gap_bits: u64) -> (Time, Time) {
        if now >= self.free() {
            self.free = now;
            self.fraction = 0;
        }
        let start = self.free();
        self.advance(bits);
        let end = self.free();
        self.advance(gap_bits);
        (start, end)
    }

    fn advance(&mut self, bits: u64) {
        let total = u128::from(bits) * u128::from(PS_PER_S) + u128::from(self.fraction);
        let rate = u128::from(self.rate_bps);
        self.free += Span::from_ps((total / rate) as u64);
        self.fraction = (total % rate) as u64;
    }
}

/// The transmit ring of one adapter: how many frames are in it at an instant.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    places: usize,
    /// Frames handed in whose end is not known yet.
    open: usize,
    /// Ends that are known, in order.
    ends: VecDeque<Time>,
}

impl Ring {
    pub(crate) fn new(places: usize) -> Self {
        Self { places, open: 0, ends: VecDeque::new() }
    }

    /// Takes a place at `now` if there is one.
    pub(crate) fn enter(&mut self, now: Time) -> bool {
        while self.ends.front().is_some_and(|&end| end <= now) {
            self.ends.pop_front();
        }
        if self.open + self.ends.len() >= self.places {
            return false;
        }
        self.open += 1;
        true
    }

    /// One frame that entered leaves at `end`.
    pub(crate) fn leave(&mut self, end: Time) {
        self.open = self.open.checked_sub(1).expect("only a frame that entered leaves");
        self.ends.push_back(end);
    }
}

/// Looks at a frame as an adapter does before taking it: refused with a reason, or fit to be sent.
pub(crate) fn refusal(frame: &Frame, max_frame_bytes: usize) -> Option<(&'static str, String)> {
    if frame.len() < MIN_FRAME_BYTES {
        let text = format!("dropped: {} bytes are no Ethernet frame", frame.len());
        return Some(("too short", text));
    }
    if frame.len() > max_frame_bytes {
        let text = format!("dropped: {} bytes, longest is {max_frame_bytes}", frame.len());
        return Some(("too long", text));
    }
    None
}

/// Outputs and counters of a segment: what every model writes to.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) counters: Vec<PortCounters>,
    names: Vec<String>,
}

impl Board {
    pub(crate) fn new(parameters: &SegmentParameters) -> Self {
        Self {
            outputs: VecDeque::new(),
            counters: vec![PortCounters::default(); parameters.ports.len()],
            names: parameters.ports.clone(),
        }
    }

    pub(crate) fn name(&self, port: usize) -> &str {
        &self.names[port]
    }

    /// The frame arrives at `port`, and the capture says so.
    pub(crate) fn deliver(&mut self, due: Time, port: usize, frame: Frame) {
        let counters = &mut self.counters[port];
        counters.rx_frames += 1;
        counters.rx_bytes += frame.len() as u64;
        self.record(due, port, crate::Direction::Inbound, frame.clone());
        self.outputs.push_back(Output::Deliver { due, port, frame });
    }

    /// The adapter of `port` sent the frame in full: its first bit at `start`, its last at `end`.
    pub(crate) fn sent(&mut self, start: Time, end: Time, port: usize, frame: &Frame) {
        let counters = &mut self.counters[port];
        counters.tx_frames += 1;
        counters.tx_bytes += frame.len() as u64;
        self.record(start, port, crate::Direction::Outbound, frame.clone());
        self.tx_done(end, port);
    }

    pub(crate) fn tx_done(&mut self, due: Time, port: usize) {
        self.outputs.push_back(Output::TxDone { due, port });
    }

    /// A line on the fate interface.
    pub(crate) fn fate(&mut self, at: Time, frame: Frame, comment: String) {
        self.outputs.push_back(Output::Record {
            at,
            interface: self.counters.len(),
            direction: crate::Direction::Unknown,
            frame,
            comment: Some(comment),
        });
    }

    fn record(&mut self, at: Time, port: usize, direction: crate::Direction, frame: Frame) {
        self.outputs.push_back(Output::Record {
            at,
            interface: port,
            direction,
            frame,
            comment: None,
        });
    }

    /// Counts a frame handed in at `now` and takes it into the ring. `false`: it was refused or the
    /// ring was full, which is recorded, and its `TxDone` has been said.
    pub(crate) fn admit(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        max_frame_bytes: usize,
        ring: &mut Ring,
    ) -> bool {
        self.counters[port].offered_frames += 1;
        let (reason, comment) = match refusal(frame, max_frame_bytes) {
            Some(refused) => refused,
            None if ring.enter(now) => return true,
            None => {
                self.counters[port].adapter_full += 1;
                ("adapter full", String::from("dropped: transmit ring full"))
            }
        };
        self.counters[port].count_drop(reason);
        let comment = format!("{comment} ({})", self.name(port));
        self.fate(now, frame.clone(), comment);
        self.tx_done(now, port);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_bits_follow_802_3() {
        // 8 preamble + 60 padded + 4 FCS = 72 bytes; 8 + 1514 + 4 = 1526 bytes.
        assert_eq!(wire_bits(14), 576);
        assert_eq!(wire_bits(60), 576);
        assert_eq!(wire_bits(61), 584);
        assert_eq!(wire_bits(1514), 12_208);
    }

    #[test]
    fn a_train_at_a_fractional_rate_does_not_drift() {
        // 155.52 Mbit/s: 9.72e6 bits take 62.5 ms exactly, however they are cut.
        let mut line = Line::new(155_520_000);
        let mut end = Time::ZERO;
        for _ in 0..9_720_000 / 8 {
            (_, end) = line.send(Time::ZERO, 8, 0);
        }
        assert_eq!(end, Time::from_ns(62_500_000));
    }

    #[test]
    fn the_gap_separates_frames_and_an_idle_line_starts_at_once() {
        let mut line = Line::new(10_000_000);
        assert_eq!(line.send(Time::ZERO, 576, 96), (Time::ZERO, Time::from_ns(57_600)));
        let second = line.send(Time::from_ns(10), 576, 96);
        assert_eq!(second, (Time::from_ns(67_200), Time::from_ns(124_800)));
        let third = line.send(Time::from_ns(1_000_000), 576, 96).0;
        assert_eq!(third, Time::from_ns(1_000_000));
    }

    #[test]
    fn a_place_in_the_ring_falls_free_at_the_end() {
        let mut ring = Ring::new(1);
        assert!(ring.enter(Time::ZERO));
        ring.leave(Time::from_ns(5));
        assert!(!ring.enter(Time::from_ns(4)));
        assert!(ring.enter(Time::from_ns(5)));
    }
}
