// SPDX-License-Identifier: Apache-2.0
//! What all Ethernet adapters have in common: how long a frame takes and which are refused (IEEE 802.3
//! clauses 3 and 4).

use sundial_core::{Frame, Refusal, Rule, Why};
use sundial_wire::ethernet::HEADER_BYTES;

/// Preamble and start frame delimiter (clauses 3.2.1 and 3.2.2).
pub(crate) const PREAMBLE_BITS: u64 = 64;
/// `interPacketGap`, clause 4.4.2.
pub const GAP_BITS: u64 = 96;
const FCS_BYTES: u64 = 4;
/// `minFrameSize` is 512 bits (clause 4.4.2): 60 octets and the FCS.
const PADDED_BYTES: u64 = 60;
/// Bits of the smallest transmission.
pub(crate) const MIN_WIRE_BITS: u64 = PREAMBLE_BITS + 8 * (PADDED_BYTES + FCS_BYTES);

/// Bits on the wire for a frame of `bytes` (header and payload): preamble, padding and FCS included,
/// the gap after it not.
pub const fn wire_bits(bytes: usize) -> u64 {
    let padded = if (bytes as u64) < PADDED_BYTES { PADDED_BYTES } else { bytes as u64 };
    PREAMBLE_BITS + 8 * (padded + FCS_BYTES)
}

/// Why an adapter does not take `frame`, if it does not.
pub(crate) fn refusal(frame: &Frame, max_frame_bytes: usize) -> Option<Refusal> {
    let bytes = frame.len();
    if bytes < HEADER_BYTES {
        return Some(Refusal::with(Rule::TooShort, Why::Bytes { bytes }));
    }
    if bytes > max_frame_bytes {
        let why = Why::Longest { bytes, longest: max_frame_bytes };
        return Some(Refusal::with(Rule::TooLong, why));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_bits_follow_802_3() {
        // 8 preamble + 60 padded + 4 FCS = 72 bytes; 8 + 1514 + 4 = 1526 bytes.
        assert_eq!(wire_bits(14), 576);
        assert_eq!(wire_bits(60), 576);
        assert_eq!(wire_bits(61), 584);
        assert_eq!(wire_bits(1514), 12_208);
    }
}
