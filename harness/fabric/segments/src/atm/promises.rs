// SPDX-License-Identifier: Apache-2.0
//! How early what is undecided can come to an end.
//!
//! A PDU arrives no sooner than if its last cell found the queue empty, and cells that the adapter has not sent
//! yet leave no closer together than its line and its spacing allow.

use super::network::Network;
use super::units::Units;

impl Network {
    /// When the next end of a PDU can be decided at the output or in the adapter of a station.
    pub(super) fn decision_of(&self, station: usize) -> Option<Units> {
        let station = &self.stations()[station];
        let joinings = station.output.next_frame().into_iter().chain(station.output.next_other());
        // One unit more, for a lower input goes first at the same instant.
        let ends = joinings.map(|joining| (joining + 1).saturating_sub(self.least_joining()));
        let starts = station.uplink.earliest_last_cells(&self.channels).map(|(_, start)| start);
        ends.chain(starts.map(|start| (start + 1).saturating_sub(station.tx_latency))).min()
    }

    /// No undecided PDU with a frame has arrived at `to` in full before.
    pub(super) fn earliest_frame(&self, to: usize) -> Option<Units> {
        self.earliest(to, self.stations()[to].output.next_frame())
    }

    /// The same for PDUs without.
    pub(super) fn earliest_other(&self, to: usize) -> Option<Units> {
        self.earliest(to, self.stations()[to].output.next_other())
    }

    fn earliest(&self, to: usize, joining: Option<Units>) -> Option<Units> {
        let waiting = self.stations().iter().flat_map(|station| {
            let starts = station.uplink.earliest_last_cells(&self.channels);
            let way = station.uplink.cell + station.propagation + self.cell_latency();
            let leads_there = |&(channel, _): &(usize, Units)| {
                let mut leaves = self.channels.all[channel].leaves.iter();
                leaves.any(|&leaf| self.channels.leaves[leaf].to == to)
            };
            starts.filter(leads_there).map(move |(_, start)| start + way)
        });
        let station = &self.stations()[to];
        let joining = waiting.chain(joining).min()?;
        Some(joining + station.uplink.cell + station.propagation)
    }

    /// No undecided PDU has left the adapter of `from` in full before.
    pub(super) fn earliest_sent(&self, from: usize) -> Option<Units> {
        let uplink = &self.stations()[from].uplink;
        let starts = uplink.earliest_last_cells(&self.channels).map(|(_, start)| start);
        starts.min().map(|start| start + uplink.cell)
    }

    /// A PDU of at least `cells` cells takes at least so long from `from` to `to`, without the latencies of the
    /// adapters.
    pub(super) fn least_way(&self, from: usize, to: usize, cells: u64) -> Units {
        let [sender, receiver] = [from, to].map(|station| &self.stations()[station]);
        let (first, second) = (sender.uplink.cell, receiver.uplink.cell);
        let lines = (cells * first + second).max(first + cells * second);
        lines + sender.propagation + self.cell_latency() + receiver.propagation
    }

    /// The first and the last cell of a PDU of `cells` cells leave any adapter at most so far apart, and it is
    /// decided what becomes of the first at most so long after it was.
    pub(super) fn longest_decision(&self, cells: u64) -> Units {
        let spans = self.stations().iter().enumerate().map(|(number, station)| {
            let channels = self.channels.all.iter().filter(|channel| channel.from == number);
            cells * station.uplink.longest_spacing(channels.count() as u64)
        });
        spans.max().expect("there are stations") + self.most_cell_latency()
    }
}
