// SPDX-License-Identifier: Apache-2.0
//! Records of the Extensible Record Format, which Wireshark dissects as cells and as AAL5 PDUs.
//!
//! Read first: Endace's "ERF types reference" (types 3 and 4) and Wireshark's `packet-erf.c`.
//!
//! ```text
//! | time, 32.32, little-endian u64 | type | flags | rlen u16 | lctr u16 | wlen u16 | wlen octets
//! ```
//! All but the time is big-endian.

use super::cell::{self, CellHeader, PAYLOAD_OCTETS};

/// Octets before the cell header.
pub const HEADER_OCTETS: usize = 16;

const TYPE_ATM: u8 = 3;
const TYPE_AAL5: u8 = 4;
/// The record is as long as what it holds.
const VARYING_LENGTH: u8 = 0x04;
const RX_ERROR: u8 = 0x10;
const NS_PER_S: u64 = 1_000_000_000;

/// Which way what a record holds goes: the interface in its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the adapter.
    FromAdapter = 0,
    /// To the adapter.
    ToAdapter = 1,
}

/// What stands in the header of a PDU's record beside its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PduRecord {
    /// ns since 1970.
    pub stamp_ns: u64,
    /// The direction.
    pub way: Way,
    /// The PDU is incomplete or wrong.
    pub bad: bool,
    /// How many of its cells were lost.
    pub lost_cells: u16,
    /// Of its first cell.
    pub header: CellHeader,
}

/// Appends the record of an AAL5 PDU: SDU, padding and trailer.
pub fn put_pdu(out: &mut Vec<u8>, record: &PduRecord, pdu: &[u8]) {
    put_pdu_with(out, record, pdu.len(), |out| out.extend_from_slice(pdu));
}

/// The same for a PDU of `octets` octets that `put` appends.
pub fn put_pdu_with(
    out: &mut Vec<u8>,
    record: &PduRecord,
    octets: usize,
    put: impl FnOnce(&mut Vec<u8>),
) {
    let length = cell::HEADER_OCTETS + octets;
    let error = if record.bad { RX_ERROR } else { 0 };
    let flags = VARYING_LENGTH | record.way as u8 | error;
    put_header(out, record.stamp_ns, [TYPE_AAL5, flags], length, record.lost_cells, length);
    out.extend_from_slice(&record.header.to_octets());
    put(out);
}

/// Appends the record of a cell. The check of its header is not part of it, but counts in its length on the wire.
pub fn put_cell(out: &mut Vec<u8>, stamp_ns: u64, way: Way, header: CellHeader, payload: &[u8]) {
    let kept = cell::HEADER_OCTETS + PAYLOAD_OCTETS;
    let flags = VARYING_LENGTH | way as u8;
    put_header(out, stamp_ns, [TYPE_ATM, flags], kept, 0, cell::CELL_OCTETS);
    out.extend_from_slice(&header.to_octets());
    out.extend_from_slice(payload);
}

