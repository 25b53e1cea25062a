// SPDX-License-Identifier: Apache-2.0
//! The blocks of a pcapng file that a capture needs, little-endian whatever the host is.
//!
//! Read first: the pcapng draft (draft-ietf-opsawg-pcapng), sections 3.5 options, 4.1 section header,
//! 4.2 interface description, 4.3 enhanced packet, 4.6 interface statistics.
//!
//! ```text
//! | type u32 | length u32 | body, padded to 4 | length u32 |
//! ```

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_SPEED: u16 = 8;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;

/// What the bytes of a packet begin with: a number of <https://www.tcpdump.org/linktypes.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkType(pub u16);

impl LinkType {
    /// LINKTYPE_ETHERNET: an Ethernet header, no preamble and no FCS.
    pub const ETHERNET: Self = Self(1);
    /// LINKTYPE_ERF: a header of Endace's extensible record format, then what it says.
    pub const ERF: Self = Self(197);
}

/// Bits 0 and 1 of `epb_flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// 00: unknown; the option is left out.
    Unknown,
    /// 01.
    Inbound,
    /// 10.
    Outbound,
}

/// Appends a section header that names `application` as the writer.
pub fn put_section_header(out: &mut Vec<u8>, application: &str) {
    block(out, SECTION_HEADER, |out| {
        put_u32(out, BYTE_ORDER_MAGIC);
        put_u16(out, 1);
        put_u16(out, 0);
        // Section length unknown: readers skip block by block.
        out.extend(u64::MAX.to_le_bytes());
        put_option(out, SHB_USERAPPL, application.as_bytes());
        put_option(out, OPT_END, &[]);
    });
}

/// Appends an interface with nanosecond stamps. `speed_bps` 0 is left out.
pub fn put_interface(out: &mut Vec<u8>, link_type: LinkType, name: &str, speed_bps: u64) {
    block(out, INTERFACE_DESCRIPTION, |out| {
        put_u16(out, link_type.0);
        put_u16(out, 0);
        // Snap length 0: no limit.
        put_u32(out, 0);
        put_option(out, IF_NAME, name.as_bytes());
        if speed_bps != 0 {
            put_option(out, IF_SPEED, &speed_bps.to_le_bytes());
        }
        put_option(out, IF_TSRESOL, &[9]);
        put_option(out, OPT_END, &[]);
    });
}

/// Appends a packet stamped `stamp_ns` (ns since 1970) on the interface numbered `interface`.
pub fn put_packet(
    out: &mut Vec<u8>,
    interface: u32,
    stamp_ns: u64,
    direction: Direction,
    bytes: &[u8],
    comment: Option<&str>,
) {
    let put = |out: &mut Vec<u8>| out.extend_from_slice(bytes);
    put_packet_with(out, interface, stamp_ns, direction, put, comment);
}

/// The same for a packet whose bytes `put` appends.
pub fn put_packet_with(
    out: &mut Vec<u8>,
    interface: u32,
    stamp_ns: u64,
    direction: Direction,
    put: impl FnOnce(&mut Vec<u8>),
    comment: Option<&str>,
) {
    block(out, ENHANCED_PACKET, |out| {
        put_u32(out, interface);
        put_u32(out, (stamp_ns >> 32) as u32);
        put_u32(out, stamp_ns as u32);
        let lengths = out.len();
        out.extend_from_slice(&[0; 8]);
        put(out);
        let bytes = out.len() - (lengths + 8);
        let length = u32::try_from(bytes).expect("packets are a few kilobytes").to_le_bytes();
        out[lengths..lengths + 4].copy_from_slice(&length);
        out[lengths + 4..lengths + 8].copy_from_slice(&length);
        put_padding(out, bytes);
        let flags = match direction {
            Direction::Unknown => 0_u32,
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        if flags != 0 {
            put_option(out, EPB_FLAGS, &flags.to_le_bytes());
        }
        if let Some(comment) = comment {
            put_option(out, OPT_COMMENT, comment.as_bytes());
        }
        if flags != 0 || comment.is_some() {
            put_option(out, OPT_END, &[]);
        }
    });
}

/// Appends a comment stamped `stamp_ns` on the interface numbered `interface`: an interface statistics block without
/// statistics, the one block that has a stamp and no packet.
pub fn put_comment(out: &mut Vec<u8>, interface: u32, stamp_ns: u64, text: &str) {
    block(out, INTERFACE_STATISTICS, |out| {
        put_u32(out, interface);
        put_u32(out, (stamp_ns >> 32) as u32);
        put_u32(out, stamp_ns as u32);
        put_option(out, OPT_COMMENT, text.as_bytes());
        put_option(out, OPT_END, &[]);
    });
}

/// Writes the frame of a block around what `body` appends.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    put_u32(out, kind);
    put_u32(out, 0);
    body(out);
    let length = u32::try_from(out.len() - start + 4).expect("blocks are a few kilobytes");
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    put_u32(out, length);
}

