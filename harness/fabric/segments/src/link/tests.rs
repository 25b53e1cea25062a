// SPDX-License-Identifier: Apache-2.0
//! Times worked out by hand.

use sundial_core::{Frame, Output, Segment, SegmentParameters, Span, Time};

use super::*;

fn link(rate_bps: u64, impairments: Impairments) -> Link {
    link_with(rate_bps, Some(impairments), vec![])
}

fn link_with(rate_bps: u64, impairments: Option<Impairments>, timeline: Vec<LinkChange>) -> Link {
    let common = SegmentParameters {
        name: "wan".into(),
        seed: 3,
        ports: vec!["a:eth0".into(), "b:eth0".into()],
        max_frame_bytes: 9216,
        ..SegmentParameters::of_machines(2, 64)
    };
    let propagation = Span::from_ns(1_000);
    Link::new(
        &common,
        LinkParameters {
            rate_bps,
            propagation,
            impairments: [impairments.map(Box::new), None],
            timeline,
            by_hand: false,
        },
    )
}

fn at(ns: u64) -> Time {
    Time::from_ns(ns)
}

fn frame(number: u8, bytes: usize) -> Frame {
    Frame::from(vec![number; bytes])
}

/// (due, first byte) of all deliveries, run to the end.
fn deliveries(link: &mut Link) -> Vec<(Time, u8)> {
    while let Some(time) = link.poll_timeout() {
        link.handle_timeout(time);
    }
    let outputs = std::iter::from_fn(|| link.poll_output());
    let deliveries = outputs.filter_map(|output| match output {
        Output::Deliver { due, frame, .. } => Some((due, frame[0])),
        _ => None,
    });
    deliveries.collect()
}

#[test]
fn impairments_that_do_nothing_add_nothing() {
    // 64 frames of 9216 bytes back to back at 155.52 Mbit/s: 9228 bytes and 12 of gap each.
    let plain = {
        let mut link = link_with(155_520_000, None, vec![]);
        for number in 0..64 {
            link.handle_frame(at(0), 0, frame(number, 9216));
        }
        deliveries(&mut link)
    };
    let mut link = link(155_520_000, Impairments::default());
    for number in 0..64 {
        link.handle_frame(at(0), 0, frame(number, 9216));
    }
    assert_eq!(deliveries(&mut link), plain);
    // The last bit of all: (64 * 9228 + 63 * 12) bytes, and the propagation.
    let bits: u64 = 8 * (64 * 9228 + 63 * 12);
    let end = Span::of_bits(bits, 155_520_000) + Span::from_ns(1_000);
    assert_eq!(plain[63], (Time::ZERO + end, 63));
}

#[test]
fn shaping_is_exact_to_the_bit_over_a_million_bytes() {
    // 1 Mbit/s behind a line of 100: 1000 frames of 1000 bytes take 8 s from when the first is in.
    let settings =
        Impairments { rate_bps: Some(1_000_000), limit_frames: Some(1000), ..Default::default() };
    let mut link = link(100_000_000, settings);
    let mut last = Time::ZERO;
    for round in 0..1_000 {
        // As fast as the line takes them: 1012 bytes and the gap, 81.92 us.
        link.handle_frame(at(round * 81_920), 0, frame(1, 1000));
        last = deliveries(&mut link).last().expect("in order, so decided at once").0;
    }
    let first_in = 80_960;
    assert_eq!(last, at(first_in + 8_000_000_000 + 1_000));
}

#[test]
fn a_frame_that_is_sent_ahead_overtakes() {
    let settings =
        Impairments { delay_ns: 1_000_000, reorder: 1.0, gap: Some(2), ..Default::default() };
    let mut link = link(100_000_000, settings);
    link.handle_frame(at(0), 0, frame(1, 60));
    // Until nothing can overtake any more: 5.76 us before the first has to leave.
    assert_eq!(link.poll_timeout(), Some(at(1_000_000)));
    assert_eq!(link.earliest_delivery(1), Some(at(5_760 + 1_000_000 + 1_000)));
    link.handle_frame(at(10_000), 0, frame(2, 60));
    assert_eq!(
        deliveries(&mut link),
        [(at(10_000 + 5_760 + 1_000), 2), (at(5_760 + 1_000_000 + 1_000), 1)]
    );
    assert_eq!(link.counters().ports[0].reordered, 1);
}

#[test]
fn a_copy_follows_on_the_line_into_the_receiver() {
    let mut link = link(100_000_000, Impairments { duplicate: 1.0, ..Default::default() });
    link.handle_frame(at(0), 0, frame(1, 60));
    // 5.76 us and 1 us; the second of the two a gap (0.96 us) and 5.76 us later.
    assert_eq!(deliveries(&mut link), [(at(6_760), 1), (at(13_480), 1)]);
}

#[test]
fn directions_do_not_disturb_one_another() {
    let mut link = link(100_000_000, Impairments { loss: 1.0, ..Default::default() });
    link.handle_frame(at(0), 0, frame(1, 60));
    link.handle_frame(at(0), 1, frame(2, 60));
    assert_eq!(deliveries(&mut link), [(at(6_760), 2)]);
    assert_eq!(link.counters().ports[0].dropped["lost"], 1);
}

/// From `ns` on, from port 0; `cut`: no way.
fn change(ns: u64, cut: bool, impairments: Impairments) -> LinkChange {
    let cut: &[usize] = if cut { &[1] } else { &[] };
    LinkChange {
        at: at(ns),
        note: format!("{ns}"),
        blocks: Blocks::new(2, cut, &[]).expect("ports of a link"),
        impairments: [Some(Box::new(impairments)), None],
    }
}