fn put_header(
    out: &mut Vec<u8>,
    stamp_ns: u64,
    type_and_flags: [u8; 2],
    kept: usize,
    lost_cells: u16,
    length: usize,
) {
    let (seconds, ns) = (stamp_ns / NS_PER_S, stamp_ns % NS_PER_S);
    let time = (seconds << 32) | ((ns << 32) / NS_PER_S);
    let octets = |length: usize| u16::try_from(length).expect("a PDU has 1366 cells at most");
    out.extend_from_slice(&time.to_le_bytes());
    out.extend_from_slice(&type_and_flags);
    out.extend_from_slice(&octets(HEADER_OCTETS + kept).to_be_bytes());
    out.extend_from_slice(&lost_cells.to_be_bytes());
    out.extend_from_slice(&octets(length).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::{aal5, lane};
    use super::*;

    /// Three records that tshark 4.0.17 dissects as erf:atm:lane:...:rpc, as LE_ARP_REQUEST, and as a cell.
    const CALL: &str = "8cb8000080436d38 04 04 00a4 0000 0094 00000420 0001 025344000002 025344000001 0800 \
        45000058 00010000 40116692 0a000001 0a000002 04000801 00440000 11223344 00000000 00000002 \
        20000001 00000001 00000001 00000000 00000000 00000000 00000000 00000010 \
        41414141414141414141414141414141";
    const LE_ARP: &str = "e253000080436d38 04 04 00a4 0000 0094 00000210 ff00 01 01 0006 0000 00000003 \
        0001 0000 0001 025344000001 0001 025344000002 47000580ffe1 00000000000000 025344000001 00";
    const LAST_CELL: &str = "6d6b010080436d38 03 04 0044 0000 0035 00000422 4141414141414141";

    fn octets(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let octet = |pair: &[u8]| {
            let pair = std::str::from_utf8(pair).expect("hexadecimal digits");
            u8::from_str_radix(pair, 16).expect("hexadecimal digits")
        };
        digits.chunks(2).map(octet).collect()
    }

    /// A vector whose PDU is all zeros from its end to `trailer`.
    fn vector(start: &str, length: usize, trailer: &str) -> Vec<u8> {
        let mut octets_of_record = octets(start);
        let trailer = octets(trailer);
        octets_of_record.resize(length - trailer.len(), 0);
        octets_of_record.extend(trailer);
        octets_of_record
    }

    /// The time of a vector in ns, rounded up: what is written from it is rounded down again.
    fn stamp_ns(vector: &[u8]) -> u64 {
        let time = u64::from_le_bytes(vector[..8].try_into().expect("eight octets"));
        (time >> 32) * NS_PER_S + ((time & 0xffff_ffff) * NS_PER_S).div_ceil(1 << 32)
    }

    fn record(vector: &[u8], vci: u16) -> PduRecord {
        let header = CellHeader { vpi: 0, vci, payload_type: 0, low_priority: false };
        let stamp_ns = stamp_ns(vector);
        PduRecord { stamp_ns, way: Way::FromAdapter, bad: false, lost_cells: 0, header }
    }

    #[test]
    fn a_call_over_lan_emulation_is_the_record_that_wireshark_dissects() {
        let expected = vector(CALL, 164, "0000 0068 7d9f8139");
        let frame = &expected[22..22 + 102];
        let mut pdu = Vec::new();
        lane::put_data(1, frame, &mut pdu);
        aal5::finish(&mut pdu, 0);
        let mut out = vec![0xa5; 3];
        put_pdu(&mut out, &record(&expected, 66), &pdu);
        assert_eq!(out[3..], expected);
    }

    #[test]
    fn an_le_arp_request_is_the_record_that_wireshark_dissects() {
        let expected = vector(LE_ARP, 164, "0000 006c 6ef7a0ca");
        let mut pdu = expected[20..20 + 108].to_vec();
        aal5::finish(&mut pdu, 0);
        let mut out = Vec::new();
        put_pdu(&mut out, &record(&expected, 33), &pdu);
        assert_eq!(out, expected);
    }

    #[test]
    fn a_last_cell_is_the_record_that_wireshark_dissects() {
        let expected = vector(LAST_CELL, 68, "0000 0068 7d9f8139");
        let header = CellHeader { vpi: 0, vci: 66, payload_type: 1, low_priority: false };
        let mut out = Vec::new();
        let stamp_ns = stamp_ns(&expected);
        put_cell(&mut out, stamp_ns, Way::FromAdapter, header, &expected[20..]);
        assert_eq!(out, expected);
    }

    #[test]
    fn a_bad_pdu_is_marked_and_tells_its_losses() {
        let expected = vector(CALL, 164, "0000 0068 7d9f8139");
        let bad =
            PduRecord { way: Way::ToAdapter, bad: true, lost_cells: 2, ..record(&expected, 66) };
        let mut out = Vec::new();
        put_pdu(&mut out, &bad, &expected[20..]);
        assert_eq!(out[8..16], [4, 0x15, 0, 0xa4, 0, 2, 0, 0x94]);
    }
}
