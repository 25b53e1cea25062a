// SPDX-License-Identifier: Apache-2.0
//! Random frames, latencies and losses: what must hold whatever happens.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sundial_core::{Span, Stream, Time};

use super::rig::{Rig, at, ms, number_of, seconds, settings};
use crate::atm::lane::{LaneSettings, Sdu};

/// Everything happens within milliseconds, so that a case meets every time-out.
fn short() -> LaneSettings {
    LaneSettings {
        control_time_out: ms(20),
        unknown_frames: 2,
        unknown_frame_time: ms(7),
        vcc_time_out: ms(30),
        ageing: ms(50),
        forward_delay: ms(15),
        le_arp_response_time: ms(5),
        flush_time_out: ms(8),
        path_switching_delay: ms(20),
        ..settings()
    }
}

#[derive(Clone, Debug)]
struct HandedIn {
    time_us: u64,
    from: usize,
    to: usize,
}

prop_compose! {
    fn frames(ports: usize)(
        frames in prop::collection::vec((0..400_000_u64, 0..ports, 1..ports), 1..300),
    ) -> Vec<HandedIn> {
        let mut frames: Vec<HandedIn> = frames
            .into_iter()
            .map(|(time_us, from, step)| HandedIn { time_us, from, to: (from + step) % ports })
            .collect();
        frames.sort_by_key(|frame| frame.time_us);
        frames
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn frames_arrive_once_and_in_order_and_none_waits_for_ever(
        frames in frames(4), relay: bool, loss in 0..40_u32, seed: u64
    ) {
        let mut rig = Rig::with_relays(vec![false, false, false, relay], short());
        let mut fate = Stream::new(seed, "lane", 0, 0);
        rig.lose = Box::new(move |_| fate.below(100) < loss);
        // Less than C22 by the BUS too, and another on every VC.
        rig.latency = Box::new(move |copy| {
            let mixed = (copy.from as u64 * 31 + copy.to as u64 * 17 + u64::from(copy.vci)) * 7919;
            Span::from_ns(1_000 * ((mixed ^ seed) % 6_000))
        });
        for (number, frame) in frames.iter().enumerate() {
            let time = Time::from_ns(1_000 * frame.time_us);
            rig.frame_at(time, frame.from, frame.to, number as u16);
        }
        rig.run_until(at(seconds(30)));

        // Every frame was sent once or dropped once.
        let ports = rig.clients.len();
        let sent = rig.copies.iter().filter(|copy| copy.from < ports);
        let mut ends: Vec<u16> = sent
            .filter_map(|copy| match &copy.sdu {
                Sdu::Data { frame, .. } => Some(number_of(frame)),
                Sdu::Control(_) => None,
            })
            .chain(rig.dropped.iter().map(|(_, number, _)| *number))
            .collect();
        ends.sort_unstable();
        prop_assert_eq!(ends, (0..frames.len() as u16).collect::<Vec<_>>());
        for client in &rig.clients {
            prop_assert!((0..ports).all(|port| !client.waits_for(port)));
        }

        // Each arrives once, at its machine (and at a device, which hears all), in the order handed in.
        let mut seen = BTreeSet::new();
        let mut last: BTreeMap<(usize, usize, usize), u16> = BTreeMap::new();
        for (_, port, number) in &rig.delivered {
            let HandedIn { from, to, .. } = frames[usize::from(*number)];
            prop_assert!(*port == to || (relay && *port == 3 && from != 3), "{number} at {port}");
            prop_assert!(seen.insert((*port, *number)), "{number} twice at {port}");
            let before = last.insert((from, to, *port), *number);
            prop_assert!(before.is_none_or(|before| before < *number), "{number} after {before:?}");
        }
        if loss == 0 {
            let handed_in: BTreeSet<u16> = (0..frames.len() as u16).collect();
            let dropped: BTreeSet<u16> = rig.dropped.iter().map(|(_, number, _)| *number).collect();
            let arrived = |number: &u16| seen.contains(&(frames[usize::from(*number)].to, *number));
            prop_assert!(handed_in.difference(&dropped).all(arrived));
        }
    }
}