fn put_option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    put_u16(out, code);
    put_u16(out, u16::try_from(value.len()).expect("options are names and comments"));
    put_padded(out, value);
}

fn put_padded(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
    put_padding(out, bytes.len());
}

/// Fills up what `bytes` bytes lack to a multiple of 4.
fn put_padding(out: &mut Vec<u8>, bytes: usize) {
    let padding = bytes.wrapping_neg() % 4;
    out.extend_from_slice(&[0; 3][..padding]);
}

fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Written by hand from the draft's figures.
    #[test]
    fn a_section_header_is_the_drafts() {
        let mut out = Vec::new();
        put_section_header(&mut out, "abc");
        #[rustfmt::skip]
        let expected = [
            0x0a, 0x0d, 0x0d, 0x0a, 40, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
            4, 0, 3, 0, b'a', b'b', b'c', 0, 0, 0, 0, 0, 40, 0, 0, 0,
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn an_interface_has_name_speed_and_nanoseconds() {
        let mut out = Vec::new();
        put_interface(&mut out, LinkType::ETHERNET, "a:e0", 10_000_000);
        #[rustfmt::skip]
        let expected = [
            1, 0, 0, 0, 52, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
            2, 0, 4, 0, b'a', b':', b'e', b'0',
            8, 0, 8, 0, 0x80, 0x96, 0x98, 0, 0, 0, 0, 0,
            9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0,
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn the_link_type_is_the_callers() {
        let mut out = Vec::new();
        put_interface(&mut out, LinkType(123), "a:e0", 0);
        assert_eq!(out[8..10], [123, 0]);
    }

    #[test]
    fn a_packet_has_flags_and_comment() {
        let mut out = Vec::new();
        let stamp = 0x0123_4567_89ab_cdef;
        put_packet(&mut out, 2, stamp, Direction::Outbound, &[1, 2, 3, 4, 5], Some("hi"));
        #[rustfmt::skip]
        let expected = [
            6, 0, 0, 0, 60, 0, 0, 0, 2, 0, 0, 0,
            0x67, 0x45, 0x23, 0x01, 0xef, 0xcd, 0xab, 0x89, 5, 0, 0, 0, 5, 0, 0, 0,
            1, 2, 3, 4, 5, 0, 0, 0, 2, 0, 4, 0, 2, 0, 0, 0,
            1, 0, 2, 0, b'h', b'i', 0, 0, 0, 0, 0, 0, 60, 0, 0, 0,
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn a_comment_without_a_packet_has_its_stamp() {
        let mut out = Vec::new();
        put_comment(&mut out, 2, 0x0123_4567_89ab_cdef, "cut");
        #[rustfmt::skip]
        let expected = [
            5, 0, 0, 0, 36, 0, 0, 0, 2, 0, 0, 0, 0x67, 0x45, 0x23, 0x01, 0xef, 0xcd, 0xab, 0x89,
            1, 0, 3, 0, b'c', b'u', b't', 0, 0, 0, 0, 0, 36, 0, 0, 0,
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn a_bare_packet_carries_no_options() {
        let mut out = Vec::new();
        put_packet(&mut out, 0, 1, Direction::Unknown, &[], None);
        assert_eq!(out.len(), 32);
    }

    proptest! {
        #[test]
        fn every_block_is_framed_and_aligned(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            comment in prop::option::of("[ -~]{0,40}"),
            dirt in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            let mut out = dirt.clone();
            put_packet(&mut out, 1, 7, Direction::Inbound, &bytes, comment.as_deref());
            prop_assert_eq!(&out[..dirt.len()], &dirt[..]);
            let block = &out[dirt.len()..];
            let length = block.len() as u32;
            prop_assert_eq!(length % 4, 0);
            prop_assert_eq!(&block[4..8], &length.to_le_bytes());
            prop_assert_eq!(&block[block.len() - 4..], &length.to_le_bytes());
            prop_assert_eq!(&block[28..28 + bytes.len()], &bytes[..]);
        }
    }
}
