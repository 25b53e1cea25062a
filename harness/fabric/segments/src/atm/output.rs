// SPDX-License-Identifier: Apache-2.0
//! An output of the switch: a queue of cells, what it discards, and the line behind it.
//!
//! Cells join in order of (instant, input). Each is looked at in this order: the rest of a PDU that is being
//! discarded; a PDU that begins while too much waits (early packet discard); cell loss priority; the VC's
//! places; the queue's places (TM 4.0; Romanow and Floyd 1995). As the line is never idle while a cell waits,
//! the instant at which it falls free tells how many do, and a run of cells is decided by arithmetic.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use sundial_core::Rule;

use super::channels::{Channel, Channels, Discarding, Leaf};
use super::faults::{Faults, Verdict};
use super::loss::Side;
use super::parameters::{Discard, QueueParameters};
use super::passage::{Passage, Passages};
use super::train::Run;
use super::units::Units;

/// One output.
#[derive(Debug)]
pub(super) struct Output {
    policy: QueueParameters,
    /// How long the line takes for a cell.
    cell: Units,
    /// When the line has sent all that is decided.
    free: Units,
    /// On the line.
    faults: Option<Faults>,
    /// Cells that have not joined yet.
    pieces: BinaryHeap<Piece>,
    /// By the instant at which their last cells join: PDUs with frames for the machine at this port, ...
    frames: BinaryHeap<Reverse<Units>>,
    /// ... and all others.
    others: BinaryHeap<Reverse<Units>>,
    pub(super) cells_corrected: u64,
}

/// Neighbouring cells of a PDU that are to join, the first at `run.at`.
#[derive(Debug)]
struct Piece {
    run: Run,
    input: usize,
    passage: usize,
}

impl Piece {
    /// Lower inputs go first at one instant.
    fn turn(&self) -> (Units, usize) {
        (self.run.at, self.input)
    }
}

/// The greatest is the one whose turn it is.
impl Ord for Piece {
    fn cmp(&self, other: &Self) -> Ordering {
        other.turn().cmp(&self.turn())
    }
}

impl PartialOrd for Piece {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Piece {
    fn eq(&self, other: &Self) -> bool {
        self.turn() == other.turn()
    }
}

impl Eq for Piece {}

impl Output {
    pub(super) fn new(policy: QueueParameters, cell: Units, faults: Option<Faults>) -> Self {
        Self {
            policy,
            cell,
            free: 0,
            faults,
            pieces: BinaryHeap::new(),
            frames: BinaryHeap::new(),
            others: BinaryHeap::new(),
            cells_corrected: 0,
        }
    }

    /// Cells of `passage` from station `input` that will join at the instants of `run`.
    pub(super) fn expect(&mut self, input: usize, passage: usize, run: Run) {
        self.pieces.push(Piece { run, input, passage });
    }

    /// The last cell of a PDU that still comes will join at `joining`.
    pub(super) fn expect_end(&mut self, joining: Units, carries_frame: bool) {
        let ends = if carries_frame { &mut self.frames } else { &mut self.others };
        ends.push(Reverse(joining));
    }

    /// When the first undecided PDU with a frame for the machine at this port joins to its end.
    pub(super) fn next_frame(&self) -> Option<Units> {
        self.frames.peek().map(|&Reverse(joining)| joining)
    }

    /// The same for PDUs without.
    pub(super) fn next_other(&self) -> Option<Units> {
        self.others.peek().map(|&Reverse(joining)| joining)
    }

    /// Decides on all cells that join up to `horizon`. Appends the passages that are over.
    pub(super) fn advance(
        &mut self,
        horizon: Units,
        passages: &mut Passages,
        channels: &mut Channels,
        over: &mut Vec<usize>,
    ) {
        for ends in [&mut self.frames, &mut self.others] {
            while ends.peek().is_some_and(|&Reverse(joining)| joining <= horizon) {
                ends.pop();
            }
        }
        let Some(mut piece) = self.pop_due(horizon) else { return };
        loop {
            // The cells before the turn of the next piece, which may be none of this one's but the first.
            let limit = match self.pieces.peek() {
                Some(next) => next.run.at.saturating_sub(u64::from(next.input < piece.input)),
                None => horizon,
            };
            let count = piece.run.count_until(limit.min(horizon)).max(1);
            let passage = passages.get_mut(piece.passage);
            let leaf = &mut channels.leaves[passage.leaf];
            self.join(piece.run.first(count), passage, &mut channels.all[leaf.channel], leaf);
            passage.coming -= count;
            if passage.is_over() {
                over.push(piece.passage);
            }
            if count < piece.run.count {
                piece.run = piece.run.without_first(count);
                match self.pieces.peek_mut() {
                    Some(mut next) if *next > piece => std::mem::swap(&mut piece, &mut next),
                    _ => {}
                }
                if piece.run.at <= horizon {
                    continue;
                }
                self.pieces.push(piece);
                return;
            }
            match self.pop_due(horizon) {
                Some(next) => piece = next,
                None => return,
            }
        }
    }

    fn pop_due(&mut self, horizon: Units) -> Option<Piece> {
        let first = self.pieces.peek_mut()?;
        (first.run.at <= horizon).then(|| PeekMut::pop(first))
    }

    /// Cells that wait at `at` or later, before what joins then.
    fn waiting(&self, at: Units) -> u64 {
        // The starts of those that wait are the last ones before the line falls free, a cell time apart.
        if self.free > at { (self.free - at - 1) / self.cell } else { 0 }
    }

