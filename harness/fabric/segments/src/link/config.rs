// SPDX-License-Identifier: Apache-2.0
//! The fields of a link.

use std::collections::BTreeMap;

use serde::Deserialize;
use sundial_core::{
    Change, Invalid, Segment, SegmentKind, SegmentParameters, Span, check_order, check_rate,
};

use super::{Impairments, Link, LinkChange, LinkParameters};

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
    /// In order of time.
    #[serde(default)]
    timeline: Vec<Change<Impairments>>,
    /// Whether changes may come over the control socket.
    #[serde(default)]
    by_hand: bool,
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
        let impairments = by_way(self.impairments)?;
        check_order(&self.timeline)?;
        let timeline = self.timeline.into_iter().enumerate().map(|(index, change)| {
            check_change(change).map_err(|invalid| invalid.within(&format!("timeline[{index}]")))
        });
        let timeline = timeline.collect::<Result<_, _>>()?;
        let propagation = Span::from_ns(self.propagation_ns);
        let Self { rate_bps, by_hand, .. } = self;
        Ok(LinkParameters { rate_bps, propagation, impairments, timeline, by_hand })
    }

    fn build(common: &SegmentParameters, parameters: &LinkParameters) -> Box<dyn Segment> {
        Box::new(Link::new(common, parameters.clone()))
    }
}

/// Impairments by way, from those by sending port.
fn by_way(
    by_port: BTreeMap<String, Impairments>,
) -> Result<[Option<Box<Impairments>>; 2], Invalid> {
    let mut ways = [None, None];
    for (port, settings) in by_port {
        let field = format!("impairments.{port}");
        let place = match port.as_str() {
            "0" => &mut ways[0],
            "1" => &mut ways[1],
            _ => {
                let message = "keys are the sending ports \"0\" and \"1\"";
                return Err(Invalid::new(field, message));
            }
        };
        settings.check().map_err(|invalid| invalid.within(&field))?;
        *place = Some(Box::new(settings));
    }
    Ok(ways)
}

pub(super) fn check_change(change: Change<Impairments>) -> Result<LinkChange, Invalid> {
    let (at, blocks) = (change.at(), change.blocks(2)?);
    Ok(LinkChange { at, note: change.note, blocks, impairments: by_way(change.impairments)? })
}
