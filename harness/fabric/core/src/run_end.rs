// SPDX-License-Identifier: Apache-2.0
//! When a run ends.

use std::collections::BTreeSet;

use crate::{Span, Time};

/// The run ends a fixed time after the last of some machines is done.
#[derive(Clone, Debug)]
pub struct RunEnd {
    waiting: BTreeSet<usize>,
    linger: Span,
    end: Option<Time>,
}

impl RunEnd {
    /// Ends `linger` after the last of `machines`; without any it does not end by itself.
    pub fn new(machines: impl IntoIterator<Item = usize>, linger: Span) -> Self {
        Self { waiting: machines.into_iter().collect(), linger, end: None }
    }

    /// Machine number `machine` is done at `at`. To be done twice changes nothing.
    pub fn done(&mut self, machine: usize, at: Time) {
        if self.waiting.remove(&machine) && self.waiting.is_empty() {
            self.end = Some(at + self.linger);
        }
    }

    /// The instant at which the run ends, once it is known.
    pub fn at(&self) -> Option<Time> {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_end(machines: &[usize]) -> RunEnd {
        RunEnd::new(machines.iter().copied(), Span::from_ns(10))
    }

    #[test]
    fn the_run_ends_a_while_after_the_last_machine() {
        let mut end = run_end(&[0, 2]);
        end.done(2, Time::from_ns(100));
        end.done(2, Time::from_ns(110));
        end.done(1, Time::from_ns(120));
        assert_eq!(end.at(), None);
        end.done(0, Time::from_ns(130));
        assert_eq!(end.at(), Some(Time::from_ns(140)));
        end.done(0, Time::from_ns(500));
        assert_eq!(end.at(), Some(Time::from_ns(140)));
    }

    #[test]
    fn without_machines_to_wait_for_it_does_not_end_by_itself() {
        let mut end = run_end(&[]);
        end.done(0, Time::from_ns(1));
        assert_eq!(end.at(), None);
    }
}
