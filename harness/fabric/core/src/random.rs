// SPDX-License-Identifier: Apache-2.0
//! Seeded random streams: one for each thing that draws, so that what one draws does not change what
//! another does.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// A stream of ChaCha8, whose output is fixed by its specification, not by a library's version.
#[derive(Clone, Debug)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream for `purpose` at `port` of the segment called `segment` in a run seeded `seed`.
    pub fn new(seed: u64, segment: &str, port: usize, purpose: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&fnv1a(segment.as_bytes()).to_le_bytes());
        key[16..24].copy_from_slice(&(port as u64).to_le_bytes());
        key[24..].copy_from_slice(b"sundial1");
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(purpose);
        Self(generator)
    }

    /// Any of the 2^32 values alike.
    pub fn draw(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// Uniform in 0..`bound` for a power of two, and as near as 32 bits allow otherwise.
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.draw()) * u64::from(bound)) >> 32) as u32
    }
}

/// FNV-1a, 64 bits (draft-eastlake-fnv): a name as a number.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hash_to_the_published_values() {
        // Test vectors of draft-eastlake-fnv, appendix C.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn streams_differ_in_every_coordinate_and_repeat() {
        let first = |seed, name, port, purpose| Stream::new(seed, name, port, purpose).draw();
        let base = first(1, "lan", 0, 0);
        assert_eq!(base, first(1, "lan", 0, 0));
        assert_ne!(base, first(2, "lan", 0, 0));
        assert_ne!(base, first(1, "wan", 0, 0));
        assert_ne!(base, first(1, "lan", 1, 0));
        assert_ne!(base, first(1, "lan", 0, 1));
    }
}
