// SPDX-License-Identifier: Apache-2.0
//! The fields of a switch.

use serde::Deserialize;
use sundial_core::{
    Change, Invalid, OneOrEach, Segment, SegmentKind, SegmentParameters, Span, check_order,
    check_rate,
};

use super::{Switch, SwitchChange, SwitchParameters};

/// A switch as `fabric.json` has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    rate_bps: OneOrEach,
    #[serde(default = "yes")]
    full_duplex: bool,
    #[serde(default = "no_propagation")]
    propagation_ns: OneOrEach,
    forwarding_latency_ns: u64,
    queue_frames: usize,
    mac_table_entries: usize,
    ageing_ns: u64,
    /// In order of time.
    #[serde(default)]
    timeline: Vec<Change>,
}

fn yes() -> bool {
    true
}

fn no_propagation() -> OneOrEach {
    OneOrEach::One(0)
}

impl SegmentKind for Config {
    const NAME: &'static str = "switch";
    type Parameters = SwitchParameters;

    fn check(self, ports: usize) -> Result<SwitchParameters, Invalid> {
        if ports < 2 {
            return Err(Invalid::new("ports", "a switch has at least 2 ports"));
        }
        if !self.full_duplex {
            return Err(Invalid::new("full_duplex", "a switch is full duplex; use a hub"));
        }
        let rate_bps = self.rate_bps.each(ports, "rate_bps")?;
        for &rate_bps in &rate_bps {
            check_rate(rate_bps, "rate_bps")?;
        }
        if self.ageing_ns == 0 {
            return Err(Invalid::new("ageing_ns", "must be at least 1"));
        }
        check_order(&self.timeline)?;
        let timeline = self.timeline.into_iter().enumerate().map(|(index, change)| {
            let within = |invalid: Invalid| invalid.within(&format!("timeline[{index}]"));
            check_change(change, ports).map_err(within)
        });
        let timeline = timeline.collect::<Result<_, _>>()?;
        let propagation_ns = self.propagation_ns.each(ports, "propagation_ns")?;
        Ok(SwitchParameters {
            rate_bps,
            propagation: propagation_ns.into_iter().map(Span::from_ns).collect(),
            forwarding_latency: Span::from_ns(self.forwarding_latency_ns),
            queue_frames: self.queue_frames,
            mac_table_entries: self.mac_table_entries,
            ageing: Span::from_ns(self.ageing_ns),
            timeline,
        })
    }

    fn build(common: &SegmentParameters, parameters: &SwitchParameters) -> Box<dyn Segment> {
        Box::new(Switch::new(common, parameters.clone()))
    }
}

pub(super) fn check_change(change: Change, ports: usize) -> Result<SwitchChange, Invalid> {
    let (at, blocks) = (change.at(), change.blocks(ports)?);
    Ok(SwitchChange { at, note: change.note, blocks })
}
