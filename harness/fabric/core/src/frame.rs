// SPDX-License-Identifier: Apache-2.0
//! A frame as it travels through the fabric.

use std::ops::Deref;
use std::sync::Arc;

/// The longest frame that a segment may be configured for: that of LAN emulation with its largest frame size,
/// 18,190 octets with the LEC ID.
pub const MAX_FRAME_BYTES: usize = 18188;

/// An Ethernet frame from destination address to the end of the payload, without preamble and FCS.
///
/// Cloning shares the bytes: one frame is in a capture, in a queue and on its way at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame(Arc<[u8]>);

impl Frame {
    /// Copies `bytes` once.
    pub fn new(bytes: &[u8]) -> Self {
        Self(Arc::from(bytes))
    }

    /// A copy with bit `bit` (0 is the least significant) of byte `index` inverted.
    pub fn with_flipped_bit(&self, index: usize, bit: u8) -> Self {
        let mut bytes = self.0.to_vec();
        bytes[index] ^= 1 << bit;
        Self(bytes.into())
    }
}

impl Deref for Frame {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Frame {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}
