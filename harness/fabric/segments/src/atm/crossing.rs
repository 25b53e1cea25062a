// SPDX-License-Identifier: Apache-2.0
//! From an adapter's line to the output queues: faults of the line, policing, the way through the switch.

use sundial_core::{Rule, Stream};

use super::channels::Channel;
use super::faults::{Faults, Verdict};
use super::parameters::{Action, Contract};
use super::reassembly::Flips;
use super::train::{Run, Runs};
use super::units::Units;

/// The input of the switch at one station.
#[derive(Debug)]
pub(super) struct Crossing {
    /// On the line to it.
    faults: Option<Faults>,
    contract: Option<Contract>,
    /// From a cell's last bit to its place in a queue, at least.
    latency: Units,
    variation: Option<Variation>,
    pub(super) cells_corrected: u64,
    pub(super) cells_tagged: u64,
}

/// Cell delay variation: all delays up to the most alike, but no cell overtakes another of the same input.
#[derive(Debug)]
struct Variation {
    most: Units,
    draws: Stream,
    last: Units,
}

/// What has become of a run of cells.
#[derive(Debug, Default)]
pub(super) struct Crossed {
    /// When cells join the output queues.
    pub(super) pieces: Runs,
    /// One for each lost cell.
    pub(super) losses: Vec<(Rule, Units)>,
    pub(super) flips: Flips,
}

impl Crossed {
    fn clear(&mut self) {
        self.pieces.clear();
        self.losses.clear();
        self.flips.clear();
    }
}

impl Crossing {
    pub(super) fn new(
        faults: Option<Faults>,
        contract: Option<Contract>,
        latency: Units,
        cdv: Option<(Units, Stream)>,
    ) -> Self {
        let variation = cdv.map(|(most, draws)| Variation { most, draws, last: 0 });
        Self { faults, contract, latency, variation, cells_corrected: 0, cells_tagged: 0 }
    }

    /// Cells of `channel` are at the switch with their last bits at the instants of `run`.
    pub(super) fn cross(&mut self, run: Run, channel: &mut Channel, crossed: &mut Crossed) {
        crossed.clear();
        if self.faults.is_none() && self.contract.is_none() && self.variation.is_none() {
            channel.cells_in += u64::from(run.count);
            crossed.pieces.push(run.later(self.latency));
            return;
        }
        for cell in run.cells() {
            self.cross_one(cell, channel, crossed);
        }
    }

    fn cross_one(&mut self, mut cell: Run, channel: &mut Channel, crossed: &mut Crossed) {
        match self.faults.as_mut().map(Faults::strike) {
            Some(Verdict::Lost(rule)) => {
                crossed.losses.push((rule, cell.at));
                return;
            }
            Some(Verdict::Passed { corrected, flipped }) => {
                self.cells_corrected += u64::from(corrected);
                crossed.flips.extend(flipped.map(|bit| (cell.index, bit)));
            }
            None => {}
        }
        channel.cells_in += 1;
        if let Some(Contract { action, .. }) = self.contract
            && channel.gcra.as_mut().is_some_and(|gcra| !gcra.conforms(cell.at))
        {
            match action {
                Action::Tag => {
                    self.cells_tagged += 1;
                    cell.tagged = true;
                }
                Action::Drop => {
                    *channel.dropped.entry(Rule::Policed).or_insert(0) += 1;
                    crossed.losses.push((Rule::Policed, cell.at));
                    return;
                }
            }
        }
        cell.at += self.latency;
        if let Some(variation) = &mut self.variation {
            cell.at = variation.delay(cell.at);
        }
        crossed.pieces.push(cell);
    }
}

impl Variation {
    fn delay(&mut self, at: Units) -> Units {
        let draw = u128::from(self.draws.draw());
        let delay = (((u128::from(self.most) + 1) * draw) >> 32) as Units;
        // Two cells of a line never join at once.
        self.last = (at + delay).max(self.last + 1);
        self.last
    }
}
