// SPDX-License-Identifier: Apache-2.0
//! Times worked out by hand: 4.25 us for a word, 1.6 Gbit/s into the backplane, 184 Mbit/s (23 Mbyte/s) into memory.
//! The way alone takes 4250 ns - 64 / 184e6 s = 3902.173 ns.

use super::*;
use sundial_core::SegmentKind;

fn config(json: &str) -> Result<BackplaneParameters, sundial_core::Invalid> {
    let config: Config = serde_json::from_str(json).expect("fields that exist");
    config.check(3)
}

fn backplane() -> Backplane {
    let parameters = config(
        r#"{"word_latency_ns": 4250, "link_rate_bps": 1600000000, "dma_rate_bps": 184000000, "nodes": [1, 2, 5]}"#,
    );
    Backplane::new(&SegmentParameters::of_machines(3, 1), parameters.expect("sound"))
}

fn packet(from: u16, to: u16, bytes: usize) -> Frame {
    let mut frame = vec![0; HEADER_BYTES + bytes];
    frame[0] = VERSION;
    frame[4..6].copy_from_slice(&from.to_le_bytes());
    frame[6..8].copy_from_slice(&to.to_le_bytes());
    Frame::from(frame)
}

fn at(ns: u64) -> Time {
    Time::from_ns(ns)
}

/// (due in ns, port, bytes of data) of all deliveries, run to the end.
fn deliveries(model: &mut Backplane) -> Vec<(u64, usize, usize)> {
    while let Some(time) = model.poll_timeout() {
        model.handle_timeout(time);
    }
    let outputs = std::iter::from_fn(|| model.poll_output());
    let deliveries = outputs.filter_map(|output| match output {
        Output::Deliver { due, port, frame } => {
            assert_eq!(due.as_ps() % 1000, 0, "in whole nanoseconds");
            Some((due.as_ns_ceil(), port, frame.len() - HEADER_BYTES))
        }
        _ => None,
    });
    deliveries.collect()
}

#[test]
fn a_word_takes_its_latency_and_a_byte_less() {
    let mut model = backplane();
    model.handle_frame(at(1_000), 0, packet(1, 2, 8));
    model.handle_frame(at(20_000), 1, packet(2, 5, 1));
    model.handle_frame(at(40_000), 2, packet(5, 1, 0));
    // 3902.174 + 43.479 ns, rounded up; and the way alone.
    assert_eq!(deliveries(&mut model), [(5_250, 1, 8), (23_946, 2, 1), (43_903, 0, 0)]);
    assert_eq!(model.lookahead(0, 1).as_ns_floor(), 3_902);
}

#[test]
fn a_sender_s_packets_follow_one_another_and_the_receiver_writes_one_at_a_time() {
    let mut model = backplane();
    // 1,056 bytes take the line 5,280 ns, 1,024 bytes the memory 44,521.740 ns.
    model.handle_frame(at(0), 0, packet(1, 2, 1_024));
    model.handle_frame(at(0), 0, packet(1, 2, 1_024));
    // Leaves after the second, which is for another receiver by then.
    model.handle_frame(at(0), 0, packet(1, 5, 8));
    assert_eq!(
        deliveries(&mut model),
        [(48_424, 1, 1_024), (92_946, 1, 1_024), (10_560 + 4_250, 2, 8)]
    );
}

#[test]
fn who_leaves_first_is_written_first_though_handed_in_later() {
    let mut model = backplane();
    model.handle_frame(at(0), 0, packet(1, 5, 4_096));
    // Waits for the line until 20,640.
    model.handle_frame(at(100), 0, packet(1, 2, 8));
    model.handle_timeout(at(1));
    assert_eq!(model.poll_timeout(), Some(at(20_640) + Span::from_ps(1)));
    assert_eq!(model.earliest_delivery(1), Some(at(20_640) + model.lookahead(0, 1)));
    model.handle_frame(at(200), 2, packet(5, 2, 8));
    assert_eq!(deliveries(&mut model)[1..], [(4_450, 1, 8), (24_890, 1, 8)]);
}

#[test]
fn who_leaves_at_one_instant_is_written_in_the_order_of_ports() {
    for turned in [false, true] {
        let mut model = backplane();
        let mut packets = [(0, packet(1, 2, 16)), (2, packet(5, 2, 8))];
        if turned {
            packets.reverse();
        }
        for (port, packet) in packets {
            model.handle_frame(at(0), port, packet);
        }
        // 3902.174 + 695.653 ns, then 347.827 more.
        assert_eq!(deliveries(&mut model), [(4_598, 1, 16), (4_946, 1, 8)]);
    }
}

#[test]
fn what_is_no_packet_of_its_node_is_refused_and_counted() {
    let mut model = backplane();
    for (number, (frame, reason)) in [
        (Frame::from(vec![VERSION; HEADER_BYTES - 1]), "no packet"),
        (Frame::from(vec![2; HEADER_BYTES]), "no packet"),
        (packet(1, 2, DATA_MOST + 1), "no packet"),
        (packet(2, 1, 8), "sender"),
        (packet(1, 3, 8), "unknown node"),
        (packet(1, 1, 8), "unknown node"),
    ]
    .into_iter()
    .enumerate()
    {
        let before = model.counters().ports[0].dropped.get(reason).copied().unwrap_or(0);
        model.handle_frame(at(number as u64), 0, frame);
        assert_eq!(model.counters().ports[0].dropped[reason], before + 1);
    }
    assert_eq!(deliveries(&mut model), []);
    assert_eq!(model.counters().ports[0].offered_frames, 6);
}

#[test]
fn what_cannot_be_is_refused_with_its_field() {
    let text = |word: u64, link: u64, dma: u64, nodes: &str| {
        let fields = format!(r#""word_latency_ns": {word}, "link_rate_bps": {link}"#);
        format!(r#"{{{fields}, "dma_rate_bps": {dma}, "nodes": {nodes}}}"#)
    };
    let field = |json: String| config(&json).map_err(|invalid| invalid.field).err();
    let (link, dma) = (1_600_000_000, 184_000_000);
    assert_eq!(field(text(348, link, dma, "[1, 2, 3]")), None);
    assert_eq!(field(text(347, link, dma, "[1, 2, 3]")).as_deref(), Some("word_latency_ns"));
    assert_eq!(field(text(4250, 0, dma, "[1, 2, 3]")).as_deref(), Some("link_rate_bps"));
    assert_eq!(field(text(4250, link, 0, "[1, 2, 3]")).as_deref(), Some("dma_rate_bps"));
    for (word, link) in [(4250, 160_000_000), (4250, 184_000_000), (400, 200_000_000)] {
        assert_eq!(field(text(word, link, dma, "[1, 2, 3]")).as_deref(), Some("link_rate_bps"));
    }
    assert_eq!(field(text(4250, link, dma, "[1, 2]")).as_deref(), Some("nodes"));
    assert_eq!(field(text(4250, link, dma, "[1, 2, 1]")).as_deref(), Some("nodes[2]"));
}
