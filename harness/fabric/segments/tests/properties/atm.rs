// SPDX-License-Identifier: Apache-2.0
//! Segments of ATM with every setting, and what must hold for them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use sundial_core::{Direction, Frame, SegmentKind, Span};
use sundial_segments::atm;

use crate::common::{Input, Model, Trace, inputs, run, run_lively};

/// A list with a value for each port.
fn each<T: Into<Value> + Clone>(values: &[T]) -> Value {
    values.iter().cloned().map(Into::into).collect()
}

fn line() -> impl Strategy<Value = Value> {
    let line = |rate_bps: u64, cell_octets: u32| json!({ "rate_bps": rate_bps, "cell_octets": cell_octets });
    prop_oneof![
        2 => Just(line(149_760_000, 53)),
        1 => Just(line(25_600_000, 54)),
        1 => Just(line(100_000_000, 54)),
        1 => (1_000_000..1_000_000_000_u64).prop_map(move |rate_bps| line(rate_bps, 53)),
    ]
}

fn latencies(ports: usize) -> impl Strategy<Value = Value> {
    let latency = prop_oneof![Just(0_u64), 0..50_000_u64];
    prop::collection::vec(latency, ports).prop_map(|values| each(&values))
}

fn queue() -> impl Strategy<Value = Value> {
    let threshold = || prop::option::of(0.0..1.0_f64);
    let discard = prop_oneof![Just("tail"), Just("ppd"), Just("epd")];
    (1..200_u64, discard, 0.0..1.0_f64, threshold(), threshold()).prop_map(
        |(cells, discard, above, vc_cells, clp1_above)| {
            let share = |share: f64| 1 + (share * (cells - 1) as f64) as u64;
            json!({
                "cells": cells,
                "discard": discard,
                "epd_above": (discard == "epd").then(|| share(above)),
                "vc_cells": vc_cells.map(share),
                "clp1_above": clp1_above.map(share),
            })
        },
    )
}

fn contract() -> impl Strategy<Value = Value> {
    let action = prop_oneof![Just("drop"), Just("tag")];
    let contract = (1_000_000..200_000_000_u64, 0..200_000_u64, action);
    prop::option::weighted(0.3, contract).prop_map(|contract| {
        contract.map_or(Value::Null, |(rate_bps, tolerance_ns, action)| {
            json!({ "rate_bps": rate_bps, "tolerance_ns": tolerance_ns, "action": action })
        })
    })
}

fn impairments() -> impl Strategy<Value = Value> {
    let share = || prop_oneof![3 => Just(0.0), 1 => 0.0..0.1_f64];
    let gemodel = prop::option::weighted(0.2, (0.0..0.1_f64, 0.1..1.0_f64));
    let settings = (share(), gemodel, share(), share());
    prop::option::weighted(0.4, settings).prop_map(|settings| {
        settings.map_or(Value::Null, |(cell_loss, gemodel, payload_bit, header_bit)| {
            json!({
                "cell_loss": if gemodel.is_some() { 0.0 } else { cell_loss },
                "gemodel": gemodel.map(|(p, r)| json!({ "p": p, "r": r })),
                "payload_bit": payload_bit,
                "header_bit": header_bit,
            })
        })
    })
}

fn lane() -> impl Strategy<Value = Value> {
    let resolution = prop_oneof![3 => Just("le_arp"), 1 => Just("static")];
    let times = (0..1_000_000_u64, 0..100_000_u64, line());
    (resolution, times, 1..4_u64, 0..3_u64).prop_map(
        |(resolution, (vc_setup, service_latency, service_line), unknown_frames, retries)| {
            json!({
                "frame_size": 1516, "resolution": resolution,
                // Three cells of the slowest line, and the longest latencies.
                "vc_setup_ns": 1_600_000 + vc_setup, "service_latency_ns": service_latency,
                "service_line": service_line, "unknown_frames": unknown_frames,
                "unknown_frame_time_ns": 1_000_000, "control_time_out_ns": 10_000_000,
                "vcc_time_out_ns": 30_000_000, "retries": retries, "ageing_ns": 20_000_000,
                "forward_delay_ns": 15_000_000, "le_arp_response_time_ns": 2_000_000,
                "flush_time_out_ns": 4_000_000, "path_switching_delay_ns": 6_000_000, "elan": "lan",
            })
        },
    )
}