#[test]
fn a_cut_meets_what_begins_at_its_instant() {
    let plain = Impairments::default;
    let timeline = || vec![change(1_000_000, true, plain()), change(2_000_000, false, plain())];
    let arrives = |begin_ns| {
        let mut link = link_with(100_000_000, None, timeline());
        link.handle_frame(at(begin_ns), 0, frame(1, 60));
        deliveries(&mut link).len()
    };
    assert_eq!([999_999, 1_000_000, 1_999_999, 2_000_000].map(arrives), [1, 0, 0, 1]);
}

#[test]
fn a_frame_that_waits_for_the_line_meets_the_state_in_which_it_begins() {
    // 60 bytes take 5.76 us and a gap 0.96 us: the second begins at 6.72 us.
    for (cut_ns, arrived) in [(6_720, 1), (6_721, 2)] {
        let mut link =
            link_with(100_000_000, None, vec![change(cut_ns, true, Impairments::default())]);
        link.handle_frame(at(0), 0, frame(1, 60));
        link.handle_frame(at(0), 0, frame(2, 60));
        assert_eq!(deliveries(&mut link).len(), arrived);
    }
}

#[test]
fn a_start_between_two_nanoseconds_counts_as_it_is_stamped() {
    // 672 bits at 155.52 Mbit/s: the second begins at 4320.98... ns, which the capture stamps 4321.
    for (cut_ns, arrived) in [(4_321, 1), (4_322, 2)] {
        let mut link =
            link_with(155_520_000, None, vec![change(cut_ns, true, Impairments::default())]);
        link.handle_frame(at(0), 0, frame(1, 60));
        link.handle_frame(at(0), 0, frame(2, 60));
        assert_eq!(deliveries(&mut link).len(), arrived);
    }
}

#[test]
fn a_machine_that_is_off_neither_sends_nor_receives() {
    // The second begins at 6.72 us.
    let off = |ns| LinkChange {
        at: at(ns),
        note: String::new(),
        blocks: Blocks::new(2, &[], &[]).expect("valid").with_off(&[0]).expect("valid"),
        impairments: [None, None],
    };
    for (ns, arrived, lost) in [(6_720, 1, 1), (6_721, 2, 0)] {
        let mut link = link_with(100_000_000, None, vec![off(ns)]);
        for _ in 0..2 {
            link.handle_frame(at(0), 0, frame(1, 60));
        }
        link.handle_frame(at(ns), 1, frame(2, 60));
        let counters = link.counters();
        assert_eq!(counters.ports[1].rx_frames, arrived);
        assert_eq!(counters.ports[0].tx_frames, arrived, "nothing is at its port");
        assert_eq!(counters.ports[0].dropped.get("adapter off").copied().unwrap_or(0), lost);
        assert_eq!(counters.ports[0].rx_frames, 0);
        assert_eq!(counters.ports[1].dropped.get("off"), Some(&1));
    }
}

#[test]
fn a_cut_is_a_fate_at_both_ends_of_the_link_and_a_note() {
    let mut link = link_with(100_000_000, None, vec![change(5, true, Impairments::default())]);
    link.handle_frame(at(10), 1, frame(1, 60));
    while let Some(time) = link.poll_timeout() {
        link.handle_timeout(time);
    }
    let outputs: Vec<_> = std::iter::from_fn(|| link.poll_output()).collect();
    assert!(outputs.contains(&Output::Note { at: at(5), text: "5".into() }));
    let way = sundial_core::Way { from: "b:eth0".into(), to: "a:eth0".into() };
    let fate = Fate::Severed { rule: Rule::Cut, gap: sundial_core::Gap::Between(way) };
    let stamped = outputs.iter().find_map(|output| match output {
        Output::Record { at, fate: Some(found), .. } => Some((*at, (**found).clone())),
        _ => None,
    });
    // Where the last bit has left the sender.
    assert_eq!(stamped, Some((at(10 + 5_760), fate)));
    assert_eq!(link.counters().ports[1].dropped.get("cut"), Some(&1));
}

#[test]
fn a_shorter_delay_lets_later_frames_overtake() {
    let delayed = |delay_ns| Impairments { delay_ns, ..Impairments::default() };
    let mut link =
        link_with(100_000_000, Some(delayed(1_000_000)), vec![change(10_000, false, delayed(0))]);
    assert_eq!(link.lookahead(0, 1), Span::from_ns(5_760 + 1_000), "of the least delay");
    link.handle_frame(at(0), 0, frame(1, 60));
    link.handle_frame(at(10_000), 0, frame(2, 60));
    assert_eq!(deliveries(&mut link), [(at(16_760), 2), (at(1_006_760), 1)]);
}

#[test]
fn another_rate_takes_over_where_the_line_falls_free() {
    let shaped = |rate_bps| Impairments { rate_bps, ..Impairments::default() };
    let mut link = link_with(
        100_000_000,
        Some(shaped(Some(1_000_000))),
        vec![change(10_000, false, shaped(Some(2_000_000)))],
    );
    link.handle_frame(at(0), 0, frame(1, 1000));
    link.handle_frame(at(100_000), 0, frame(2, 1000));
    // In at 80.96 us and 8 ms at 1 Mbit/s; then 4 ms at 2 Mbit/s; 1 us of propagation.
    assert_eq!(deliveries(&mut link), [(at(8_081_960), 1), (at(12_081_960), 2)]);
}
