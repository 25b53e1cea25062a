// SPDX-License-Identifier: Apache-2.0
//! Backplanes, and packets for them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sundial_core::{Direction, Frame, Span, Time};
use sundial_segments::vmmc::{self, BackplaneParameters, HEADER_BYTES};

use crate::common::{Input, Model, run};

fn parameters() -> impl Strategy<Value = BackplaneParameters> {
    let link = prop_oneof![Just(1_600_000_000_u64), Just(8_000_000_000), Just(100_000_000)];
    (link, 1_000_000..100_000_000_u64, 1..10_000_000_u64, 2..6_u16).prop_map(
        |(link_rate_bps, dma_rate_bps, way_ps, ports)| BackplaneParameters {
            way: Span::from_ps(way_ps),
            link_rate_bps,
            dma_rate_bps,
            nodes: (1..=ports).collect(),
        },
    )
}

/// The number of the input stands where the driver looks for it: behind 0x45 in byte 14.
fn packet(number: usize, from: usize, to: usize, data: usize) -> Frame {
    let mut bytes = vec![0; HEADER_BYTES + data];
    bytes[0] = 1;
    bytes[4..6].copy_from_slice(&(from as u16 + 1).to_le_bytes());
    bytes[6..8].copy_from_slice(&(to as u16 + 1).to_le_bytes());
    bytes[14] = 0x45;
    for copy in 0..3 {
        let at = HEADER_BYTES + 2 + 4 * copy;
        bytes[at..at + 4].copy_from_slice(&(number as u32).to_be_bytes());
    }
    Frame::from(bytes)
}

/// A packet's pause after the one before in ps, its ports, and its bytes of data.
type Draw = (u64, usize, usize, usize);

fn inputs(ports: usize) -> impl Strategy<Value = Vec<Input>> {
    let pause = prop_oneof![2 => Just(0_u64), 2 => 0..5_000_u64, 1 => 0..200_000_u64]
        .prop_map(|ns| 1_000 * ns);
    let data = prop_oneof![3 => 14..64_usize, 1 => 14..=4_096_usize];
    let one = (pause, 0..ports, 1..ports, data);
    prop::collection::vec(one, 1..60).prop_map(move |list: Vec<Draw>| {
        let mut at = Time::ZERO;
        let input = |(number, (pause, port, further, data))| {
            at += Span::from_ps(pause);
            let frame = packet(number, port, (port + further) % ports, data);
            Input { at, port, frame }
        };
        list.into_iter().enumerate().map(input).collect()
    })
}

fn with_inputs() -> impl Strategy<Value = (BackplaneParameters, Vec<Input>)> {
    parameters().prop_flat_map(|parameters| {
        let inputs = inputs(parameters.nodes.len());
        (Just(parameters), inputs)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_backplane_loses_nothing_and_lets_nobody_overtake((parameters, inputs) in with_inputs()) {
        let model = Model::of::<vmmc::Config>(parameters.nodes.len(), parameters.clone());
        let trace = run(&mut *model.build(1), &inputs);
        prop_assert_eq!(trace.deliveries.len(), inputs.len());
        prop_assert_eq!(&run(&mut *model.build(2), &inputs), &trace);

        // Between two nodes packets arrive in the order in which they were handed in.
        let mut last: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let mut order = trace.deliveries.clone();
        order.sort_by_key(|&(due, port, ..)| (port, due));
        for &(_, port, number, _) in &order {
            let before = last.insert((inputs[number].port, port), number);
            prop_assert!(before.is_none_or(|before| before < number));
        }
        // A receiver writes one at a time: whole nanoseconds, rounded up, may be one short.
        for pair in order.windows(2).filter(|pair| pair[0].1 == pair[1].1) {
            let bits = 8 * (pair[1].3 - HEADER_BYTES) as u64;
            let least = Span::of_bits_floor(bits, parameters.dma_rate_bps);
            prop_assert!(pair[1].0 + Span::from_ns(1) > pair[0].0 + least, "written twice at once");
        }
        // And a line carries one.
        let mut leaving: BTreeMap<usize, Vec<(Time, usize)>> = BTreeMap::new();
        for &(at, port, direction, bytes, _) in &trace.records {
            if direction == Direction::Outbound {
                leaving.entry(port).or_default().push((at, bytes));
            }
        }
        for pair in leaving.values().flat_map(|list| list.windows(2)) {
            let taken = Span::of_bits(8 * pair[0].1 as u64, parameters.link_rate_bps);
            prop_assert!(pair[1].0 >= pair[0].0 + taken);
        }
    }
}
