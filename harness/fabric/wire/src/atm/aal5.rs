// SPDX-License-Identifier: Apache-2.0
//! The common part of AAL5 (ITU-T I.363.5): an SDU becomes a PDU of whole cells.
//!
//! ```text
//! +-- - - --+-- - - --+----+-----+--------+--------+
//! | SDU     | 0..47   | UU | CPI | length | CRC-32 |
//! +-- - - --+-- - - --+----+-----+--------+--------+
//!                       1     1      2        4
//! ```

use crc_fast::CrcAlgorithm;

use super::cell::PAYLOAD_OCTETS;

/// Octets of the trailer.
pub const TRAILER_OCTETS: usize = 8;
/// The longest SDU that the trailer's length can say.
pub const MOST_SDU_OCTETS: usize = 65_535;
/// Cells of a PDU with the longest SDU.
pub const MOST_CELLS: usize = cells(MOST_SDU_OCTETS);

/// Why a received PDU is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// The length does not fit the number of cells.
    Length,
    /// The CRC is wrong.
    Crc,
}

/// Cells that an SDU of `octets` takes.
pub const fn cells(octets: usize) -> usize {
    (octets + TRAILER_OCTETS).div_ceil(PAYLOAD_OCTETS)
}

/// The CRC of `octets`. I.363.5 sends it most significant bit first: the catalogue's `CRC-32/BZIP2`.
pub fn crc32(octets: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Bzip2, octets) as u32
}

/// Makes the SDU that begins at `start` of `out` a PDU: appends padding and trailer.
pub fn finish(out: &mut Vec<u8>, start: usize) {
    finish_with(out, start, crc32);
}

/// The same for a caller that may know the CRC of what `crc` is given.
pub fn finish_with(out: &mut Vec<u8>, start: usize, crc: impl FnOnce(&[u8]) -> u32) {
    let octets = out.len() - start;
    let length = u16::try_from(octets).expect("an SDU has at most 65535 octets");
    out.resize(start + cells(octets) * PAYLOAD_OCTETS - TRAILER_OCTETS + 2, 0);
    out.extend(length.to_be_bytes());
    let crc = crc(&out[start..]);
    out.extend(crc.to_be_bytes());
}

/// The SDU in the payloads of all cells up to a last one.
pub fn parse(pdu: &[u8]) -> Result<&[u8], Bad> {
    let Some((covered, crc)) = pdu.split_last_chunk::<4>() else { return Err(Bad::Length) };
    let Some((_, length)) = covered.split_last_chunk::<2>() else { return Err(Bad::Length) };
    let length = usize::from(u16::from_be_bytes(*length));
    // Length 0 aborts a PDU (I.363.5 section 9.2.1.2.3).
    if length == 0 || cells(length) * PAYLOAD_OCTETS != pdu.len() {
        return Err(Bad::Length);
    }
    if crc32(covered) != u32::from_be_bytes(*crc) {
        return Err(Bad::Crc);
    }
    Ok(&pdu[..length])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pdu(sdu: &[u8]) -> Vec<u8> {
        let mut out = sdu.to_vec();
        finish(&mut out, 0);
        out
    }

    #[test]
    fn checks_match_the_published_values() {
        assert_eq!(crc32(b"123456789"), 0xfc89_1918, "the catalogue's check value");
        // I.363.5 appendix: 40 octets of zero, of one, and 1 to 40; UU and CPI are 0.
        assert_eq!(pdu(&[0; 40])[44..], [0x86, 0x4d, 0x7f, 0x99]);
        assert_eq!(pdu(&[0xff; 40])[44..], [0xc5, 0x5e, 0x45, 0x7a]);
        let counting: Vec<u8> = (1..=40).collect();
        assert_eq!(pdu(&counting)[44..], [0xbf, 0x67, 0x1e, 0xd0]);
    }

    #[test]
    fn the_trailer_stands_at_the_end_of_the_last_cell() {
        let expected = [0, 0, 0, 9, 0xfb, 0xb9, 0x71, 0x24];
        let pdu = pdu(b"123456789");
        assert_eq!(pdu.len(), 48);
        assert_eq!(pdu[9..40], [0; 31]);
        assert_eq!(pdu[40..], expected);
    }

    #[test]
    fn forty_octets_fit_one_cell_and_one_more_takes_two() {
        assert_eq!([0, 1, 40, 41, 88, 89].map(cells), [1, 1, 1, 2, 2, 3]);
        // The edges that the standards' frame sizes have: LANE 1516, 4544, 9234, 18190; classical IP 9188.
        assert_eq!([1516, 4544, 9234, 18_190, 9188].map(cells), [32, 95, 193, 380, 192]);
        assert_eq!(MOST_CELLS, 1366);
    }

    #[test]
    fn every_flipped_bit_of_three_cells_is_caught() {
        let mut pdu = pdu(&[0x41; 104]);
        assert_eq!(pdu.len(), 144);
        for bit in 0..1152 {
            pdu[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&pdu).is_err(), "bit {bit}");
            pdu[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(parse(&pdu), Ok(&[0x41; 104][..]));
    }

    #[test]
    fn a_lost_cell_and_an_abort_have_a_wrong_length() {
        let pdu = pdu(&[7; 200]);
        assert_eq!(parse(&pdu[48..]), Err(Bad::Length));
        assert_eq!(parse(&[]), Err(Bad::Length));
        assert_eq!(parse(&[0; 48]), Err(Bad::Length));
    }

    proptest! {
        // One length in 48 leaves no padding.
        #![proptest_config(ProptestConfig { cases: 5 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

        #[test]
        fn what_is_cut_into_cells_is_joined_again(
            sdu in prop::collection::vec(any::<u8>(), 1..600),
            dirt in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut out = dirt.clone();
            out.extend(&sdu);
            finish(&mut out, dirt.len());
            prop_assert_eq!(&out[..dirt.len()], &dirt[..]);
            let cells_cut: Vec<&[u8]> = out[dirt.len()..].chunks(PAYLOAD_OCTETS).collect();
            prop_assert!(cells_cut.iter().all(|cell| cell.len() == PAYLOAD_OCTETS));
            prop_assert_eq!(cells_cut.len(), cells(sdu.len()));
            let joined = cells_cut.concat();
            prop_assert_eq!(parse(&joined), Ok(&sdu[..]));
        }
    }
}
