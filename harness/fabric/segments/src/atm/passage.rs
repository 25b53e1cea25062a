// SPDX-License-Identifier: Apache-2.0
//! The way of a PDU to one of its receivers.

use std::sync::Arc;

use super::fate::{Cause, Loss, Side};
use super::pdu::Pdu;
use super::reassembly::Flips;
use super::slab::Slab;
use super::train::Runs;
use super::units::Units;

/// What is known of a PDU on its way to one receiver.
#[derive(Debug)]
pub(super) struct Passage {
    pub(super) pdu: Arc<Pdu>,
    /// Where it goes, as an index of `Channels::leaves`.
    pub(super) leaf: usize,
    /// The same PDU on its way to another receiver.
    pub(super) sibling: Option<usize>,
    /// Cells whose departure from the adapter is not known yet.
    pub(super) unsent: u32,
    /// Cells between the adapter and a decision in the output queue.
    pub(super) coming: u32,
    /// When the last of those joins the queue.
    pub(super) last_joining: Units,
    pub(super) lost: u32,
    pub(super) first_loss: Option<Loss>,
    pub(super) flips: Flips,
    /// Cells that reach the receiver: their first bits on the line from the switch.
    pub(super) arriving: Runs,
}

impl Passage {
    pub(super) fn new(pdu: Arc<Pdu>, leaf: usize, sibling: Option<usize>) -> Self {
        Self {
            leaf,
            sibling,
            unsent: pdu.cells,
            coming: 0,
            last_joining: 0,
            lost: 0,
            first_loss: None,
            flips: Flips::new(),
            arriving: Runs::default(),
            pdu,
        }
    }

    /// `cells` are lost, the first of them at `at`.
    pub(super) fn lose(&mut self, cells: u32, cause: Cause, side: Side, at: Units) {
        self.lost += cells;
        let loss = Loss { cause, side, at };
        // Cells are decided on line by line, so that a later one may be lost earlier on.
        if self.first_loss.is_none_or(|first| at < first.at) {
            self.first_loss = Some(loss);
        }
    }

    /// Whether all its cells are decided.
    pub(super) fn is_over(&self) -> bool {
        self.unsent == 0 && self.coming == 0
    }
}

/// Passages that are not over.
pub(super) type Passages = Slab<Passage>;
