// SPDX-License-Identifier: Apache-2.0
//! A PDU of AAL5 on a virtual channel.

use std::sync::OnceLock;

use sundial_core::Frame;
use sundial_wire::atm::aal5;
use sundial_wire::atm::cell::PAYLOAD_OCTETS;
use sundial_wire::atm::encapsulation::Encapsulation;

use super::lane::Sdu;

/// What an adapter sends on a VC. Its octets are made when they are read: a capture, or a receiver that has
/// to compute its CRC.
#[derive(Debug)]
pub(super) struct Pdu {
    /// The sending station.
    pub(super) from: usize,
    /// On the line of the sender.
    pub(super) vci: u16,
    pub(super) cells: u32,
    pub(super) content: Content,
    /// The hand-in that this PDU is a part of, at the sender.
    pub(super) sending: Option<usize>,
    crc: OnceLock<u32>,
    octets: OnceLock<Box<[u8]>>,
}

/// What a PDU carries.
#[derive(Debug)]
pub(super) enum Content {
    /// An SDU of LAN emulation.
    Lane(Sdu),
    /// An Ethernet frame or the packet in it.
    Rfc2684(Encapsulation, Frame),
}

impl Content {
    fn sdu_octets(&self) -> usize {
        match self {
            Self::Lane(sdu) => sdu.octets(),
            Self::Rfc2684(encapsulation, frame) => encapsulation.sdu_octets(frame.len()),
        }
    }

    fn put_sdu(&self, out: &mut Vec<u8>) {
        match self {
            Self::Lane(sdu) => sdu.put(out),
            Self::Rfc2684(encapsulation, frame) => encapsulation.put_sdu(frame, out),
        }
    }
}

impl Pdu {
    pub(super) fn new(from: usize, vci: u16, content: Content, sending: Option<usize>) -> Self {
        let cells = aal5::cells(content.sdu_octets()) as u32;
        Self { from, vci, cells, content, sending, crc: OnceLock::new(), octets: OnceLock::new() }
    }

    /// The machine's frame in it.
    pub(super) fn frame(&self) -> Option<&Frame> {
        match &self.content {
            Content::Lane(Sdu::Data { frame, .. }) | Content::Rfc2684(_, frame) => Some(frame),
            Content::Lane(Sdu::Control(_)) => None,
        }
    }

    /// Appends SDU, padding and trailer to `out`. Its two records need no copy between them.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self.octets.get() {
            Some(octets) => out.extend_from_slice(octets),
            None => {
                let start = out.len();
                self.content.put_sdu(out);
                let crc = |covered: &[u8]| *self.crc.get_or_init(|| aal5::crc32(covered));
                aal5::finish_with(out, start, crc);
            }
        }
    }

    /// SDU, padding and trailer, for those who read them piece by piece.
    pub(super) fn octets(&self) -> &[u8] {
        self.octets.get_or_init(|| {
            let mut octets = Vec::with_capacity(self.cells as usize * PAYLOAD_OCTETS);
            self.put(&mut octets);
            octets.into()
        })
    }
}
