// SPDX-License-Identifier: Apache-2.0
//! A transmitter at a fixed rate.

use crate::time::PS_PER_S;
use crate::{Span, Time};

/// A transmitter that sends one frame after the other at a fixed rate, with the gap between them.
///
/// Times are rounded up to a picosecond where they are read; the rest is carried, so that a train of
/// frames at 155.52 Mbit/s does not drift.
#[derive(Clone, Debug)]
pub struct Line {
    rate_bps: u64,
    free: Time,
    /// What `free` lacks to the exact instant, in picoseconds / `rate_bps`.
    fraction: u64,
}

impl Line {
    /// An idle line. `rate_bps` is not 0.
    pub fn new(rate_bps: u64) -> Self {
        Self { rate_bps, free: Time::ZERO, fraction: 0 }
    }

    /// A line that falls free at `free`.
    pub fn free_from(rate_bps: u64, free: Time) -> Self {
        Self { rate_bps, free, fraction: 0 }
    }

    /// The exact instant at which the line falls free, rounded up.
    pub fn free(&self) -> Time {
        self.free + Span::from_ps(u64::from(self.fraction > 0))
    }

    /// When what is sent at `now` begins.
    pub fn begin(&self, now: Time) -> Time {
        self.free().max(now)
    }

    /// Sends `bits` at `now` or as soon as the line is free; the line stays taken for `gap_bits` more.
    /// Start of the first and end of the last bit.
    pub fn send(&mut self, now: Time, bits: u64, gap_bits: u64) -> (Time, Time) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
