// SPDX-License-Identifier: Apache-2.0
//! What happens to cells on a line, in this order for each: loss, wrong header bits, a wrong payload bit.
//!
//! Each effect draws from a stream of its own, so that turning one on does not change what another hits.

use sundial_core::{Rule, SegmentParameters, Stream};
use sundial_wire::atm::cell::PAYLOAD_OCTETS;

use super::parameters::{Gemodel, Impairments};

/// The faults of one direction of a port's line.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    loss: Chance,
    bursts: Option<Bursts>,
    header: Chance,
    payload: Chance,
    place: Stream,
}

/// What became of a cell on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It does not come through.
    Lost(Rule),
    /// It comes through.
    Passed {
        /// The header's check put one bit right.
        corrected: bool,
        /// The payload bit that is wrong; bit 0 is the first one sent.
        flipped: Option<u16>,
    },
}

/// An event with a probability, in steps of 2^-32.
#[derive(Clone, Debug)]
struct Chance {
    /// Draws below it are hits.
    threshold: u64,
    draws: Stream,
}

impl Chance {
    fn new(probability: f64, draws: Stream) -> Self {
        Self { threshold: threshold(probability), draws }
    }

    /// Zero never happens and costs no draw.
    fn happens(&mut self) -> bool {
        self.threshold != 0 && u64::from(self.draws.draw()) < self.threshold
    }
}

/// Gilbert and Elliott's two states, as netem has them: the state moves, but the loss is that of the state before.
#[derive(Clone, Debug)]
struct Bursts {
    bad: bool,
    to_bad: u64,
    to_good: u64,
    lost_when_bad: u64,
    lost_when_good: u64,
    draws: Stream,
}

impl Bursts {
    fn new(model: &Gemodel, draws: Stream) -> Self {
        Self {
            bad: false,
            to_bad: threshold(model.p),
            to_good: threshold(model.r.unwrap_or(1.0 - model.p)),
            lost_when_bad: threshold(model.one_minus_h.unwrap_or(1.0)),
            lost_when_good: threshold(model.one_minus_k.unwrap_or(0.0)),
            draws,
        }
    }

    fn loses(&mut self) -> bool {
        let (moves, lost) = if self.bad {
            (self.to_good, self.lost_when_bad)
        } else {
            (self.to_bad, self.lost_when_good)
        };
        self.bad ^= u64::from(self.draws.draw()) < moves;
        u64::from(self.draws.draw()) < lost
    }
}

fn threshold(probability: f64) -> u64 {
    libm::rint(probability * 4_294_967_296.0) as u64
}

/// The direction of a line, which keeps the streams of a port apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    FromAdapter = 1,
    ToAdapter = 2,
}

impl Faults {
    /// The faults that `settings` ask for; `None`: none can happen.
    pub(super) fn new(
        common: &SegmentParameters,
        port: usize,
        direction: Direction,
        settings: &Impairments,
    ) -> Option<Self> {
        if *settings == Impairments::default() {
            return None;
        }
        let purpose = 0x10 * direction as u64;
        let stream = |effect| Stream::new(common.seed, &common.name, port, purpose + effect);
        Some(Self {
            loss: Chance::new(settings.cell_loss, stream(1)),
            bursts: settings.gemodel.as_ref().map(|model| Bursts::new(model, stream(2))),
            header: Chance::new(settings.header_bit, stream(3)),
            payload: Chance::new(settings.payload_bit, stream(4)),
            place: stream(5),
        })
    }

    /// What becomes of the next cell on the line.
    pub(super) fn strike(&mut self) -> Verdict {
        let lost = self.loss.happens();
        if self.bursts.as_mut().is_some_and(Bursts::loses) || lost {
            return Verdict::Lost(Rule::CellLoss);
        }
        let corrected = self.header.happens();
        if corrected && self.header.happens() {
            // Two wrong bits are more than the check can put right.
            return Verdict::Lost(Rule::HeaderError);
        }
        const PAYLOAD_BITS: u32 = 8 * PAYLOAD_OCTETS as u32;
        let flipped = self.payload.happens().then(|| self.place.below(PAYLOAD_BITS) as u16);
        Verdict::Passed { corrected, flipped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELLS: u32 = 100_000;

    fn faults(settings: &Impairments) -> Faults {
        let common = SegmentParameters::of_machines(2, 1);
        Faults::new(&common, 0, Direction::FromAdapter, settings).expect("there are faults")
    }

    fn strike_all(settings: &Impairments) -> Vec<Verdict> {
        let mut faults = faults(settings);
        (0..CELLS).map(|_| faults.strike()).collect()
    }

    fn count(verdicts: &[Verdict], hit: impl Fn(&Verdict) -> bool) -> f64 {
        verdicts.iter().filter(|verdict| hit(verdict)).count() as f64
    }

    #[test]
    fn no_settings_are_no_faults() {
        let common = SegmentParameters::of_machines(2, 1);
        let none = Impairments::default();
        assert!(Faults::new(&common, 0, Direction::ToAdapter, &none).is_none());
    }

    #[test]
    fn shares_are_as_asked_for() {
        let settings = Impairments {
            cell_loss: 0.01,
            header_bit: 0.1,
            payload_bit: 0.02,
            ..Impairments::default()
        };
        let verdicts = strike_all(&settings);
        let total = f64::from(CELLS);
        let lost = count(&verdicts, |verdict| *verdict == Verdict::Lost(Rule::CellLoss));
        let discarded = count(&verdicts, |verdict| *verdict == Verdict::Lost(Rule::HeaderError));
        let corrected =
            count(&verdicts, |verdict| matches!(verdict, Verdict::Passed { corrected: true, .. }));
        let flipped =
            count(&verdicts, |verdict| matches!(verdict, Verdict::Passed { flipped: Some(_), .. }));
        // Five standard deviations of a binomial.
        for (found, share) in [
            (lost, 0.01),
            (discarded, 0.99 * 0.01),
            (corrected, 0.99 * 0.09),
            (flipped, 0.99 * 0.99 * 0.02),
        ] {
            let deviation = libm::sqrt(total * share * (1.0 - share));
            assert!((found - total * share).abs() < 5.0 * deviation, "{found} for {share}");
        }
    }

    #[test]
    fn certain_and_bursty_losses() {
        let all = Impairments { cell_loss: 1.0, ..Impairments::default() };
        assert!(strike_all(&all).iter().all(|verdict| *verdict == Verdict::Lost(Rule::CellLoss)));
        let gemodel = Gemodel { p: 0.01, r: Some(0.25), one_minus_h: None, one_minus_k: None };
        let bursts = Impairments { gemodel: Some(gemodel), ..Impairments::default() };
        let verdicts = strike_all(&bursts);
        let lost = |verdict: &Verdict| matches!(verdict, Verdict::Lost(_));
        let starts = verdicts.windows(2).filter(|pair| !lost(&pair[0]) && lost(&pair[1])).count();
        // A burst is 1 / 0.25 cells long on average.
        let mean = count(&verdicts, lost) / starts as f64;
        assert!((3.6..4.4).contains(&mean), "{mean}");
    }
}
