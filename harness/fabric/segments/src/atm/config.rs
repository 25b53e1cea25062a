// SPDX-License-Identifier: Apache-2.0
//! The fields of a segment of ATM.

mod impairments;
mod lane;
mod plain;
mod queue;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use serde::Deserialize;
use sundial_core::{Invalid, Segment, SegmentKind, SegmentParameters, Span};
use sundial_wire::atm::encapsulation::Encapsulation;

use super::parameters::{
    Action, AtmParameters, CaptureParameters, Carriage, Contract, Impairments, Interleave,
    LineParameters, PortParameters,
};
use super::{Atm, units};
use lane::LaneFields;
use queue::QueueFields;

pub use plain::plain_fields;

/// A segment of ATM as `fabric.json` has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    lines: Vec<LineFields>,
    propagation_ns: Vec<u64>,
    tx_latency_ns: Vec<u64>,
    rx_latency_ns: Vec<u64>,
    encapsulation: EncapsulationName,
    interleave: Interleave,
    cell_latency_ns: u64,
    cdv_ns: u64,
    queue: QueueFields,
    contracts: Vec<Option<ContractFields>>,
    shaping_bps: Vec<Option<u64>>,
    impairments: ImpairmentFields,
    lane: Option<LaneFields>,
    addresses: Option<Vec<Vec<Ipv4Addr>>>,
    capture: CaptureFields,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LineFields {
    rate_bps: u64,
    cell_octets: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EncapsulationName {
    Lane,
    Bridged,
    BridgedFcs,
    Routed,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContractFields {
    rate_bps: u64,
    tolerance_ns: u64,
    action: Action,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImpairmentFields {
    from: Vec<Option<Impairments>>,
    to: Vec<Option<Impairments>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaptureFields {
    cells: bool,
    cells_most: u64,
}

/// Slower lines would take hours for a queue, faster ones less than 1/117 ps for a bit.
const RATES_BPS: RangeInclusive<u64> = 64_000..=1_000_000_000_000;
/// A cell, and room for what a line puts before each.
const CELL_OCTETS: RangeInclusive<u32> = 53..=128;
/// Ten seconds: no ATM network has more, and sums stay far from the end of the clock.
const TIMES_NS: RangeInclusive<u64> = 0..=10_000_000_000;
/// What the cells of contracts and of shaping are counted as.
const COUNTED_OCTETS: u32 = 53;

/// `value` in `range`, or an error for `field`.
fn within<T: PartialOrd + std::fmt::Display + Copy>(
    value: T,
    range: RangeInclusive<T>,
    field: &str,
) -> Result<T, Invalid> {
    if range.contains(&value) {
        return Ok(value);
    }
    let message = format!("{value} is outside {} to {}", range.start(), range.end());
    Err(Invalid::new(field, message))
}

fn span(ns: u64, field: &str) -> Result<Span, Invalid> {
    Ok(Span::from_ns(within(ns, TIMES_NS, field)?))
}

/// One value for each of `ports` ports.
fn by_port<T>(values: Vec<T>, ports: usize, field: &str) -> Result<Vec<T>, Invalid> {
    if values.len() == ports {
        return Ok(values);
    }
    Err(Invalid::new(field, format!("{} values for {ports} ports", values.len())))
}

impl LineFields {
    fn check(&self, field: &str) -> Result<LineParameters, Invalid> {
        let rate_bps = within(self.rate_bps, RATES_BPS, &format!("{field}.rate_bps"))?;
        let octets = within(self.cell_octets, CELL_OCTETS, &format!("{field}.cell_octets"))?;
        Ok(LineParameters { rate_bps, cell: units::of_cell(octets, rate_bps) })
    }
}

impl ContractFields {
    fn check(&self, field: &str) -> Result<Contract, Invalid> {
        let rate_bps = within(self.rate_bps, RATES_BPS, &format!("{field}.rate_bps"))?;
        let tolerance = span(self.tolerance_ns, &format!("{field}.tolerance_ns"))?;
        Ok(Contract {
            interval: units::of_cell(COUNTED_OCTETS, rate_bps),
            tolerance: units::of(tolerance),
            action: self.action,
        })
    }
}

impl Config {
    fn check_ports(&mut self, ports: usize) -> Result<Vec<PortParameters>, Invalid> {
        let take = |values: &mut Vec<u64>, field| by_port(std::mem::take(values), ports, field);
        let lines = by_port(std::mem::take(&mut self.lines), ports, "lines")?;
        let propagation = take(&mut self.propagation_ns, "propagation_ns")?;
        let tx_latency = take(&mut self.tx_latency_ns, "tx_latency_ns")?;
        let rx_latency = take(&mut self.rx_latency_ns, "rx_latency_ns")?;
        let contracts = by_port(std::mem::take(&mut self.contracts), ports, "contracts")?;
        let shaping = by_port(std::mem::take(&mut self.shaping_bps), ports, "shaping_bps")?;
        let ImpairmentFields { from, to } = &mut self.impairments;
        let mut from = by_port(std::mem::take(from), ports, "impairments.from")?;
        let mut to = by_port(std::mem::take(to), ports, "impairments.to")?;
        let port = |port: usize| {
            let spacing = shaping[port]
                .map(|rate| within(rate, RATES_BPS, &format!("shaping_bps[{port}]")))
                .transpose()?;
            let contract = contracts[port].as_ref();
            let impairments = |values: &mut Vec<Option<Impairments>>, side| {
                let impairments = values[port].take().unwrap_or_default();
                impairments.check(&format!("impairments.{side}[{port}]"))?;
                Ok(impairments)
            };
            Ok(PortParameters {
                line: lines[port].check(&format!("lines[{port}]"))?,
                propagation: span(propagation[port], &format!("propagation_ns[{port}]"))?,
                tx_latency: span(tx_latency[port], &format!("tx_latency_ns[{port}]"))?,
                rx_latency: span(rx_latency[port], &format!("rx_latency_ns[{port}]"))?,
                contract: contract
                    .map(|contract| contract.check(&format!("contracts[{port}]")))
                    .transpose()?,
                shaping: spacing.map(|rate_bps| units::of_cell(COUNTED_OCTETS, rate_bps)),
                from_adapter: impairments(&mut from, "from")?,
                to_adapter: impairments(&mut to, "to")?,
            })
        };
        (0..ports).map(port).collect()
    }

    fn check_carriage(&mut self, ports: usize) -> Result<Carriage, Invalid> {
        let name = self.encapsulation;
        let belongs = [
            ("lane", self.lane.is_some(), EncapsulationName::Lane),
            ("addresses", self.addresses.is_some(), EncapsulationName::Routed),
        ];
        for (field, is_given, with) in belongs {
            if is_given != (name == with) {
                let word = if is_given { "only" } else { "needed" };
                let with = if with == EncapsulationName::Lane { "lane" } else { "routed" };
                return Err(Invalid::new(field, format!("{word} with encapsulation {with}")));
            }
        }
        Ok(match (name, self.lane.take(), self.addresses.take()) {
            (EncapsulationName::Lane, Some(lane), _) => Carriage::Lane(lane.check()?),
            (EncapsulationName::Routed, _, Some(addresses)) => {
                Carriage::Routed(check_addresses(addresses, ports)?)
            }
            (EncapsulationName::BridgedFcs, ..) => Carriage::Bridged(Encapsulation::BridgedWithFcs),
            _ => Carriage::Bridged(Encapsulation::Bridged),
        })
    }
}

fn check_addresses(
    addresses: Vec<Vec<Ipv4Addr>>,
    ports: usize,
) -> Result<Vec<Vec<Ipv4Addr>>, Invalid> {
    let addresses = by_port(addresses, ports, "addresses")?;
    let mut seen = BTreeSet::new();
    match addresses.iter().flatten().find(|&&address| !seen.insert(address)) {
        Some(twice) => Err(Invalid::new("addresses", format!("{twice} is there twice"))),
        None => Ok(addresses),
    }
}

impl SegmentKind for Config {
    const NAME: &'static str = "atm";
    type Parameters = AtmParameters;

    fn check(mut self, ports: usize) -> Result<AtmParameters, Invalid> {
        if ports < 2 {
            return Err(Invalid::new("ports", "a segment of ATM has at least 2 ports"));
        }
        let parameters = AtmParameters {
            ports: self.check_ports(ports)?,
            carriage: self.check_carriage(ports)?,
            interleave: self.interleave,
            cell_latency: span(self.cell_latency_ns, "cell_latency_ns")?,
            cdv: span(self.cdv_ns, "cdv_ns")?,
            queue: self.queue.check()?,
            capture: CaptureParameters {
                cells: self.capture.cells,
                cells_most: within(self.capture.cells_most, 1..=u64::MAX, "capture.cells_most")?,
            },
        };
        lane::check_vc_setup(&parameters)?;
        Ok(parameters)
    }

    fn build(common: &SegmentParameters, parameters: &AtmParameters) -> Box<dyn Segment> {
        Box::new(Atm::new(common, parameters.clone()))
    }
}

#[cfg(test)]
mod tests;
