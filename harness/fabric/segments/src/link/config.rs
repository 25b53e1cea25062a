// SPDX-License-Identifier: Apache-2.0
//! The fields of a link.

use std::collections::BTreeMap;

use serde::Deserialize;
use sundial_core::{Invalid, Segment, SegmentKind, SegmentParameters, Span, check_rate};

use super::{Impairments, Link, LinkParameters};

/// A link as `fabric.json` has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    rate_bps: u64,
    #[serde(default)]
    propagation_ns: u64,
    /// By sending port.
    #[serde(default)]
    impairments: BTreeMap<String, Impairments>,
}

impl SegmentKind for Config {
    const NAME: &'static str = "link";
    type Parameters = LinkParameters;

    fn check(self, ports: usize) -> Result<LinkParameters, Invalid> {
        if ports != 2 {
            let message = format!("a link has exactly 2 ports, here are {ports}");
            return Err(Invalid::new("ports", message));
        }
        check_rate(self.rate_bps, "rate_bps")?;
        let mut impairments = [None, None];
        for (port, settings) in self.impairments {
            let field = format!("impairments.{port}");
            let place = match port.as_str() {
                "0" => &mut impairments[0],
                "1" => &mut impairments[1],
                _ => {
                    let message = "keys are the sending ports \"0\" and \"1\"";
                    return Err(Invalid::new(field, message));
                }
            };
            settings.check().map_err(|invalid| invalid.within(&field))?;
            *place = Some(Box::new(settings));
        }
        let propagation = Span::from_ns(self.propagation_ns);
        Ok(LinkParameters { rate_bps: self.rate_bps, propagation, impairments })
    }

    fn build(common: &SegmentParameters, parameters: &LinkParameters) -> Box<dyn Segment> {
        Box::new(Link::new(common, parameters.clone()))
    }
}
