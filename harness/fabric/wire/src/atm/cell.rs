// SPDX-License-Identifier: Apache-2.0
//! The header of a cell at the user-network interface (ITU-T I.361) and its check (I.432.1).
//!
//! ```text
//!     0        1        2        3        4
//! +----+----+----+----------------+--+-+--------+-- - -
//! |GFC |   VPI   |      VCI       |PT|C| HEC    | 48 octets
//! +----+----+----+----------------+--+-+--------+-- - -
//!   4      8            16         3  1    8
//! ```

/// Octets of the payload.
pub const PAYLOAD_OCTETS: usize = 48;
/// Octets of the header without its check.
pub const HEADER_OCTETS: usize = 4;
/// Octets of a cell: header, check, payload.
pub const CELL_OCTETS: usize = HEADER_OCTETS + 1 + PAYLOAD_OCTETS;

/// x^8 + x^2 + x + 1 and then the coset 01010101: the catalogue's `CRC_8_I_432_1`.
const HEC: crc::Crc<u8> = crc::Crc::<u8>::new(&crc::CRC_8_I_432_1);

/// Header fields. The generic flow control is always 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellHeader {
    /// Virtual path.
    pub vpi: u8,
    /// Virtual channel in it.
    pub vci: u16,
    /// Three bits: 1 marks the last cell of an AAL5 PDU, 0 the others.
    pub payload_type: u8,
    /// Cell loss priority: the cell goes first when a queue is short of room.
    pub low_priority: bool,
}

/// What the check says of a header that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// As it was sent.
    Intact,
    /// One bit was wrong; this is the header.
    Corrected([u8; HEADER_OCTETS]),
    /// More than one bit is wrong: the cell is discarded.
    Errored,
}

impl CellHeader {
    /// The four octets before the check.
    pub const fn to_octets(self) -> [u8; HEADER_OCTETS] {
        let fields = (self.vpi as u32) << 20
            | (self.vci as u32) << 4
            | (self.payload_type as u32 & 7) << 1
            | self.low_priority as u32;
        fields.to_be_bytes()
    }

    /// The fields of the four octets before the check.
    pub const fn from_octets(octets: [u8; HEADER_OCTETS]) -> Self {
        let fields = u32::from_be_bytes(octets);
        Self {
            vpi: (fields >> 20) as u8,
            vci: (fields >> 4) as u16,
            payload_type: (fields >> 1) as u8 & 7,
            low_priority: fields & 1 != 0,
        }
    }
}

/// The check of a header.
pub fn hec(header: [u8; HEADER_OCTETS]) -> u8 {
    HEC.checksum(&header)
}

/// Checks a received header as a receiver in I.432.1's correction mode does.
pub fn check(header: [u8; HEADER_OCTETS], received: u8) -> Checked {
    let syndrome = hec(header) ^ received;
    if syndrome == 0 {
        return Checked::Intact;
    }
    if syndrome.is_power_of_two() {
        // The wrong bit is in the check itself.
        return Checked::Corrected(header);
    }
    // The code is linear: each single wrong bit has a syndrome of its own.
    let wrong = (0..32).map(|bit| 1_u32 << bit);
    for mask in wrong {
        if hec(mask.to_be_bytes()) ^ hec([0; HEADER_OCTETS]) == syndrome {
            let fields = u32::from_be_bytes(header) ^ mask;
            return Checked::Corrected(fields.to_be_bytes());
        }
    }
    Checked::Errored
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Headers and checks made with another program.
    const VECTORS: [(u32, u8); 5] = [
        (0x0000_0420, 0xe1),
        (0x0000_0422, 0xef),
        (0x0010_0642, 0x40),
        (0x0000_0001, 0x52), // an idle cell, as I.432.1 itself has it
        (0x0000_0000, 0x55),
    ];

    #[test]
    fn checks_match_vectors_of_another_program() {
        for (header, check) in VECTORS {
            assert_eq!(hec(header.to_be_bytes()), check, "{header:08x}");
        }
    }

    #[test]
    fn fields_stand_where_i_361_puts_them() {
        let header = CellHeader { vpi: 1, vci: 100, payload_type: 1, low_priority: false };
        assert_eq!(header.to_octets(), [0x00, 0x10, 0x06, 0x42]);
        let header = CellHeader { vpi: 0xab, vci: 0xcdef, payload_type: 5, low_priority: true };
        assert_eq!(header.to_octets(), [0x0a, 0xbc, 0xde, 0xfb]);
    }

    #[test]
    fn every_single_wrong_bit_is_corrected() {
        for (header, check_octet) in VECTORS {
            for bit in 0..40 {
                let octets = (u64::from(header) << 8 | u64::from(check_octet)) ^ (1 << bit);
                let received = ((octets >> 8) as u32).to_be_bytes();
                let corrected = Checked::Corrected(header.to_be_bytes());
                assert_eq!(check(received, octets as u8), corrected, "bit {bit}");
            }
        }
    }

    #[test]
    fn every_pair_of_wrong_bits_is_detected() {
        for first in 0..40 {
            for second in 0..first {
                let octets = 0x04_20e1_u64 ^ (1 << first) ^ (1 << second);
                let received = ((octets >> 8) as u32).to_be_bytes();
                assert_eq!(check(received, octets as u8), Checked::Errored, "{first} {second}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_header_survives_the_round_trip(fields in 0_u32..1 << 28) {
            let octets = fields.to_be_bytes();
            prop_assert_eq!(CellHeader::from_octets(octets).to_octets(), octets);
            prop_assert_eq!(check(octets, hec(octets)), Checked::Intact);
        }
    }
}
