// SPDX-License-Identifier: Apache-2.0
//! The loss of cells: why, where and when.

use sundial_core::Rule;

use super::units::Units;

/// On which side of the switch something was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// Between the sender and the switch.
    From,
    /// In the output queue, or between it and the receiver.
    Towards,
}

/// A cell that a PDU lost on its way.
///
/// The least is the first: at one instant the side of the sender comes before the other, and the line before
/// the queue. So which one it is does not depend on the order in which lines are decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Loss {
    pub(super) at: Units,
    pub(super) side: Side,
    pub(super) rule: Rule,
}
