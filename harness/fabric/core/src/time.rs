// SPDX-License-Identifier: Apache-2.0
//! Time inside the models: unsigned picoseconds, so that a bit of 155.52 Mbit/s does not drift.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

const PS_PER_NS: u64 = 1_000;
/// Picoseconds in a second.
pub(crate) const PS_PER_S: u64 = 1_000_000_000_000;

/// An instant: picoseconds since the zero of the run (u64 holds 213 days).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Time {
    /// The nominal start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const MAX: Self = Self(u64::MAX);

    /// From picoseconds since zero.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// From nanoseconds since zero; saturates at [`Time::MAX`].
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(PS_PER_NS))
    }

    /// Picoseconds since zero.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Nanoseconds since zero, rounded up: a frame is never earlier outside than in the model.
    pub const fn as_ns_ceil(self) -> u64 {
        self.0.div_ceil(PS_PER_NS)
    }

    /// Nanoseconds since zero, rounded down: for promises, which may be early but never late.
    pub const fn as_ns_floor(self) -> u64 {
        self.0 / PS_PER_NS
    }

    /// The span since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// This instant moved back by `span`, but not before zero.
    pub const fn back(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Never: the lookahead between ports that no frame connects.
    pub const MAX: Self = Self(u64::MAX);

    /// From picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// From nanoseconds; saturates.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(PS_PER_NS))
    }

    /// Picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Nanoseconds, rounded down: a lookahead may be promised shorter, never longer.
    pub const fn as_ns_floor(self) -> u64 {
        self.0 / PS_PER_NS
    }

    /// The time `bits` take at `rate_bps`, rounded up to a picosecond.
    pub const fn of_bits(bits: u64, rate_bps: u64) -> Self {
        let ps = (bits as u128 * PS_PER_S as u128).div_ceil(rate_bps as u128);
        Self(ps as u64)
    }

    /// The time `bits` take at `rate_bps`, rounded down to a picosecond.
    pub const fn of_bits_floor(bits: u64, rate_bps: u64) -> Self {
        Self((bits as u128 * PS_PER_S as u128 / rate_bps as u128) as u64)
    }
}

// Saturating throughout: `Time::MAX` and `Span::MAX` mean "never", and never plus something stays never.
impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Span;
    /// Stops at zero.
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, times: u64) -> Span {
        Span(self.0.saturating_mul(times))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} ns", self.0 / PS_PER_NS, self.0 % PS_PER_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_round_rates_are_exact() {
        assert_eq!(Span::of_bits(1, 10_000_000), Span::from_ns(100));
        assert_eq!(Span::of_bits(576, 10_000_000), Span::from_ns(57_600));
        assert_eq!(Span::of_bits(1, 100_000_000), Span::from_ns(10));
    }

    #[test]
    fn shells_round_stamps_up_and_promises_down() {
        assert_eq!(Time::from_ps(1_001).as_ns_ceil(), 2);
        assert_eq!(Time::from_ps(1_999).as_ns_floor(), 1);
        assert_eq!(Time::from_ps(2_000).as_ns_ceil(), 2);
    }

    #[test]
    fn never_stays_never() {
        assert_eq!(Time::from_ns(5) + Span::MAX, Time::MAX);
        assert_eq!(Span::MAX + Span::from_ns(1), Span::MAX);
    }
}
