// SPDX-License-Identifier: Apache-2.0
//! Time inside a segment of ATM: 1/117 ps, in which the cell times of OC-3c, 25.6 Mb/s and TAXI are whole.
//!
//! Nothing is rounded between the hand-in of a frame and its delivery.

use sundial_core::{Span, Time};

/// An instant or a length of time in 1/117 ps. 64 bits hold 43.797 hours, see [`LAST_HOUR`].
pub(super) type Units = u64;

const PER_PS: u64 = 117;
const NS_PER_HOUR: u64 = 3_600_000_000_000;
const PS_PER_S: u128 = 1_000_000_000_000;

/// The model is not called after so many hours, so that whatever is under way then ends within 64 bits.
pub(super) const LAST_HOUR: u64 = 38;
/// The same as an instant.
pub(super) const LAST: Time = Time::from_ns(LAST_HOUR * NS_PER_HOUR);
/// No cell may leave its adapter later.
pub(super) const LAST_DEPARTURE: Time = Time::from_ns(LAST_HOUR * NS_PER_HOUR + NS_PER_HOUR / 2);

/// The instant `time`.
pub(super) fn at(time: Time) -> Units {
    time.as_ps().checked_mul(PER_PS).expect("the model is not called later than it allows")
}

/// The length of `span`; [`Span::MAX`] stays endless.
pub(super) fn of(span: Span) -> Units {
    span.as_ps().saturating_mul(PER_PS)
}

/// The instant `units`, rounded up to whole picoseconds.
pub(super) fn time(units: Units) -> Time {
    Time::from_ps(units.div_ceil(PER_PS))
}

/// A length of time, rounded up to whole picoseconds.
pub(super) fn span(units: Units) -> Span {
    Span::from_ps(units.div_ceil(PER_PS))
}

/// How long a cell of `octets` takes at `rate_bps`, rounded up.
pub(super) fn of_cell(octets: u32, rate_bps: u64) -> Units {
    let bits = u128::from(octets) * 8;
    let units = (bits * PS_PER_S * u128::from(PER_PS)).div_ceil(u128::from(rate_bps));
    u64::try_from(units).unwrap_or(Units::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_times_of_the_named_lines_are_whole() {
        assert_eq!(of_cell(53, 149_760_000), 331_250_000);
        assert_eq!(of_cell(54, 25_600_000), 16_875_000 * 117);
        assert_eq!(of_cell(54, 100_000_000), 4_320_000 * 117);
        // 117 cells of OC-3c take 331.25 us.
        assert_eq!(time(117 * 331_250_000), Time::from_ns(331_250));
    }

    #[test]
    fn only_what_leaves_is_rounded_and_then_up() {
        assert_eq!(at(Time::from_ps(3)), 351);
        assert_eq!(time(351), Time::from_ps(3));
        assert_eq!(time(352), Time::from_ps(4));
        assert_eq!(span(1), Span::from_ps(1));
    }
}
