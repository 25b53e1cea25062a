// SPDX-License-Identifier: Apache-2.0
//! Ethernet II header (IEEE 802.3 clause 3) and frame check sequence (clause 3.2.9).
//!
//! ```text
//!  0                   6                   12          14
//! +-------------------+-------------------+-----------+-- - -
//! | destination       | source            | EtherType | payload
//! +-------------------+-------------------+-----------+-- - -
//! ```

use std::fmt;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 14;

const FCS: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);

/// A 48-bit address. Ordered as its bytes on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub [u8; 6]);

impl Address {
    /// All ones.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Group addresses, broadcast among them, have the least significant bit of the first octet set.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The fourteen bytes before the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Who it is for.
    pub destination: Address,
    /// Who sent it.
    pub source: Address,
    /// EtherType, or a length below 0x600.
    pub ethertype: u16,
}

impl Header {
    /// The header of `frame` and its payload; `None` if it is shorter than a header.
    pub fn parse(frame: &[u8]) -> Option<(Self, &[u8])> {
        let (header, payload) = frame.split_first_chunk::<HEADER_BYTES>()?;
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = *header;
        let header = Self {
            destination: Address([d0, d1, d2, d3, d4, d5]),
            source: Address([s0, s1, s2, s3, s4, s5]),
            ethertype: u16::from_be_bytes([t0, t1]),
        };
        Some((header, payload))
    }

    /// Writes the header over the whole of `out`.
    pub fn emit(&self, out: &mut [u8; HEADER_BYTES]) {
        out[..6].copy_from_slice(&self.destination.0);
        out[6..12].copy_from_slice(&self.source.0);
        out[12..].copy_from_slice(&self.ethertype.to_be_bytes());
    }
}

/// The frame check sequence over destination address to padding, in the order it is sent.
pub fn frame_check_sequence(frame: &[u8]) -> [u8; 4] {
    // Clause 3.2.9 sends the CRC with its most significant coefficient first, while octets go out least
    // significant bit first: in memory the reflected CRC is little-endian.
    FCS.checksum(frame).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ARP: [u8; 16] = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x53, 0x44, 0x00, 0x00, 0x01, 0x08, 0x06, 0xab,
        0xcd,
    ];

    #[test]
    fn a_header_is_read_field_by_field() {
        let (header, payload) = Header::parse(&ARP).expect("sixteen bytes hold a header");
        assert_eq!(header.destination, Address::BROADCAST);
        assert_eq!(header.source.to_string(), "02:53:44:00:00:01");
        assert_eq!(header.ethertype, 0x0806);
        assert_eq!(payload, [0xab, 0xcd]);
    }

    #[test]
    fn a_header_is_written_over_dirty_bytes() {
        let (header, _) = Header::parse(&ARP).expect("sixteen bytes hold a header");
        let mut out = [0xa5; HEADER_BYTES];
        header.emit(&mut out);
        assert_eq!(out, ARP[..14]);
    }

    #[test]
    fn thirteen_bytes_are_no_header() {
        assert_eq!(Header::parse(&ARP[..13]), None);
    }

    #[test]
    fn group_addresses_are_told_by_one_bit() {
        assert!(Address([0x01, 0, 0x5e, 0, 0, 1]).is_group());
        assert!(!Address([0x02, 0, 0, 0, 0, 1]).is_group());
    }

    #[test]
    fn the_check_sequence_matches_the_published_check_value() {
        // CRC-32 of "123456789" is 0xcbf43926 (the catalogue's check value).
        assert_eq!(frame_check_sequence(b"123456789"), [0x26, 0x39, 0xf4, 0xcb]);
    }

    proptest! {
        #[test]
        fn any_header_survives_the_round_trip(bytes in prop::array::uniform14(any::<u8>())) {
            let (header, rest) = Header::parse(&bytes).expect("fourteen bytes hold a header");
            prop_assert!(rest.is_empty());
            let mut out = [0xa5; HEADER_BYTES];
            header.emit(&mut out);
            prop_assert_eq!(out, bytes);
        }

        #[test]
        fn a_frame_followed_by_its_check_sequence_leaves_the_fixed_residue(
            bytes in prop::collection::vec(any::<u8>(), 0..200)
        ) {
            // The residue of the reflected CRC-32, final inversion included, is 0x2144df1c.
            let mut all = bytes.clone();
            all.extend(frame_check_sequence(&bytes));
            prop_assert_eq!(u32::from_le_bytes(frame_check_sequence(&all)), 0x2144_df1c);
        }
    }
}
