// SPDX-License-Identifier: Apache-2.0
//! The network agrees to the unit with the one that has an event for each cell.

use proptest::prelude::*;
use serde_json::{Value, json};
use sundial_core::{Frame, SegmentKind, SegmentParameters};
use sundial_wire::atm::encapsulation::Encapsulation;

use super::super::channels::Channels;
use super::super::mesh::Mesh;
use super::super::network::{Event, Settled};
use super::super::parameters::AtmParameters;
use super::super::pdu::{Content, Pdu};
use super::super::train::Run;
use super::super::{Config, stations, units};
use super::fields;
use super::reference::{Handed, Reference, Results};

/// From port 0 to all others.
const TO_ALL: u16 = 36;

/// A frame that a machine hands in: pause before it in ns, from, choice of channel, bytes.
type Input = (u64, usize, usize, usize);

fn channels(ports: usize) -> Channels {
    let mut channels = Mesh::channels(ports);
    let others: Vec<_> = (1..ports).map(|port| (port, TO_ALL)).collect();
    channels.open(0, TO_ALL, &others);
    channels
}

fn pdu(number: usize, from: usize, vci: u16, bytes: usize) -> Pdu {
    // No two are equal.
    let octets: Vec<u8> =
        (0..bytes).map(|at| (at * 7 + number) as u8 ^ (number >> 8) as u8).collect();
    let content = Content::Rfc2684(Encapsulation::Bridged, Frame::from(octets));
    Pdu::new(from, vci, content, Some(number))
}

/// What the fast network makes of `inputs`, and what was handed to it.
fn fast(
    common: &SegmentParameters,
    parameters: &AtmParameters,
    inputs: &[Input],
) -> (Results, Vec<Handed>) {
    let ports = parameters.ports.len();
    let mut network = stations::network(common, parameters, channels(ports));
    let mut now = 0;
    let mut handed = Vec::new();
    for (number, &(pause_ns, from, choice, bytes)) in inputs.iter().enumerate() {
        now += pause_ns * 1000 * 117;
        while let Some(at) = network.next_decision().map(|at| units::at(units::time(at)))
            && at <= now
        {
            network.advance(at);
        }
        network.advance(now);
        let leads_from = |channel: &usize| network.channels.all[*channel].from == from;
        let own: Vec<usize> = (0..network.channels.all.len()).filter(leads_from).collect();
        let channel = own[choice % own.len()];
        let leaves = &network.channels.all[channel].leaves;
        let to = leaves.iter().map(|&leaf| network.channels.leaves[leaf].to).collect();
        let pdu = pdu(number, from, network.channels.all[channel].vci, bytes);
        let at = now + units::of(parameters.ports[from].tx_latency);
        handed.push(Handed { at, from, channel, to, octets: pdu.octets().to_vec() });
        network.send(at, channel, pdu);
    }
    while let Some(at) = network.next_decision() {
        network.advance(units::at(units::time(at)));
    }
    let mut results = Results::new();
    while let Some(event) = network.poll_event() {
        if let Event::Settled(Settled { to, arrived, outcome, .. }) = event {
            let number = arrived.pdu.sending.expect("every PDU has a number");
            let cells = arrived.cells.iter().flat_map(Run::cells);
            let cells = cells.map(|cell| (cell.index, cell.at)).collect();
            let before = results.insert((number, to), (outcome, cells));
            assert!(before.is_none(), "a PDU has one outcome");
        }
    }
    (results, handed)
}

fn optional<T: Into<Value>>(value: Option<T>) -> Value {
    value.map_or(Value::Null, Into::into)
}

prop_compose! {
    fn settings()(
        ports in 2..7_usize,
    )(
        lines in prop::collection::vec(prop_oneof![
            2 => Just((149_760_000_u64, 53)), 1 => Just((25_600_000, 54)), 1 => Just((100_000_000, 54)),
            1 => (20_000_000..400_000_000_u64).prop_map(|rate| (rate, 53)),
        ], ports),
        times in prop::collection::vec((0..3_000_u64, prop_oneof![Just(0), 0..9_000_u64]), ports),
        contracts in prop::collection::vec(prop::option::weighted(
            0.3, (10_000_000..200_000_000_u64, 0..60_000_u64, any::<bool>())
        ), ports),
        shaping in prop::collection::vec(prop::option::weighted(0.2, 10_000_000..200_000_000_u64), ports),
        faults in prop::collection::vec(prop::option::weighted(0.15, (0.0..0.1_f64, 0.0..0.1_f64)), ports),
        queue in (1..65_u64, 0..3_usize, 0.0..1.0_f64, prop::option::weighted(0.2, 0.0..1.0_f64),
            prop::option::weighted(0.4, 0.0..1.0_f64)),
        cells in any::<bool>(),
        latency in (prop_oneof![Just(0), 0..20_000_u64], prop_oneof![4 => Just(0), 1 => 0..9_000_u64]),
    ) -> Value {
        let (places, discard, above, vc_cells, clp1_above) = queue;
        let share = |share: f64| 1 + (share * (places - 1) as f64) as u64;
        let mut fields = fields(lines.len());
        fields["lines"] = lines.iter()
            .map(|(rate, octets)| json!({ "rate_bps": rate, "cell_octets": octets })).collect();
        fields["propagation_ns"] = times.iter().map(|(propagation, _)| *propagation).collect();
        fields["tx_latency_ns"] = times.iter().map(|(_, latency)| *latency).collect();
        fields["contracts"] = contracts.iter().map(|contract| {
            optional(contract.map(|(rate, tolerance, tags)| json!({
                "rate_bps": rate, "tolerance_ns": tolerance, "action": if tags { "tag" } else { "drop" },
            })))
        }).collect();
        fields["shaping_bps"] = shaping.iter().map(|rate| optional(*rate)).collect();
        let faults: Value = faults.iter().map(|fault| optional(fault.map(|(loss, bit)| json!({
            "cell_loss": loss, "payload_bit": bit, "header_bit": bit,
        })))).collect();
        fields["impairments"] = json!({ "from": faults, "to": faults });
        let name = ["tail", "ppd", "epd"][discard];
        fields["queue"] = json!({
            "cells": places,
            "discard": name,
            "epd_above": (discard == 2).then(|| share(above)),
            "vc_cells": vc_cells.map(share),
            "clp1_above": clp1_above.map(share),
        });
        fields["interleave"] = if cells { "cells" } else { "pdu" }.into();
        fields["cell_latency_ns"] = latency.0.into();
        fields["cdv_ns"] = latency.1.into();
        fields
    }
}

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let pause = prop_oneof![3 => Just(0_u64), 2 => 0..20_000_u64, 2 => 0..400_000_u64];
    let bytes = prop_oneof![14..200_usize, 14..2000_usize];
    prop::collection::vec((pause, 0..6_usize, 0..9_usize, bytes), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn runs_of_cells_and_single_cells_agree(settings in settings(), mut inputs in inputs()) {
        let ports = settings["lines"].as_array().expect("a list").len();
        let config: Config = serde_json::from_value(settings).expect("the fields are right");
        let parameters = config.check(ports).expect("the fields are right");
        for input in &mut inputs {
            input.1 %= ports;
        }
        let common = SegmentParameters::of_machines(ports, 1);
        let (results, handed) = fast(&common, &parameters, &inputs);
        let expected = Reference::new(&common, &parameters, &handed).run();
        prop_assert_eq!(results, expected);
    }
}
