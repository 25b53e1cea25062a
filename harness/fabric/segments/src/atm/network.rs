// SPDX-License-Identifier: Apache-2.0
//! Cells on their way: from the sending adapter over its line, through the switch, over the line to the
//! receiving adapter, where they become a PDU again.
//!
//! No cell is an event. A PDU leaves its adapter as a run of cells; what polices or damages single cells cuts
//! runs into pieces; outputs decide on whole runs where nothing else joins, and cell by cell where runs meet.
//! As nothing that is handed in from now on can join a queue before the least way there is over, all that joins
//! sooner can be decided now.

use std::collections::VecDeque;
use std::sync::Arc;

use sundial_core::Rule;

use super::channels::Channels;
use super::crossing::{Crossed, Crossing};
use super::loss::{Loss, Side};
use super::output::Output;
use super::passage::{Passage, Passages};
use super::pdu::Pdu;
use super::reassembly::{Fragment, Joined};
use super::train::Runs;
use super::units::Units;
use super::uplink::{Departure, Uplink};

/// Adapters, lines and switch. A station is a port, or the servers of LAN emulation.
#[derive(Debug)]
pub(super) struct Network {
    stations: Vec<Station>,
    pub(super) channels: Channels,
    passages: Passages,
    events: VecDeque<Event>,
    /// From a cell's last bit at the switch to its place in a queue, at least.
    cell_latency: Units,
    /// What an adapter gets from now on joins no queue sooner than this later.
    least_joining: Units,
    cdv: Units,
    /// When something more can be decided; [`Units::MAX`]: all is.
    next_decision: Units,
    /// No adapter is busy with what has been decided after this.
    latest_departure: Units,
    /// Kept to save allocations.
    over: Vec<usize>,
    crossed: Crossed,
}

/// An adapter, its line, and the switch at the other end of it.
#[derive(Debug)]
pub(super) struct Station {
    pub(super) uplink: Uplink,
    pub(super) crossing: Crossing,
    pub(super) output: Output,
    pub(super) propagation: Units,
    /// From a frame's hand-in to the adapter's having it.
    pub(super) tx_latency: Units,
    pub(super) counters: StationCounters,
}

/// What is counted at a station, beside what its parts count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StationCounters {
    pub(super) tx_cells: u64,
    pub(super) tx_pdus: u64,
    pub(super) rx_cells: u64,
    pub(super) rx_pdus: u64,
    pub(super) bad_pdus: u64,
}

/// What has been decided.
#[derive(Debug)]
pub(super) enum Event {
    /// Cells of a PDU leave its adapter.
    Left {
        pdu: Arc<Pdu>,
        /// Its first bit, if it is among them.
        start: Option<Units>,
        /// Its last bit, if it is among them.
        end: Option<Units>,
        /// First bits of all its cells, if the last is among them.
        departures: Runs,
    },
    /// What became of a PDU at one receiver.
    Settled(Settled),
}

/// What became of a PDU at one receiver.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) to: usize,
    /// On the line of the receiver.
    pub(super) vci: u16,
    /// What arrived; last bits of the cells.
    pub(super) arrived: Fragment,
    pub(super) outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The last bit of its last cell arrived at `at`, and it was good.
    Received { at: Units },
    /// All its cells arrived, the last one at `at`, and it was bad.
    Spoiled { at: Units, rule: Rule },
    /// It lost cells.
    Lost { loss: Loss, cells: u32 },
}

impl Network {
    pub(super) fn new(
        stations: Vec<Station>,
        channels: Channels,
        cell_latency: Units,
        cdv: Units,
    ) -> Self {
        let ways = stations.iter().map(|station| {
            station.tx_latency + station.uplink.cell + station.propagation + cell_latency
        });
        let least_joining = ways.min().expect("there are stations");
        Self {
            stations,
            channels,
            passages: Passages::default(),
            events: VecDeque::new(),
            cell_latency,
            least_joining,
            cdv,
            next_decision: Units::MAX,
            latest_departure: 0,
            over: Vec::new(),
            crossed: Crossed::default(),
        }
    }

    pub(super) fn stations(&self) -> &[Station] {
        &self.stations
    }

    pub(super) fn cell_latency(&self) -> Units {
        self.cell_latency
    }

    /// A cell is in its place in a queue at most so long after its last bit.
    pub(super) fn most_cell_latency(&self) -> Units {
        self.cell_latency + self.cdv
    }

    /// When something more can be decided; [`Network::advance`] does so then.
    pub(super) fn next_decision(&self) -> Option<Units> {
        (self.next_decision != Units::MAX).then_some(self.next_decision)
    }

    /// No adapter is busy with what has been decided after this.
    pub(super) fn latest_departure(&self) -> Units {
        self.latest_departure
    }

    pub(super) fn least_joining(&self) -> Units {
        self.least_joining
    }

