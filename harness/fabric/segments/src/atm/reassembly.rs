// SPDX-License-Identifier: Apache-2.0
//! The receiving half of AAL5 (ITU-T I.363.5) on one virtual channel: all cells since the last "last cell"
//! are one PDU, whose length and CRC must be right.

use std::sync::Arc;

use sundial_core::Rule;
use sundial_wire::atm::aal5;
use sundial_wire::atm::cell::PAYLOAD_OCTETS;

use super::pdu::Pdu;
use super::train::{Run, Runs};

/// Wrong payload bits: the cell's number in its PDU and the bit, 0 being the first one sent.
pub(super) type Flips = Vec<(u32, u16)>;

/// What has arrived of one PDU.
#[derive(Clone, Debug)]
pub(super) struct Fragment {
    pub(super) pdu: Arc<Pdu>,
    pub(super) cells: Runs,
    /// Of any of its cells, also of ones that were lost later.
    pub(super) flips: Flips,
}

/// What the receiver makes of a PDU when its last cell has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joined {
    Good,
    Bad(Rule),
}

/// Cells that wait for a last one.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    fragments: Vec<Fragment>,
    cells: usize,
}

impl Fragment {
    fn has_last(&self) -> bool {
        self.cells.last().is_some_and(|run| run.end_index() == self.pdu.cells)
    }

    /// The payload of cell `index` as it arrived.
    pub(super) fn payload(&self, index: u32) -> [u8; PAYLOAD_OCTETS] {
        payload(&self.pdu, &self.flips, index)
    }
}

/// The payload of cell `index` of `pdu` with the bits `flips` wrong.
pub(super) fn payload(pdu: &Pdu, flips: &Flips, index: u32) -> [u8; PAYLOAD_OCTETS] {
    let start = index as usize * PAYLOAD_OCTETS;
    let octets = &pdu.octets()[start..start + PAYLOAD_OCTETS];
    let mut payload: [u8; PAYLOAD_OCTETS] = octets.try_into().expect("a PDU is whole cells");
    for &(_, bit) in flips.iter().filter(|(cell, _)| *cell == index) {
        payload[usize::from(bit / 8)] ^= 0x80 >> (bit % 8);
    }
    payload
}

impl Reassembly {
    /// Takes what has arrived of the next PDU. `None`: its last cell has not.
    pub(super) fn take(&mut self, fragment: &Fragment) -> Option<Joined> {
        let arrived = fragment.cells.count();
        if !fragment.has_last() {
            self.keep(fragment, arrived);
            return None;
        }
        let whole = arrived == fragment.pdu.cells as usize;
        let joined = if whole && self.cells == 0 && fragment.flips.is_empty() {
            Joined::Good
        } else if self.is_good_with(fragment, arrived) {
            // Two wrong bits that cancel, or cells of equal PDUs: the receiver cannot know.
            Joined::Good
        } else if self.cells > 0 {
            Joined::Bad(Rule::Joined)
        } else {
            Joined::Bad(Rule::WrongCrc)
        };
        self.fragments.clear();
        self.cells = 0;
        Some(joined)
    }

    fn keep(&mut self, fragment: &Fragment, arrived: usize) {
        self.cells += arrived;
        if self.cells > aal5::MOST_CELLS {
            // No length fits so many: whatever follows, it is bad.
            self.fragments.clear();
        } else if arrived > 0 {
            self.fragments.push(fragment.clone());
        }
    }

    fn is_good_with(&self, last: &Fragment, arrived: usize) -> bool {
        let cells = self.cells + arrived;
        // The length stands in the last cell. Only where it fits is there a CRC to compute.
        if cells != last.pdu.cells as usize {
            return false;
        }
        let mut octets = Vec::with_capacity(cells * PAYLOAD_OCTETS);
        for fragment in self.fragments.iter().chain([last]) {
            for cell in fragment.cells.iter().flat_map(Run::cells) {
                octets.extend_from_slice(&fragment.payload(cell.index));
            }
        }
        aal5::parse(&octets).is_ok()
    }
}
