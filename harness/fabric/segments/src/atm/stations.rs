// SPDX-License-Identifier: Apache-2.0
//! The network of a segment, built from its parameters.

use sundial_core::{SegmentParameters, Stream};

use super::channels::Channels;
use super::crossing::Crossing;
use super::faults::{Direction, Faults};
use super::gcra::Gcra;
use super::network::{Network, Station, StationCounters};
use super::output::Output;
use super::parameters::{AtmParameters, Carriage, PortParameters};
use super::units::{self, Units};
use super::uplink::Uplink;

/// Keeps the stream of cell delay variation apart from those of faults.
const VARIATION: u64 = 0x30;

/// Adapters, lines and switch: a station for each port, and one for the servers of LAN emulation.
pub(super) fn network(
    common: &SegmentParameters,
    parameters: &AtmParameters,
    mut channels: Channels,
) -> Network {
    let latency = units::of(parameters.cell_latency);
    let mut stations: Vec<Station> = parameters
        .ports
        .iter()
        .enumerate()
        .map(|(port, own)| port_station(common, parameters, port, own, latency))
        .collect();
    if let Carriage::Lane(lane) = &parameters.carriage {
        stations.push(Station {
            uplink: Uplink::new(lane.service_line.cell, None, parameters.interleave),
            crossing: Crossing::new(None, None, latency, None),
            output: Output::new(parameters.queue, lane.service_line.cell, None),
            propagation: 0,
            tx_latency: 0,
            counters: StationCounters::default(),
        });
    }
    for channel in &mut channels.all {
        let contract = parameters.ports.get(channel.from).and_then(|port| port.contract);
        channel.gcra = contract.map(|contract| Gcra::new(contract.interval, contract.tolerance));
    }
    Network::new(stations, channels, latency, units::of(parameters.cdv))
}

fn port_station(
    common: &SegmentParameters,
    parameters: &AtmParameters,
    port: usize,
    own: &PortParameters,
    latency: Units,
) -> Station {
    let variation = units::of(parameters.cdv);
    let cdv = (variation > 0)
        .then(|| (variation, Stream::new(common.seed, &common.name, port, VARIATION)));
    let from = Faults::new(common, port, Direction::FromAdapter, &own.from_adapter);
    let to = Faults::new(common, port, Direction::ToAdapter, &own.to_adapter);
    Station {
        uplink: Uplink::new(own.line.cell, own.shaping, parameters.interleave),
        crossing: Crossing::new(from, own.contract, latency, cdv),
        output: Output::new(parameters.queue, own.line.cell, to),
        propagation: units::of(own.propagation),
        tx_latency: units::of(own.tx_latency),
        counters: StationCounters::default(),
    }
}