fn fields(ports: usize, encapsulation: &'static str) -> impl Strategy<Value = Value> {
    let lists = (
        prop::collection::vec(line(), ports),
        prop::collection::vec(contract(), ports),
        prop::collection::vec(prop::option::weighted(0.3, 1_000_000..200_000_000_u64), ports),
        prop::collection::vec(impairments(), ports),
        prop::collection::vec(impairments(), ports),
    );
    let latencies = (latencies(ports), latencies(ports), latencies(ports));
    let cdv = prop_oneof![2 => Just(0_u64), 1 => 0..20_000_u64];
    let switch = (prop_oneof![Just("pdu"), Just("cells")], 0..50_000_u64, cdv, queue());
    (lists, latencies, switch, lane()).prop_map(move |(lists, latencies, switch, lane)| {
        let (lines, contracts, shaping_bps, from, to) = lists;
        let (propagation_ns, tx_latency_ns, rx_latency_ns) = latencies;
        let (interleave, cell_latency_ns, cdv_ns, queue) = switch;
        let addresses: Vec<_> = (0..ports).map(|port| [format!("10.0.0.{port}")]).collect();
        json!({
            "lines": lines, "propagation_ns": propagation_ns, "tx_latency_ns": tx_latency_ns,
            "rx_latency_ns": rx_latency_ns, "encapsulation": encapsulation,
            "interleave": interleave, "cell_latency_ns": cell_latency_ns, "cdv_ns": cdv_ns,
            "queue": queue, "contracts": contracts, "shaping_bps": shaping_bps,
            "impairments": { "from": from, "to": to },
            "lane": (encapsulation == "lane").then_some(lane),
            "addresses": (encapsulation == "routed").then_some(addresses),
            "capture": { "cells": true, "cells_most": 1_000_000 },
        })
    })
}

/// A segment of ATM that carries frames in this way.
fn atm_with(encapsulation: &'static str) -> impl Strategy<Value = Model> {
    (2..6_usize).prop_flat_map(move |ports| fields(ports, encapsulation)).prop_map(|fields| {
        let ports = fields["lines"].as_array().expect("a list").len();
        let config: atm::Config =
            serde_json::from_value(fields.clone()).unwrap_or_else(|error| panic!("{error}"));
        let parameters =
            config.check(ports).unwrap_or_else(|invalid| panic!("{invalid:?} in {fields}"));
        Model::of::<atm::Config>(ports, parameters)
    })
}

/// A segment of ATM that bridges, whatever else it does.
pub fn atm() -> impl Strategy<Value = Model> {
    prop_oneof![atm_with("bridged").boxed(), atm_with("bridged-fcs").boxed()]
}

fn with_inputs(
    model: impl Strategy<Value = Model>,
    change: fn(Input) -> Input,
) -> impl Strategy<Value = (Model, Vec<Input>)> {
    model.prop_flat_map(move |model| {
        let inputs = inputs(model.ports(), 60);
        let inputs = inputs.prop_map(move |list| list.into_iter().map(change).collect::<Vec<_>>());
        (Just(model), inputs)
    })
}

/// The frame as a packet of IP for the machine that its address names.
fn packet(input: Input) -> Input {
    let mut bytes = input.frame.to_vec();
    let mut header = [0; 20];
    header[0] = 0x45;
    header[16..20].copy_from_slice(&[10, 0, 0, bytes[5]]);
    bytes.splice(14..14, header);
    bytes.truncate(input.frame.len().max(46));
    Input { frame: Frame::from(bytes), ..input }
}

