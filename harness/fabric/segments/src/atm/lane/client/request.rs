// SPDX-License-Identifier: Apache-2.0
//! A request that waits for its answer, and is repeated when none comes.

use sundial_core::{Span, Time};
use sundial_wire::atm::lane::{ControlFrame, Status};

/// A request that was sent. Each repetition has a transaction of its own, so that there is one answer
/// to each.
#[derive(Debug)]
pub(super) struct Request {
    transaction: u32,
    repetitions_left: u32,
    /// No answer by then: repeat it, or give up.
    pub(super) deadline: Time,
}

impl Request {
    /// Transaction `transaction`, sent at `now`.
    pub(super) fn new(now: Time, transaction: u32, patience: Span, repetitions_left: u32) -> Self {
        Self { transaction, repetitions_left, deadline: now + patience }
    }

    pub(super) fn is_answered_by(&self, frame: &ControlFrame) -> bool {
        frame.transaction == self.transaction && frame.status == Status::Success
    }

    /// How many repetitions are left after the next; `None`: there is no next.
    pub(super) fn repeat(&self) -> Option<u32> {
        self.repetitions_left.checked_sub(1)
    }
}
