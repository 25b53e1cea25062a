// SPDX-License-Identifier: Apache-2.0
//! Addresses, names, TLVs and flags of control frames.

use super::ELAN_NAME_OCTETS;
use crate::ethernet::Address;

/// An address of an ATM end system: 20 octets, an ICD address in the format of UNI 3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AtmAddress(pub [u8; 20]);

impl AtmAddress {
    /// What stands in the field where there is no address.
    pub const NONE: Self = Self([0; 20]);

    /// The first of the thirteen octets that a real network would give.
    const NETWORK_PREFIX: [u8; 6] = [0x47, 0x00, 0x05, 0x80, 0xff, 0xe1];

    /// The address whose end system identifier is `mac`.
    pub fn new(mac: Address, selector: u8) -> Self {
        let mut octets = [0; 20];
        octets[..6].copy_from_slice(&Self::NETWORK_PREFIX);
        octets[13..19].copy_from_slice(&mac.0);
        octets[19] = selector;
        Self(octets)
    }
}

/// A LAN destination: 8 octets, a tag and a MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanDestination {
    /// Not present.
    None,
    /// The station, or the group, with this address.
    Mac(Address),
}

impl LanDestination {
    pub(super) fn put(self, out: &mut Vec<u8>) {
        match self {
            Self::None => out.extend([0; 8]),
            Self::Mac(address) => {
                out.extend([0, 1]);
                out.extend(address.0);
            }
        }
    }

    pub(super) fn parse(octets: [u8; 8]) -> Option<Self> {
        match octets {
            [0, 0, 0, 0, 0, 0, 0, 0] => Some(Self::None),
            [0, 1, a, b, c, d, e, f] => Some(Self::Mac(Address([a, b, c, d, e, f]))),
            _ => None,
        }
    }
}

/// The name of an emulated LAN, 32 octets at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElanName(pub(super) Vec<u8>);

impl ElanName {
    /// `None`: longer than 32 octets.
    pub fn new(octets: &[u8]) -> Option<Self> {
        (octets.len() <= ELAN_NAME_OCTETS).then(|| Self(octets.to_vec()))
    }
}

/// A further parameter at the end of a control frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tlv {
    /// OUI and number.
    pub kind: u32,
    pub(super) value: Vec<u8>,
}

impl Tlv {
    /// `None`: `value` is longer than 255 octets.
    pub fn new(kind: u32, value: &[u8]) -> Option<Self> {
        (value.len() <= usize::from(u8::MAX)).then(|| Self { kind, value: value.to_vec() })
    }
}

/// The flags of a control frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub(super) u16);

impl Flags {
    /// LE_ARP_RESPONSE: the address is not that of a client, but behind one.
    pub const REMOTE: Self = Self(0x0001);
    /// LE_JOIN_REQUEST: the client answers for addresses that are not registered.
    pub const PROXY: Self = Self(0x0080);
    /// LE_TOPOLOGY_REQUEST: the topology is changing.
    pub const TOPOLOGY_CHANGE: Self = Self(0x0100);

    /// All of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}
