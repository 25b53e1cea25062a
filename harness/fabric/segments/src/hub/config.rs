// SPDX-License-Identifier: Apache-2.0
//! The fields of a hub.

use serde::Deserialize;
use sundial_core::{Invalid, Segment, SegmentKind, SegmentParameters, Span};

use super::{Hub, HubParameters};

/// A hub as `fabric.json` has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    rate_bps: u64,
    cable_delay_ns: Vec<u64>,
    repeater_delay_ns: u64,
}

impl SegmentKind for Config {
    const NAME: &'static str = "hub";
    type Parameters = HubParameters;

    fn check(self, ports: usize) -> Result<HubParameters, Invalid> {
        if ports < 2 {
            return Err(Invalid::new("ports", "a hub has at least 2 ports"));
        }
        let rate_bps = self.rate_bps;
        if rate_bps != 10_000_000 && rate_bps != 100_000_000 {
            let message = format!("{rate_bps}: a hub runs at 10000000 or 100000000");
            return Err(Invalid::new("rate_bps", message));
        }
        if self.cable_delay_ns.len() != ports {
            let message = format!("{} values for {ports} ports", self.cable_delay_ns.len());
            return Err(Invalid::new("cable_delay_ns", message));
        }
        let parameters = HubParameters {
            rate_bps,
            cable_delay: self.cable_delay_ns.into_iter().map(Span::from_ns).collect(),
            repeater_delay: Span::from_ns(self.repeater_delay_ns),
        };
        check_ways(&parameters, ports)?;
        Ok(parameters)
    }

    fn build(common: &SegmentParameters, parameters: &HubParameters) -> Box<dyn Segment> {
        Box::new(Hub::new(common, parameters.clone()))
    }
}

/// A collision must be heard while the station still sends.
fn check_ways(parameters: &HubParameters, ports: usize) -> Result<(), Invalid> {
    let limit = HubParameters::longest_way(parameters.rate_bps);
    for from in 0..ports {
        for to in 0..from {
            let way = parameters.way(from, to);
            if way > limit {
                let message = format!(
                    "{} ns from port {to} to port {from}, longest is {} ns: the round trip, \
                     carrier sense at both ends and the jam must be within the slot",
                    way.as_ns_floor(),
                    limit.as_ns_floor()
                );
                return Err(Invalid::new("cable_delay_ns", message));
            }
        }
    }
    Ok(())
}