/// The same when clients have joined.
fn after_joining(input: Input) -> Input {
    Input { at: input.at + Span::from_ns(20_000_000), ..input }
}

/// What is recorded agrees with what is counted and delivered, and every frame has arrived or has a fate.
fn assert_records(trace: &Trace) {
    let ports = trace.counters.ports.len();
    let count = |interface, direction| {
        let records = trace.records.iter();
        records.filter(|record| (record.1, record.2) == (interface, direction)).count() as u64
    };
    for (port, counters) in trace.counters.ports.iter().enumerate() {
        assert_eq!(count(port, Direction::Inbound), counters.rx_frames);
        assert_eq!(count(port, Direction::Outbound), counters.tx_frames);
    }
    let dropped: u64 = trace.counters.ports.iter().map(|port| port.dropped_frames()).sum();
    assert_eq!(count(ports, Direction::Unknown), dropped);
}

/// By channel, no cells are made, and none are lost unseen, unless some are still inside.
fn assert_cells(trace: &Trace, is_over: bool, copies: impl Fn(&str) -> u64) {
    for (name, channel) in &trace.counters.channels {
        let policed = channel.dropped.get("policed").copied().unwrap_or(0);
        let dropped = channel.dropped.values().sum::<u64>() - policed;
        let copied = (channel.cells_in - policed) * copies(name);
        let decided = channel.cells_out + dropped;
        assert!(copied == decided || copied > decided && !is_over, "{name}: {copied} {decided}");
    }
}

/// What happened in the order of time: decisions may come earlier or later.
fn in_order(trace: &Trace) -> BTreeMap<usize, Vec<(u64, usize)>> {
    let mut ports: BTreeMap<usize, Vec<_>> = BTreeMap::new();
    for &(due, port, number, _) in &trace.deliveries {
        ports.entry(port).or_default().push((due.as_ps(), number));
    }
    ports
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bridged_keeps_its_promises_and_loses_nothing_unseen(
        (model, inputs) in with_inputs(atm(), |input| input)
    ) {
        let trace = run(&mut *model.build(1), &inputs);
        assert_records(&trace);
        assert_cells(&trace, true, |_| 1);
        // One line carries one PDU at a time, so that order is kept.
        for arrivals in in_order(&trace).values() {
            prop_assert!(arrivals.is_sorted_by_key(|(due, _)| *due));
        }
    }

    #[test]
    fn routed_keeps_its_promises_and_loses_nothing_unseen(
        (model, inputs) in with_inputs(atm_with("routed"), packet)
    ) {
        let trace = run(&mut *model.build(1), &inputs);
        assert_records(&trace);
        assert_cells(&trace, true, |_| 1);
        let offered: u64 = trace.counters.ports.iter().map(|port| port.offered_frames).sum();
        let arrived: u64 = trace.counters.ports.iter().map(|port| port.rx_frames).sum();
        let dropped: u64 = trace.counters.ports.iter().map(|port| port.dropped_frames()).sum();
        prop_assert_eq!(offered, arrived + dropped);
    }

}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lan_emulation_keeps_its_promises_and_loses_nothing_unseen(
        (model, inputs) in with_inputs(atm_with("lane"), after_joining)
    ) {
        let trace = run_lively(&mut *model.build(1), &inputs);
        assert_records(&trace);
        let ports = model.ports() as u64;
        let to_all = |name: &str| matches!(name, "service 0.34" | "service 0.36");
        assert_cells(&trace, false, |name| if to_all(name) { ports } else { 1 });
    }

    #[test]
    fn what_happens_does_not_depend_on_chance_twice(
        (model, inputs) in with_inputs(atm_with("lane"), after_joining), seed in 1_u64..9
    ) {
        let outcome = || run_lively(&mut *model.build(seed), &inputs);
        prop_assert_eq!(outcome(), outcome());
    }
}
