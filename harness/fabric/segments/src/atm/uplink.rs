// SPDX-License-Identifier: Apache-2.0
//! The line from an adapter to the switch, and the order in which the adapter sends cells: PDU after PDU, or
//! a cell of each virtual channel in turn.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use super::channels::Channels;
use super::parameters::Interleave;
use super::pdu::Pdu;
use super::train::{Run, Runs};
use super::units::Units;

/// A sending adapter and its line.
#[derive(Debug)]
pub(super) struct Uplink {
    /// How long the line takes for a cell.
    pub(super) cell: Units,
    /// From one cell of a VC to the next.
    spacing: Units,
    /// When the line has sent all that is decided.
    free: Units,
    turns: Option<Turns>,
}

/// A PDU in the adapter: the first of its passages tells them all.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) pdu: Arc<Pdu>,
    pub(super) passage: usize,
    /// The adapter has it from then on.
    ready: Units,
    /// First bits of the cells that have left.
    pub(super) departures: Runs,
    sent: u32,
}

/// Cells of one PDU leave the adapter.
#[derive(Debug)]
pub(super) struct Departure {
    pub(super) passage: usize,
    pub(super) pdu: Arc<Pdu>,
    pub(super) run: Run,
    /// All cells of the PDU, if these are its last ones.
    pub(super) whole: Option<Runs>,
}

/// Round robin over the virtual channels that have something to send.
#[derive(Debug, Default)]
struct Turns {
    /// By channel; none is empty.
    queues: BTreeMap<usize, VecDeque<Waiting>>,
    /// The channel that sent last.
    last: Option<usize>,
}

impl Uplink {
    pub(super) fn new(cell: Units, shaping: Option<Units>, interleave: Interleave) -> Self {
        let turns = (interleave == Interleave::Cells).then(Turns::default);
        Self { cell, spacing: cell.max(shaping.unwrap_or(0)), free: 0, turns }
    }

    /// From one cell of a PDU to the next at most, if `channels` channels have something to send.
    pub(super) fn longest_spacing(&self, channels: u64) -> Units {
        match self.turns {
            None => self.spacing,
            Some(_) => self.spacing + channels * self.cell,
        }
    }

    /// The adapter has `pdu` for `channel` at `at`, not before what it had earlier. The departure of all its cells,
    /// unless cells of other PDUs may come between them.
    pub(super) fn send(
        &mut self,
        at: Units,
        pdu: Arc<Pdu>,
        passage: usize,
        channel: usize,
        channels: &mut Channels,
    ) -> Option<Departure> {
        let mut waiting = Waiting { pdu, passage, ready: at, departures: Runs::default(), sent: 0 };
        match &mut self.turns {
            None => {
                let next_cell = &mut channels.all[channel].next_cell;
                let start = at.max(self.free).max(*next_cell);
                let cells = waiting.pdu.cells;
                let (run, whole) = self.depart_at(start, cells, &mut waiting, next_cell);
                Some(Departure { passage, pdu: waiting.pdu, run, whole })
            }
            Some(turns) => {
                turns.queues.entry(channel).or_default().push_back(waiting);
                None
            }
        }
    }

    /// The next cells that leave before `limit`, from when on another PDU may come between.
    pub(super) fn depart(&mut self, limit: Units, channels: &mut Channels) -> Option<Departure> {
        let (start, channel) = self.turns.as_ref()?.next(self.free, channels)?;
        if start >= limit {
            return None;
        }
        let mut turns = self.turns.take().expect("they were read above");
        let alone = turns.queues.len() == 1;
        let queue = turns.queues.get_mut(&channel).expect("it is its turn");
        let waiting = queue.front_mut().expect("no queue is empty");
        let left = waiting.pdu.cells - waiting.sent;
        let count = if alone {
            let more = (limit - 1 - start) / self.spacing;
            u32::try_from(more).map_or(left, |more| left.min(more.saturating_add(1)))
        } else {
            1
        };
        let next_cell = &mut channels.all[channel].next_cell;
        let (run, whole) = self.depart_at(start, count, waiting, next_cell);
        let departure =
            Departure { passage: waiting.passage, pdu: waiting.pdu.clone(), run, whole };
        if departure.whole.is_some() {
            queue.pop_front();
            if queue.is_empty() {
                turns.queues.remove(&channel);
            }
        }
        turns.last = Some(channel);
        self.turns = Some(turns);
        Some(departure)
    }

    /// The next `count` cells of `waiting` leave from `start` on; all its cells, if these are the last ones.
    fn depart_at(
        &mut self,
        start: Units,
        count: u32,
        waiting: &mut Waiting,
        next_cell: &mut Units,
    ) -> (Run, Option<Runs>) {
        let run =
            Run { index: waiting.sent, count, at: start, spacing: self.spacing, tagged: false };
        self.free = run.last() + self.cell;
        *next_cell = run.last() + self.spacing;
        waiting.sent += count;
        waiting.departures.push(run);
        let is_whole = waiting.sent == waiting.pdu.cells;
        (run, is_whole.then(|| std::mem::take(&mut waiting.departures)))
    }

    /// By channel that has something to send: no PDU of it starts its last cell sooner.
    pub(super) fn earliest_last_cells(
        &self,
        channels: &Channels,
    ) -> impl Iterator<Item = (usize, Units)> {
        let free = self.free;
        let queues = self.turns.iter().flat_map(|turns| &turns.queues);
        queues.map(move |(&channel, queue)| {
            let first = queue.front().expect("no queue is empty");
            let start = free.max(first.ready).max(channels.all[channel].next_cell);
            let left = first.pdu.cells - first.sent;
            (channel, start + u64::from(left - 1) * self.spacing)
        })
    }
}

impl Turns {
    /// Whose cell leaves next, and when.
    fn next(&self, free: Units, channels: &Channels) -> Option<(Units, usize)> {
        let ready = |(&channel, queue): (&usize, &VecDeque<Waiting>)| {
            let first = queue.front().expect("no queue is empty");
            (first.ready.max(channels.all[channel].next_cell), channel)
        };
        let earliest = self.queues.iter().map(ready).min()?.0;
        let start = free.max(earliest);
        // From the one after the last, and around.
        let after = self.queues.range((self.last.map_or(Unbounded, Excluded), Unbounded));
        let mut in_turn = after.chain(&self.queues).map(ready);
        let (_, channel) = in_turn.find(|&(at, _)| at <= start).expect("the earliest can start");
        Some((start, channel))
    }
}
