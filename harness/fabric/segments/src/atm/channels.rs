// SPDX-License-Identifier: Apache-2.0
//! The virtual channels of a switch: a fixed table, and the state of each.

use std::collections::{BTreeMap, VecDeque};

use sundial_core::{ChannelCounters, Rule};

use super::gcra::Gcra;
use super::reassembly::Reassembly;
use super::units::Units;

/// A virtual channel from one station to one or more.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) from: usize,
    /// On the line of the sender.
    pub(super) vci: u16,
    /// Its ends, as indices of [`Channels::leaves`].
    pub(super) leaves: Vec<usize>,
    pub(super) gcra: Option<Gcra>,
    /// The adapter's spacing lets the next cell go then.
    pub(super) next_cell: Units,
    pub(super) cells_in: u64,
    pub(super) cells_out: u64,
    pub(super) dropped: BTreeMap<Rule, u64>,
}

/// One end of a channel: its state at the output queue and in the receiving adapter.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) channel: usize,
    pub(super) to: usize,
    /// On the line of the receiver.
    pub(super) vci: u16,
    pub(super) discarding: Discarding,
    /// The cell before was not the last of its PDU.
    pub(super) inside_pdu: bool,
    /// When its cells in the queue are sent, if they are counted.
    pub(super) starts: VecDeque<Units>,
    pub(super) reassembly: Reassembly,
}

/// What the output queue does with the rest of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discarding {
    Nothing,
    /// All of it.
    Early,
    /// All but the last cell.
    Partial,
}

/// VCI at the sender and, where one VCI stands for several channels, receiver.
type Number = (u16, Option<usize>);

/// All channels of a switch.
#[derive(Debug, Default)]
pub(super) struct Channels {
    pub(super) all: Vec<Channel>,
    pub(super) leaves: Vec<Leaf>,
    /// Of each sender, in order: VCI and, where one number stands for several channels, receiver; the channel.
    numbers: Vec<Vec<(Number, usize)>>,
}

impl Channels {
    /// Adds the channel `vci` of station `from` to each of `ends`: station and VCI there.
    pub(super) fn open(&mut self, from: usize, vci: u16, ends: &[(usize, u16)]) {
        self.insert(from, (vci, None), ends);
    }

    /// The same for one of several channels of `from` that have the same number.
    pub(super) fn open_one_of(&mut self, from: usize, vci: u16, end: (usize, u16)) {
        self.insert(from, (vci, Some(end.0)), &[end]);
    }

    fn insert(&mut self, from: usize, number: Number, ends: &[(usize, u16)]) {
        let channel = self.all.len();
        let first_leaf = self.leaves.len();
        self.leaves.extend(ends.iter().map(|&(to, vci)| Leaf {
            channel,
            to,
            vci,
            discarding: Discarding::Nothing,
            inside_pdu: false,
            starts: VecDeque::new(),
            reassembly: Reassembly::default(),
        }));
        self.all.push(Channel {
            from,
            vci: number.0,
            leaves: (first_leaf..self.leaves.len()).collect(),
            gcra: None,
            next_cell: 0,
            cells_in: 0,
            cells_out: 0,
            dropped: BTreeMap::new(),
        });
        if self.numbers.len() <= from {
            self.numbers.resize(from + 1, Vec::new());
        }
        let place = self.place(from, number).expect_err("a VCI is used once");
        self.numbers[from].insert(place, (number, channel));
    }

    /// The channel `vci` of station `from`; `to` tells those apart that have the same number.
    pub(super) fn find(&self, from: usize, vci: u16, to: Option<usize>) -> usize {
        let place = self.place(from, (vci, to));
        self.numbers[from][place.expect("stations send on channels that are in the table")].1
    }

    fn place(&self, from: usize, number: Number) -> Result<usize, usize> {
        self.numbers[from].binary_search_by_key(&number, |&(number, _)| number)
    }

    /// By `NAME VPI.VCI`, those that carried something.
    pub(super) fn counters(
        &self,
        name: impl Fn(usize) -> String,
    ) -> BTreeMap<String, ChannelCounters> {
        let mut counters: BTreeMap<String, ChannelCounters> = BTreeMap::new();
        for channel in self.all.iter().filter(|channel| channel.cells_in > 0) {
            let key = format!("{} 0.{}", name(channel.from), channel.vci);
            let sum = counters.entry(key).or_default();
            sum.cells_in += channel.cells_in;
            sum.cells_out += channel.cells_out;
            for (rule, cells) in &channel.dropped {
                *sum.dropped.entry(rule.name()).or_insert(0) += cells;
            }
        }
        counters
    }
}
