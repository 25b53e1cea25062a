// SPDX-License-Identifier: Apache-2.0
//! Why cells and PDUs are lost, and where.

use super::units::Units;

/// Why a cell is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    CellLoss,
    HeaderError,
    Policed,
    EarlyPacketDiscard,
    PartialPacketDiscard,
    LowPriority,
    VcFull,
    QueueFull,
}

impl Cause {
    /// As comments and counters name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::CellLoss => "cell loss",
            Self::HeaderError => "header error",
            Self::Policed => "policed",
            Self::EarlyPacketDiscard => "early packet discard",
            Self::PartialPacketDiscard => "partial packet discard",
            Self::LowPriority => "CLP 1",
            Self::VcFull => "VC full",
            Self::QueueFull => "queue full",
        }
    }
}

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
    pub(super) cause: Cause,
}

/// Why a PDU that lost no cell is discarded by its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoiled {
    /// A payload bit is wrong.
    WrongCrc,
    /// The last cell of the one before was lost, so that the two look like one.
    Joined,
}

impl Spoiled {
    /// As comments and counters name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::WrongCrc => "wrong CRC",
            Self::Joined => "joined to the PDU before",
        }
    }
}
