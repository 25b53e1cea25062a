// SPDX-License-Identifier: Apache-2.0
//! The fields of a backplane.

use serde::Deserialize;
use sundial_core::{Invalid, Segment, SegmentKind, SegmentParameters, Span, check_rate};

use super::wire::{HEADER_BYTES, WORD_BYTES};
use super::{Backplane, BackplaneParameters};

const NS_PER_S: u64 = 1_000_000_000;

/// A backplane as `fabric.json` has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    word_latency_ns: u64,
    link_rate_bps: u64,
    dma_rate_bps: u64,
    /// The number of the node at each port.
    nodes: Vec<u16>,
}

impl SegmentKind for Config {
    const NAME: &'static str = "vmmc";
    type Parameters = BackplaneParameters;

    fn check(self, ports: usize) -> Result<BackplaneParameters, Invalid> {
        check_rate(self.link_rate_bps, "link_rate_bps")?;
        check_rate(self.dma_rate_bps, "dma_rate_bps")?;
        let word = |bytes, rate| Span::of_bits(8 * bytes, rate);
        let moved = word(WORD_BYTES, self.dma_rate_bps);
        let latency = Span::from_ns(self.word_latency_ns);
        if latency <= moved {
            let message = format!(
                "a word's memory access alone takes {} ps at {} bit/s",
                moved.as_ps(),
                self.dma_rate_bps
            );
            return Err(Invalid::new("word_latency_ns", message));
        }
        if !(8 * NS_PER_S).is_multiple_of(self.link_rate_bps) {
            let message = "a byte must take whole nanoseconds: 8 Gbit/s divided by a whole number";
            return Err(Invalid::new("link_rate_bps", message));
        }
        // Else a packet would be in memory before its last bit has left.
        let least = latency.as_ps();
        if word(HEADER_BYTES as u64 + WORD_BYTES, self.link_rate_bps).as_ps() > least
            || self.link_rate_bps < self.dma_rate_bps
        {
            let message = "is below dma_rate_bps, or a word takes longer than word_latency_ns";
            return Err(Invalid::new("link_rate_bps", message));
        }
        if self.nodes.len() != ports {
            let message = format!("one for each of the {ports} ports");
            return Err(Invalid::new("nodes", message));
        }
        if let Some(index) = (1..ports).find(|&at| self.nodes[..at].contains(&self.nodes[at])) {
            return Err(Invalid::new(format!("nodes[{index}]"), "is at two ports"));
        }
        Ok(BackplaneParameters {
            way: latency - moved,
            link_rate_bps: self.link_rate_bps,
            dma_rate_bps: self.dma_rate_bps,
            nodes: self.nodes,
        })
    }

    fn build(common: &SegmentParameters, parameters: &BackplaneParameters) -> Box<dyn Segment> {
        Box::new(Backplane::new(common, parameters.clone()))
    }
}
