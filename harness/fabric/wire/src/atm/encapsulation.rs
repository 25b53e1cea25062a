// SPDX-License-Identifier: Apache-2.0
//! What stands before and after an Ethernet frame or an IP packet in an SDU: RFC 2684 with LLC, which RFC
//! 2225 (classical IP) uses, too. LAN emulation's data frame is in [`super::lane`].

use crate::ethernet::{self, frame_check_sequence};

/// LLC, the IEEE 802.1 OUI, PID 7 (bridged Ethernet without FCS) and two octets of padding.
const BRIDGED: [u8; 10] = [0xaa, 0xaa, 0x03, 0x00, 0x80, 0xc2, 0x00, 0x07, 0x00, 0x00];
/// The same with PID 1: the FCS is kept.
const BRIDGED_WITH_FCS: [u8; 10] = [0xaa, 0xaa, 0x03, 0x00, 0x80, 0xc2, 0x00, 0x01, 0x00, 0x00];
/// LLC, OUI 0 and an EtherType: IPv4.
const ROUTED: [u8; 8] = [0xaa, 0xaa, 0x03, 0x00, 0x00, 0x00, 0x08, 0x00];
const FCS_OCTETS: usize = 4;
/// An Ethernet frame has at least as many octets before its FCS (IEEE 802.3 clause 4.2.3.3).
const LEAST_FRAME_OCTETS: usize = 60;

/// How RFC 2684 puts a frame into an SDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// The whole frame, padded to its least length.
    Bridged,
    /// The same with its frame check sequence.
    BridgedWithFcs,
    /// The IP packet alone.
    Routed,
}

impl Encapsulation {
    /// Octets of the SDU of an Ethernet `frame`, which has a header.
    pub fn sdu_octets(self, frame_octets: usize) -> usize {
        let padded = frame_octets.max(LEAST_FRAME_OCTETS);
        match self {
            Self::Bridged => BRIDGED.len() + padded,
            Self::BridgedWithFcs => BRIDGED_WITH_FCS.len() + padded + FCS_OCTETS,
            Self::Routed => ROUTED.len() + frame_octets - ethernet::HEADER_BYTES,
        }
    }

    /// Appends the SDU of an Ethernet `frame`, which has a header.
    pub fn put_sdu(self, frame: &[u8], out: &mut Vec<u8>) {
        let header: &[u8] = match self {
            Self::Bridged => &BRIDGED,
            Self::BridgedWithFcs => &BRIDGED_WITH_FCS,
            Self::Routed => {
                out.extend_from_slice(&ROUTED);
                out.extend_from_slice(&frame[ethernet::HEADER_BYTES..]);
                return;
            }
        };
        out.extend_from_slice(header);
        let start = out.len();
        out.extend_from_slice(frame);
        out.resize(start + frame.len().max(LEAST_FRAME_OCTETS), 0);
        if self == Self::BridgedWithFcs {
            let fcs = frame_check_sequence(&out[start..]);
            out.extend_from_slice(&fcs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ENCAPSULATIONS: [Encapsulation; 3] =
        [Encapsulation::Bridged, Encapsulation::BridgedWithFcs, Encapsulation::Routed];

    fn sdu(encapsulation: Encapsulation, frame: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encapsulation.put_sdu(frame, &mut out);
        out
    }

    #[test]
    fn a_full_packet_takes_what_the_rfcs_say() {
        // 1500 bytes of IP: bridged 10 + 1514 and 4, routed 8 + 1500.
        assert_eq!(ENCAPSULATIONS.map(|kind| kind.sdu_octets(1514)), [1524, 1528, 1508]);
        // An ACK of 40 bytes is padded where it is bridged.
        assert_eq!(ENCAPSULATIONS.map(|kind| kind.sdu_octets(54)), [70, 74, 48]);
    }

    #[test]
    fn headers_are_those_of_rfc_2684() {
        let frame = [0x11; 64];
        let bridged = sdu(Encapsulation::Bridged, &frame);
        assert_eq!(bridged[..10], [0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7, 0, 0]);
        assert_eq!(bridged[10..], frame);
        let with_fcs = sdu(Encapsulation::BridgedWithFcs, &frame);
        assert_eq!(with_fcs[..10], [0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 1, 0, 0]);
        assert_eq!(with_fcs[10..74], frame);
        assert_eq!(with_fcs[74..], frame_check_sequence(&frame));
        let routed = sdu(Encapsulation::Routed, &frame);
        assert_eq!(routed[..8], [0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
        assert_eq!(routed[8..], [0x11; 50]);
    }

    #[test]
    fn a_short_frame_is_padded_before_its_check() {
        let with_fcs = sdu(Encapsulation::BridgedWithFcs, &[0x22; 20]);
        let mut padded = [0; 60];
        padded[..20].fill(0x22);
        assert_eq!(with_fcs[10..70], padded);
        assert_eq!(with_fcs[70..], frame_check_sequence(&padded));
    }

    proptest! {
        #[test]
        fn an_sdu_is_as_long_as_announced(frame in prop::collection::vec(any::<u8>(), 14..200)) {
            for encapsulation in ENCAPSULATIONS {
                let octets = sdu(encapsulation, &frame).len();
                prop_assert_eq!(octets, encapsulation.sdu_octets(frame.len()));
            }
        }
    }
}
