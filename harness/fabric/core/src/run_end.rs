// SPDX-License-Identifier: Apache-2.0
//! When a run ends.

use std::collections::BTreeSet;

use crate::{Span, Time};

/// The run ends a fixed time after the last of some machines is done, after the first whose job failed, or after the
/// deadline.
#[derive(Clone, Debug)]
pub struct RunEnd {
    waiting: BTreeSet<usize>,
    linger: Span,
    deadline: Time,
    end: Option<Time>,
}

impl RunEnd {
    /// Ends `linger` after the last of `machines`, and `linger` after `deadline` at the latest. Without either
    /// it does not end by itself.
    pub fn new(
        machines: impl IntoIterator<Item = usize>,
        linger: Span,
        deadline: Option<Time>,
    ) -> Self {
        let waiting = machines.into_iter().collect();
        let end = deadline.map(|deadline| deadline + linger);
        Self { waiting, linger, deadline: deadline.unwrap_or(Time::MAX), end }
    }

    /// Machine number `machine` is done at `at`; `status` 0 is success. To be done twice, after a failure or after the
    /// deadline changes nothing.
    pub fn done(&mut self, machine: usize, status: u8, at: Time) {
        if at > self.deadline || self.waiting.is_empty() {
            return;
        }
        self.waiting.remove(&machine);
        if status != 0 {
            // What the others still do changes no verdict.
            self.waiting.clear();
        }
        if self.waiting.is_empty() {
            self.end = Some(at + self.linger);
        }
    }

    /// The instant at which the run ends, as far as it is known. It only ever comes forward.
    pub fn at(&self) -> Option<Time> {
        self.end
    }

    /// The machines that have not been done in time, in order.
    pub fn waiting(&self) -> impl Iterator<Item = usize> {
        self.waiting.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_end(machines: &[usize]) -> RunEnd {
        RunEnd::new(machines.iter().copied(), Span::from_ns(10), None)
    }

    #[test]
    fn the_run_ends_a_while_after_the_last_machine() {
        let mut end = run_end(&[0, 2]);
        end.done(2, 0, Time::from_ns(100));
        end.done(2, 0, Time::from_ns(110));
        end.done(1, 0, Time::from_ns(120));
        assert_eq!(end.at(), None);
        end.done(0, 0, Time::from_ns(130));
        assert_eq!(end.at(), Some(Time::from_ns(140)));
        end.done(0, 0, Time::from_ns(500));
        assert_eq!(end.at(), Some(Time::from_ns(140)));
    }

    #[test]
    fn without_machines_to_wait_for_it_does_not_end_by_itself() {
        let mut end = run_end(&[]);
        end.done(0, 0, Time::from_ns(1));
        assert_eq!(end.at(), None);
    }

    fn with_deadline(machines: &[usize], deadline_ns: u64) -> RunEnd {
        let deadline = Some(Time::from_ns(deadline_ns));
        RunEnd::new(machines.iter().copied(), Span::from_ns(10), deadline)
    }

    #[test]
    fn the_end_after_the_deadline_is_known_from_the_start_and_comes_forward() {
        let mut end = with_deadline(&[0, 1], 100);
        assert_eq!(end.at(), Some(Time::from_ns(110)));
        end.done(0, 0, Time::from_ns(50));
        assert_eq!(end.at(), Some(Time::from_ns(110)));
        end.done(1, 0, Time::from_ns(60));
        assert_eq!(end.at(), Some(Time::from_ns(70)));
        assert_eq!(end.waiting().count(), 0);
    }

    #[test]
    fn a_machine_is_done_in_time_at_the_deadline_and_late_after_it() {
        for (at_ns, late) in [(100, vec![]), (101, vec![1])] {
            let mut end = with_deadline(&[0, 1], 100);
            end.done(0, 0, Time::from_ns(50));
            end.done(1, 0, Time::from_ns(at_ns));
            assert_eq!(end.at(), Some(Time::from_ns(110)));
            assert_eq!(end.waiting().collect::<Vec<_>>(), late, "at {at_ns}");
        }
    }

    #[test]
    fn a_failed_job_ends_the_run_for_all_and_makes_no_machine_late() {
        for waited_for in [0, 7] {
            let mut end = with_deadline(&[0, 1], 100);
            end.done(waited_for, 1, Time::from_ns(40));
            assert_eq!(end.at(), Some(Time::from_ns(50)));
            end.done(1, 1, Time::from_ns(45));
            assert_eq!(end.at(), Some(Time::from_ns(50)));
            assert_eq!(end.waiting().count(), 0);
        }
    }

    #[test]
    fn a_failure_after_the_deadline_or_after_the_last_machine_changes_no_end() {
        let mut end = with_deadline(&[0], 100);
        end.done(0, 1, Time::from_ns(101));
        assert_eq!(end.at(), Some(Time::from_ns(110)));
        assert_eq!(end.waiting().collect::<Vec<_>>(), [0]);
        let mut end = run_end(&[0]);
        end.done(0, 0, Time::from_ns(50));
        end.done(1, 1, Time::from_ns(55));
        assert_eq!(end.at(), Some(Time::from_ns(60)));
    }

    #[test]
    fn a_failure_does_not_end_what_waits_for_no_machine() {
        let mut end = run_end(&[]);
        end.done(0, 1, Time::from_ns(1));
        assert_eq!(end.at(), None);
    }
}
