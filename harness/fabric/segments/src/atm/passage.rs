// SPDX-License-Identifier: Apache-2.0
//! The way of a PDU to one of its receivers.

use std::sync::Arc;

use sundial_core::Rule;

use super::loss::{Loss, Side};
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
    pub(super) fn lose(&mut self, cells: u32, rule: Rule, side: Side, at: Units) {
        self.lost += cells;
        let loss = Loss { at, side, rule };
        // Cells are decided on line by line, so that a later one may be lost earlier on.
        self.first_loss = Some(self.first_loss.map_or(loss, |first| first.min(loss)));
    }

    /// Whether all its cells are decided.
    pub(super) fn is_over(&self) -> bool {
        self.unsent == 0 && self.coming == 0
    }
}

/// Passages that are not over.
pub(super) type Passages = Slab<Passage>;

#[cfg(test)]
mod tests {
    use sundial_core::Frame;
    use sundial_wire::atm::encapsulation::Encapsulation;

    use super::super::pdu::Content;
    use super::*;

    /// The first of `losses`, decided on in this order.
    fn first_of(losses: [Loss; 2]) -> Option<Loss> {
        let frame = Frame::from(vec![0; 100]);
        let pdu = Pdu::new(0, 32, Content::Rfc2684(Encapsulation::Bridged, frame), None);
        let mut passage = Passage::new(Arc::new(pdu), 0, None);
        for Loss { at, side, rule } in losses {
            passage.lose(1, rule, side, at);
        }
        assert_eq!(passage.lost, 2);
        passage.first_loss
    }

    #[test]
    fn the_first_loss_does_not_depend_on_the_order_of_decisions() {
        let policed = Loss { at: 7, side: Side::From, rule: Rule::Policed };
        let on_the_line = Loss { at: 7, side: Side::Towards, rule: Rule::CellLoss };
        let in_the_queue = Loss { at: 7, side: Side::Towards, rule: Rule::QueueFull };
        let later = Loss { at: 8, side: Side::From, rule: Rule::CellLoss };
        let in_order = [policed, on_the_line, in_the_queue, later];
        for (place, &first) in in_order.iter().enumerate() {
            for &second in &in_order[place + 1..] {
                assert_eq!(first_of([first, second]), Some(first));
                assert_eq!(first_of([second, first]), Some(first));
            }
        }
    }
}
