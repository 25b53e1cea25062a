// SPDX-License-Identifier: Apache-2.0
//! Cells of a PDU that follow each other: what travels instead of cells.

use super::units::Units;

/// Neighbouring cells of one PDU at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Number of the first cell in its PDU.
    pub(super) index: u32,
    /// How many cells; at least one.
    pub(super) count: u32,
    /// Of the first cell.
    pub(super) at: Units,
    /// From one cell to the next.
    pub(super) spacing: Units,
    /// Cell loss priority 1.
    pub(super) tagged: bool,
}

impl Run {
    /// One cell.
    pub(super) fn one(index: u32, at: Units, tagged: bool) -> Self {
        Self { index, count: 1, at, spacing: 0, tagged }
    }

    /// The number after the last cell's.
    pub(super) fn end_index(&self) -> u32 {
        self.index + self.count
    }

    /// The instant of cell number `nth` of the run.
    pub(super) fn nth(&self, nth: u32) -> Units {
        self.at + u64::from(nth) * self.spacing
    }

    /// The instant of the last cell.
    pub(super) fn last(&self) -> Units {
        self.nth(self.count - 1)
    }

    /// The same cells `by` later.
    pub(super) fn later(self, by: Units) -> Self {
        Self { at: self.at + by, ..self }
    }

    /// The first `count` cells.
    pub(super) fn first(self, count: u32) -> Self {
        Self { count, ..self }
    }

    /// What is left without the first `count` cells, fewer than all.
    pub(super) fn without_first(self, count: u32) -> Self {
        Self { index: self.index + count, count: self.count - count, at: self.nth(count), ..self }
    }

    /// How many cells are not later than `limit`.
    pub(super) fn count_until(&self, limit: Units) -> u32 {
        if self.at > limit {
            0
        } else if self.count == 1 || self.spacing == 0 {
            self.count
        } else {
            let more = (limit - self.at) / self.spacing;
            u32::try_from(more).map_or(self.count, |more| self.count.min(more.saturating_add(1)))
        }
    }

    /// The cells one by one.
    pub(super) fn cells(self) -> impl Iterator<Item = Self> {
        (0..self.count).map(move |nth| Self::one(self.index + nth, self.nth(nth), self.tagged))
    }

    /// Takes `next` into the run if it goes on in the same way.
    fn extend(&mut self, next: Self) -> bool {
        if next.index != self.end_index() || next.tagged != self.tagged {
            return false;
        }
        let distance = next.at - self.last();
        let even = (self.count == 1 || self.spacing == distance)
            && (next.count == 1 || next.spacing == distance);
        if even {
            self.spacing = distance;
            self.count += next.count;
        }
        even
    }
}

/// Cells of one PDU in order, as few runs. Most often there is one, which needs no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Runs {
    first: Option<Run>,
    rest: Vec<Run>,
}

impl Runs {
    /// Appends cells behind those before.
    pub(super) fn push(&mut self, run: Run) {
        match (&mut self.first, self.rest.last_mut()) {
            (None, _) => self.first = Some(run),
            (Some(last), None) | (_, Some(last)) => {
                if !last.extend(run) {
                    self.rest.push(run);
                }
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.first = None;
        self.rest.clear();
    }

    /// The same cells `by` later.
    pub(super) fn later(mut self, by: Units) -> Self {
        for run in self.first.iter_mut().chain(&mut self.rest) {
            run.at += by;
        }
        self
    }

    /// How many cells.
    pub(super) fn count(&self) -> usize {
        self.iter().map(|run| run.count as usize).sum()
    }

    pub(super) fn first(&self) -> Option<&Run> {
        self.first.as_ref()
    }

    pub(super) fn last(&self) -> Option<&Run> {
        self.rest.last().or(self.first.as_ref())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Run> {
        self.first.iter().chain(&self.rest).copied()
    }

    /// Cell number `nth` of those that are here.
    pub(super) fn nth(&self, nth: usize) -> Run {
        let mut before = 0;
        for run in self.iter() {
            let within = (nth - before) as u32;
            if within < run.count {
                return Run::one(run.index + within, run.nth(within), run.tagged);
            }
            before += run.count as usize;
        }
        panic!("there are {before} cells, not {nth}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn even_cells_are_one_run() {
        let mut runs = Runs::default();
        runs.push(Run { index: 0, count: 3, at: 10, spacing: 5, tagged: false });
        runs.push(Run::one(3, 25, false));
        runs.push(Run { index: 4, count: 2, at: 30, spacing: 5, tagged: false });
        assert_eq!(runs.iter().count(), 1);
        runs.push(Run::one(6, 41, false));
        runs.push(Run::one(7, 52, true));
        assert_eq!(runs.iter().count(), 3);
        assert_eq!(runs.count(), 8);
    }

    #[test]
    fn a_run_is_counted_up_to_an_instant_and_cut_there() {
        let run = Run { index: 2, count: 4, at: 10, spacing: 5, tagged: true };
        assert_eq!([9, 10, 14, 15, 25, 99].map(|limit| run.count_until(limit)), [0, 1, 1, 2, 4, 4]);
        assert_eq!(run.without_first(3), Run { index: 5, count: 1, at: 25, ..run });
        assert_eq!(run.last(), 25);
    }

    proptest! {
        #[test]
        fn cells_survive_their_packing(
            cells in prop::collection::vec((1_u32..3, 0_u64..3, any::<bool>()), 1..40)
        ) {
            let (mut index, mut at) = (0, 0);
            let mut singles = Vec::new();
            let mut runs = Runs::default();
            for (step, distance, tagged) in cells {
                index += step;
                at += distance;
                singles.push(Run::one(index, at, tagged));
                runs.push(Run::one(index, at, tagged));
            }
            prop_assert_eq!(runs.iter().flat_map(Run::cells).collect::<Vec<_>>(), singles.clone());
            for (nth, cell) in singles.iter().enumerate() {
                prop_assert_eq!(runs.nth(nth), *cell);
            }
        }
    }
}