    /// What has been decided since the last call, in order of decision.
    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The adapter of `from` gets `pdu` for `channel` at `at`, not before what it got earlier.
    pub(super) fn send(&mut self, at: Units, channel: usize, pdu: Pdu) {
        let from = pdu.from;
        let pdu = Arc::new(pdu);
        let mut passage = None;
        for &leaf in self.channels.all[channel].leaves.iter().rev() {
            passage = Some(self.passages.insert(Passage::new(pdu.clone(), leaf, passage)));
        }
        let passage = passage.expect("a channel leads somewhere");
        let uplink = &mut self.stations[from].uplink;
        if let Some(departure) = uplink.send(at, pdu, passage, channel, &mut self.channels) {
            self.depart(from, departure);
        }
        let sender = self.decision_of(from);
        self.next_decision = self.next_decision.min(sender.unwrap_or(Units::MAX));
    }

    /// Decides all that nothing handed in at `now` or later can change.
    pub(super) fn advance(&mut self, now: Units) {
        if now < self.next_decision {
            return;
        }
        for station in 0..self.stations.len() {
            let limit = now + self.stations[station].tx_latency;
            while let Some(departure) =
                self.stations[station].uplink.depart(limit, &mut self.channels)
            {
                self.depart(station, departure);
            }
        }
        let horizon = now + self.least_joining - 1;
        let mut over = std::mem::take(&mut self.over);
        for station in 0..self.stations.len() {
            let output = &mut self.stations[station].output;
            output.advance(horizon, &mut self.passages, &mut self.channels, &mut over);
            for passage in over.drain(..) {
                self.settle(passage);
            }
        }
        self.over = over;
        let next = (0..self.stations.len()).filter_map(|station| self.decision_of(station)).min();
        self.next_decision = next.unwrap_or(Units::MAX);
    }

    fn depart(&mut self, from: usize, departure: Departure) {
        let Departure { passage: first, pdu, run, whole } = departure;
        let Station { uplink, crossing, propagation, counters, .. } = &mut self.stations[from];
        counters.tx_cells += u64::from(run.count);
        let start = (run.index == 0).then_some(run.at);
        let end = whole.is_some().then(|| run.last() + uplink.cell);
        self.latest_departure = self.latest_departure.max(run.last());
        let arrival = run.later(uplink.cell + *propagation);
        let leaf = self.passages.get(first).leaf;
        let channel = &mut self.channels.all[self.channels.leaves[leaf].channel];
        crossing.cross(arrival, channel, &mut self.crossed);
        let mut next = Some(first);
        while let Some(number) = next {
            let passage = self.passages.get_mut(number);
            next = passage.sibling;
            passage.unsent -= run.count;
            for &(rule, at) in &self.crossed.losses {
                passage.lose(1, rule, Side::From, at);
            }
            passage.flips.extend(&self.crossed.flips);
            let to = self.channels.leaves[passage.leaf].to;
            for piece in self.crossed.pieces.iter() {
                passage.coming += piece.count;
                passage.last_joining = piece.last();
                self.stations[to].output.expect(from, number, piece);
            }
        }
        if start.or(end).is_some() {
            let departures = whole.unwrap_or_default();
            self.events.push_back(Event::Left { pdu, start, end, departures });
        }
        if end.is_some() {
            self.stations[from].counters.tx_pdus += 1;
            self.conclude(first);
        }
    }

    /// All cells of a PDU have left its adapter; `first` is the first of its passages.
    fn conclude(&mut self, first: usize) {
        let mut next = Some(first);
        while let Some(number) = next {
            let passage = self.passages.get(number);
            next = passage.sibling;
            if passage.is_over() {
                self.settle(number);
            } else {
                let to = self.channels.leaves[passage.leaf].to;
                let carries_frame = passage.pdu.frame().is_some();
                self.stations[to].output.expect_end(passage.last_joining, carries_frame);
                let decision = self.decision_of(to);
                self.next_decision = self.next_decision.min(decision.unwrap_or(Units::MAX));
            }
        }
    }

    /// Every cell of the passage is decided: what does its receiver make of it?
    fn settle(&mut self, number: usize) {
        let Passage { pdu, leaf, lost, first_loss, flips, arriving, .. } =
            self.passages.remove(number);
        let leaf = &mut self.channels.leaves[leaf];
        let station = &mut self.stations[leaf.to];
        let cells = arriving.later(station.uplink.cell + station.propagation);
        let last = cells.last().map(|run| run.last());
        let arrived = Fragment { pdu, cells, flips };
        let joined = leaf.reassembly.take(&arrived);
        let counters = &mut station.counters;
        counters.rx_cells += arrived.cells.count() as u64;
        counters.rx_pdus += u64::from(joined == Some(Joined::Good));
        counters.bad_pdus += u64::from(matches!(joined, Some(Joined::Bad(_))));
        let outcome = match (joined, last, first_loss) {
            (Some(Joined::Good), Some(at), _) => Outcome::Received { at },
            (_, _, Some(loss)) => Outcome::Lost { loss, cells: lost },
            (Some(Joined::Bad(rule)), Some(at), None) => Outcome::Spoiled { at, rule },
            _ => unreachable!("a PDU that lost no cell has arrived"),
        };
        let settled = Settled { to: leaf.to, vci: leaf.vci, arrived, outcome };
        self.events.push_back(Event::Settled(settled));
    }
}