    /// `run` joins, and nothing else meanwhile.
    fn join(
        &mut self,
        mut run: Run,
        passage: &mut Passage,
        channel: &mut Channel,
        leaf: &mut Leaf,
    ) {
        loop {
            let sure = self.sure(&run, passage, leaf);
            if sure > 0 {
                self.send(run.first(sure), passage, leaf);
                channel.cells_out += u64::from(sure);
                leaf.inside_pdu = run.index + sure < passage.pdu.cells;
            } else if let Some(rule) = self.discards(&run, passage, leaf) {
                *channel.dropped.entry(rule).or_insert(0) += 1;
                passage.lose(1, rule, Side::Towards, run.at);
            } else {
                self.send(run.first(1), passage, leaf);
                channel.cells_out += 1;
            }
            let decided = sure.max(1);
            if decided == run.count {
                return;
            }
            run = run.without_first(decided);
        }
    }

    /// How many cells of `run` find a place for certain.
    fn sure(&self, run: &Run, passage: &Passage, leaf: &Leaf) -> u32 {
        if run.count == 1
            || !leaf.inside_pdu
            || leaf.discarding != Discarding::Nothing
            || self.policy.vc_cells.is_some()
        {
            return 0;
        }
        debug_assert!(run.end_index() <= passage.pdu.cells);
        let low_priority = if run.tagged { self.policy.clp1_above } else { None };
        let places = low_priority.map_or(self.policy.cells, |above| above.min(self.policy.cells));
        if self.waiting(run.at) >= places {
            return 0;
        }
        if run.spacing >= self.cell {
            // What waits does not grow.
            return run.count;
        }
        // Cell k finds less than `places` waiting as long as k * gained < room.
        let busy_until = self.free.max(run.at);
        let gained = self.cell - run.spacing;
        let room = (places * self.cell + 1).saturating_sub(busy_until - run.at);
        u32::try_from(room.div_ceil(gained)).map_or(run.count, |sure| run.count.min(sure))
    }

    /// Why the first cell of `run` is discarded, if it is.
    fn discards(&self, run: &Run, passage: &Passage, leaf: &mut Leaf) -> Option<Rule> {
        let begins = !leaf.inside_pdu;
        let ends = run.index + 1 == passage.pdu.cells;
        leaf.inside_pdu = !ends;
        if begins {
            leaf.discarding = Discarding::Nothing;
        }
        match leaf.discarding {
            Discarding::Early => return Some(Rule::EarlyPacketDiscard),
            Discarding::Partial if !ends => return Some(Rule::PartialPacketDiscard),
            Discarding::Partial | Discarding::Nothing => {}
        }
        let waiting = self.waiting(run.at);
        if let Discard::Early { above } = self.policy.discard
            && begins
            && waiting >= above
        {
            leaf.discarding = Discarding::Early;
            return Some(Rule::EarlyPacketDiscard);
        }
        let rule = if run.tagged && self.policy.clp1_above.is_some_and(|above| waiting >= above) {
            Rule::LowPriority
        } else if self.policy.vc_cells.is_some_and(|places| waiting_of(leaf, run.at) >= places) {
            Rule::VcFull
        } else if waiting >= self.policy.cells {
            Rule::QueueFull
        } else {
            return None;
        };
        if self.policy.discard != Discard::Tail {
            leaf.discarding = Discarding::Partial;
        }
        Some(rule)
    }

    /// `run` joins and finds room.
    fn send(&mut self, run: Run, passage: &mut Passage, leaf: &mut Leaf) {
        let busy_until = self.free.max(run.at);
        // As long as the line is behind, cells leave back to back; then each as it joins.
        let behind = match run.spacing.checked_sub(self.cell) {
            None | Some(0) => run.count,
            Some(lost) => {
                let behind = (busy_until - run.at).div_ceil(lost).max(1);
                u32::try_from(behind).map_or(run.count, |behind| run.count.min(behind))
            }
        };
        let backlog = Run { at: busy_until, spacing: self.cell, ..run.first(behind) };
        self.leave(backlog, passage, leaf);
        self.free = backlog.last() + self.cell;
        if behind < run.count {
            let rest = run.without_first(behind);
            self.free = rest.last() + self.cell;
            self.leave(rest, passage, leaf);
        }
    }

    /// The first bits of `run` are on the line at its instants.
    fn leave(&mut self, run: Run, passage: &mut Passage, leaf: &mut Leaf) {
        if self.policy.vc_cells.is_some() {
            leaf.starts.extend(run.cells().map(|cell| cell.at));
        }
        let Some(faults) = &mut self.faults else {
            passage.arriving.push(run);
            return;
        };
        for cell in run.cells() {
            match faults.strike() {
                Verdict::Lost(rule) => passage.lose(1, rule, Side::Towards, cell.at),
                Verdict::Passed { corrected, flipped } => {
                    self.cells_corrected += u64::from(corrected);
                    passage.flips.extend(flipped.map(|bit| (cell.index, bit)));
                    passage.arriving.push(cell);
                }
            }
        }
    }
}

/// Cells of one VC that wait at `at`.
fn waiting_of(leaf: &mut Leaf, at: Units) -> u64 {
    while leaf.starts.front().is_some_and(|&start| start <= at) {
        leaf.starts.pop_front();
    }
    leaf.starts.len() as u64
}
