// SPDX-License-Identifier: Apache-2.0
//! Random numbers that depend on the one before.

use sundial_core::Stream;

/// netem's correlated numbers (`get_crandom` in Linux, net/sched/sch_netem.c): each is a mean of a new
/// one and the one before, weighted by the correlation, in 32-bit fixed point.
#[derive(Clone, Debug)]
pub(super) struct Correlated {
    stream: Stream,
    rho: u32,
    last: u32,
}

impl Correlated {
    pub(super) fn new(mut stream: Stream, rho: u32) -> Self {
        let last = stream.draw();
        Self { stream, rho, last }
    }

    /// From now on with another correlation.
    pub(super) fn correlate(&mut self, rho: u32) {
        self.rho = rho;
    }

    /// What the new ones are drawn from.
    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(super) fn next(&mut self) -> u32 {
        let value = self.stream.draw();
        if self.rho == 0 {
            return value;
        }
        self.last = blend(value, self.last, self.rho);
        self.last
    }
}

/// `(value * (2^32 - (rho + 1)) + last * (rho + 1)) / 2^32`, in 64 bits as the kernel does.
fn blend(value: u32, last: u32, rho: u32) -> u32 {
    let rho = u64::from(rho) + 1;
    let sum = u64::from(value) * ((1 << 32) - rho) + u64::from(last) * rho;
    (sum >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_correlation_repeats_and_half_is_the_mean() {
        // rho = 2^32 - 1 weighs the last value with all of 2^32.
        assert_eq!(blend(5, 77, u32::MAX), 77);
        // rho + 1 = 2^31: the mean of both.
        assert_eq!(blend(10, 20, (1 << 31) - 1), 15);
        assert_eq!(blend(u32::MAX, u32::MAX, 12345), u32::MAX);
    }
}
