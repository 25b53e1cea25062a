// SPDX-License-Identifier: Apache-2.0
//! LAN emulation over the whole segment with losses: order between two machines over every change of path.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::lane::{emulated_lan_of, lane_fields};
use super::*;

/// Three machines; paths change within the 60 ms in which frames are handed in.
fn restless_fields() -> Value {
    let mut fields = lane_fields(3);
    for (timer, ms) in [
        ("unknown_frame_time_ns", 2),
        ("le_arp_response_time_ns", 3),
        ("flush_time_out_ns", 4),
        ("path_switching_delay_ns", 15),
        ("vcc_time_out_ns", 8),
        ("ageing_ns", 20),
        ("control_time_out_ns", 5),
    ] {
        fields["lane"][timer] = (1_000_000 * ms).into();
    }
    fields
}

fn mac(port: usize) -> [u8; 6] {
    [0x02, 0x53, 0x44, 0, 0, port as u8 + 1]
}

fn numbered_frame(from: usize, to: usize, number: u16, bytes: usize) -> Frame {
    let mut frame = [mac(to), mac(from)].concat();
    frame.extend([8, 0]);
    frame.extend(number.to_be_bytes());
    frame.resize(bytes, 0);
    Frame::from(frame)
}

/// When after 1 ms in us, from, how many ports further, bytes.
type HandedIn = (u64, usize, usize, usize);

fn run(mut segment: Atm, frames: &[HandedIn]) -> Outcome {
    let mut outcome = Outcome::default();
    let mut advance = |segment: &mut Atm, to: Time| {
        while let Some(next) = segment.poll_timeout().filter(|&next| next <= to) {
            segment.handle_timeout(next);
        }
        outcome.take(segment);
    };
    for (number, &(at_us, from, step, bytes)) in frames.iter().enumerate() {
        let at = Time::from_ns(1_000 * (1_000 + at_us));
        advance(&mut segment, at);
        let frame = numbered_frame(from, (from + step) % 3, number as u16, bytes);
        segment.handle_frame(at, from, frame);
    }
    advance(&mut segment, Time::from_ns(5_000_000_000));
    outcome
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn frames_between_two_machines_stay_in_order(
        mut frames in prop::collection::vec(
            (0..60_000_u64, 0..3_usize, 1..3_usize, 16..1514_usize), 1..200),
        loss in prop::sample::select(vec![0.0, 0.01, 0.1]),
        shaping_bps in prop::option::of(20_000_000..60_000_000_u64),
        interleave in prop::sample::select(vec!["pdu", "cells"]),
    ) {
        frames.sort_by_key(|(at_us, ..)| *at_us);
        let mut fields = restless_fields();
        fields["interleave"] = interleave.into();
        fields["shaping_bps"] = json!(vec![shaping_bps; 3]);
        let faults = json!({ "cell_loss": loss });
        fields["impairments"] = json!({ "from": vec![&faults; 3], "to": vec![&faults; 3] });
        let mut outcome = run(emulated_lan_of(fields), &frames);
        prop_assert_eq!(outcome.finished.len(), frames.len(), "every frame leaves its ring");
        outcome.deliveries.sort_by_key(|(due, ..)| *due);
        let mut last = BTreeMap::new();
        for (_, port, frame) in &outcome.deliveries {
            let number = u16::from_be_bytes([frame[14], frame[15]]);
            prop_assert_eq!(&mac(*port)[..], &frame[..6]);
            let before = last.insert(frame[..12].to_vec(), number);
            prop_assert!(before.is_none_or(|before| before < number), "{number} after {before:?}");
        }
    }
}
