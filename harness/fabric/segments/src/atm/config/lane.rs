// SPDX-License-Identifier: Apache-2.0
//! The fields of LAN emulation.

use std::sync::Arc;

use serde::Deserialize;
use sundial_core::{Invalid, Span};
use sundial_wire::atm::lane::{ElanName, FrameSize, LEC_ID_OCTETS};

use super::super::lane::{LaneSettings, Resolution};
use super::super::parameters::{AtmParameters, Carriage, LaneParameters};
use super::super::units;
use super::{LineFields, span, within};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LaneFields {
    frame_size: usize,
    resolution: ResolutionName,
    vc_setup_ns: u64,
    service_latency_ns: u64,
    service_line: LineFields,
    unknown_frames: usize,
    unknown_frame_time_ns: u64,
    control_time_out_ns: u64,
    vcc_time_out_ns: u64,
    retries: u32,
    ageing_ns: u64,
    forward_delay_ns: u64,
    le_arp_response_time_ns: u64,
    flush_time_out_ns: u64,
    path_switching_delay_ns: u64,
    elan: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ResolutionName {
    LeArp,
    Static,
}

/// A day. LAN emulation's longest time, C12, has no limit of its own.
const MOST_TIMER_NS: u64 = 86_400_000_000_000;

/// A timer, which is not 0.
fn timer(ns: u64, field: &str) -> Result<Span, Invalid> {
    Ok(Span::from_ns(within(ns, 1..=MOST_TIMER_NS, field)?))
}

impl LaneFields {
    pub(super) fn check(self) -> Result<LaneParameters, Invalid> {
        let frame_size = FrameSize::from_octets(self.frame_size).ok_or_else(|| {
            let message = format!("{} is none of 1516, 4544, 9234, 18190", self.frame_size);
            Invalid::new("lane.frame_size", message)
        })?;
        let elan = ElanName::new(self.elan.as_bytes()).ok_or_else(|| {
            Invalid::new("lane.elan", format!("{:?} is longer than 32 octets", self.elan))
        })?;
        let settings = LaneSettings {
            resolution: match self.resolution {
                ResolutionName::LeArp => Resolution::LeArp,
                ResolutionName::Static => Resolution::Static,
            },
            frame_size,
            elan,
            control_time_out: timer(self.control_time_out_ns, "lane.control_time_out_ns")?,
            // af-lane-0021, C10: 1 to 10.
            unknown_frames: within(self.unknown_frames, 1..=10, "lane.unknown_frames")?,
            unknown_frame_time: timer(self.unknown_frame_time_ns, "lane.unknown_frame_time_ns")?,
            vcc_time_out: timer(self.vcc_time_out_ns, "lane.vcc_time_out_ns")?,
            // C13: 0 to 2.
            retries: within(self.retries, 0..=2, "lane.retries")?,
            ageing: timer(self.ageing_ns, "lane.ageing_ns")?,
            forward_delay: timer(self.forward_delay_ns, "lane.forward_delay_ns")?,
            le_arp_response_time: timer(
                self.le_arp_response_time_ns,
                "lane.le_arp_response_time_ns",
            )?,
            flush_time_out: timer(self.flush_time_out_ns, "lane.flush_time_out_ns")?,
            path_switching_delay: timer(
                self.path_switching_delay_ns,
                "lane.path_switching_delay_ns",
            )?,
            service_latency: span(self.service_latency_ns, "lane.service_latency_ns")?,
        };
        Ok(LaneParameters {
            settings: Arc::new(settings),
            most_frame_bytes: self.frame_size - LEC_ID_OCTETS,
            vc_setup: span(self.vc_setup_ns, "lane.vc_setup_ns")?,
            service_line: self.service_line.check("lane.service_line")?,
        })
    }
}

/// What a port causes at another by setting up a VC must take at least as long as a frame would: the bounds of
/// what a machine can receive rest on that.
pub(super) fn check_vc_setup(parameters: &AtmParameters) -> Result<(), Invalid> {
    let Carriage::Lane(LaneParameters { vc_setup, settings, .. }) = &parameters.carriage else {
        return Ok(());
    };
    let ports = &parameters.ports;
    let most = |of: fn(&super::PortParameters) -> Span| ports.iter().map(of).max();
    let most = |of| most(of).expect("there are ports");
    let line = units::span(ports.iter().map(|port| port.line.cell).max().expect("there are ports"));
    // A padded frame takes two cells, and one more on the second line.
    let longest = most(|port| port.tx_latency)
        + line * 3
        + most(|port| port.propagation) * 2
        + parameters.cell_latency
        + most(|port| port.rx_latency);
    if settings.resolution == Resolution::LeArp && *vc_setup < longest {
        let message = format!(
            "{} is less than the way of the shortest frame, {}",
            vc_setup.as_ps().div_ceil(1000),
            longest.as_ps().div_ceil(1000)
        );
        return Err(Invalid::new("lane.vc_setup_ns", message));
    }
    Ok(())
}
