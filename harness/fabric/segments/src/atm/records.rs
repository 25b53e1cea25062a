// SPDX-License-Identifier: Apache-2.0
//! PDUs and cells as lines of the captures beside the main one. Their octets are made when they are written.

use std::sync::Arc;

use sundial_core::{Fate, Time, Train};
use sundial_wire::atm::cell::{CellHeader, PAYLOAD_OCTETS};
use sundial_wire::atm::erf::{self, PduRecord, Way};

use super::pdu::Pdu;
use super::reassembly::{Flips, Fragment, payload};
use super::train::Runs;
use super::units;

/// A PDU that has arrived.
#[derive(Debug)]
pub(super) struct ArrivedPdu {
    pub(super) pdu: Arc<Pdu>,
    /// On the line of the receiver.
    pub(super) vci: u16,
    /// The first cell's priority.
    pub(super) low_priority: bool,
}

/// A PDU that did not get through.
#[derive(Debug)]
pub(super) struct BadPduLine {
    pub(super) pdu: Arc<Pdu>,
    pub(super) lost_cells: u32,
    /// Of a PDU that arrived with wrong bits.
    pub(super) flips: Flips,
    pub(super) fate: Fate,
}

/// Cells of one PDU on one line.
#[derive(Debug)]
pub(super) struct CellLines {
    pub(super) pdu: Arc<Pdu>,
    pub(super) way: Way,
    pub(super) vci: u16,
    /// First bits out of the adapter or last bits in.
    pub(super) cells: Runs,
    pub(super) flips: Flips,
}

impl CellLines {
    /// The stamp of the first.
    pub(super) fn at(&self) -> Time {
        units::time(self.cells.nth(0).at)
    }

    /// What arrived at an adapter on `vci`.
    pub(super) fn arrived(fragment: Fragment, vci: u16) -> Self {
        let Fragment { pdu, cells, flips } = fragment;
        Self { pdu, way: Way::ToAdapter, vci, cells, flips }
    }
}

fn header(vci: u16, is_last: bool, low_priority: bool) -> CellHeader {
    CellHeader { vpi: 0, vci, payload_type: is_last.into(), low_priority }
}

/// Appends a whole PDU.
fn put_good(pdu: &Pdu, stamp_ns: u64, way: Way, header: CellHeader, out: &mut Vec<u8>) {
    let record = PduRecord { stamp_ns, way, bad: false, lost_cells: 0, header };
    let octets = pdu.cells as usize * PAYLOAD_OCTETS;
    erf::put_pdu_with(out, &record, octets, |out| pdu.put(out));
}

/// As its adapter sends it.
impl Train for Pdu {
    fn put(&self, _index: usize, stamp_ns: u64, out: &mut Vec<u8>) {
        put_good(self, stamp_ns, Way::FromAdapter, header(self.vci, false, false), out);
    }
}

impl Train for ArrivedPdu {
    fn put(&self, _index: usize, stamp_ns: u64, out: &mut Vec<u8>) {
        let header = header(self.vci, false, self.low_priority);
        put_good(&self.pdu, stamp_ns, Way::ToAdapter, header, out);
    }
}

impl Train for BadPduLine {
    fn put(&self, _index: usize, stamp_ns: u64, out: &mut Vec<u8>) {
        let record = PduRecord {
            stamp_ns,
            way: Way::FromAdapter,
            bad: true,
            lost_cells: self.lost_cells as u16,
            header: header(self.pdu.vci, false, false),
        };
        let mut octets = self.pdu.octets().to_vec();
        for &(cell, bit) in &self.flips {
            octets[cell as usize * PAYLOAD_OCTETS + usize::from(bit / 8)] ^= 0x80 >> (bit % 8);
        }
        erf::put_pdu(out, &record, &octets);
    }

    fn fate(&self, _index: usize) -> Option<&Fate> {
        Some(&self.fate)
    }
}

impl Train for CellLines {
    fn after(&self, index: usize) -> Option<Time> {
        let next = index + 1;
        (next < self.cells.count()).then(|| units::time(self.cells.nth(next).at))
    }

    fn put(&self, index: usize, stamp_ns: u64, out: &mut Vec<u8>) {
        let cell = self.cells.nth(index);
        let header = header(self.vci, cell.index + 1 == self.pdu.cells, cell.tagged);
        let payload = payload(&self.pdu, &self.flips, cell.index);
        erf::put_cell(out, stamp_ns, self.way, header, &payload);
    }
}
