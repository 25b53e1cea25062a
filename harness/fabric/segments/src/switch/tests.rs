// SPDX-License-Identifier: Apache-2.0
//! Times worked out by hand at 100 Mb/s: a byte is 80 ns, the smallest frame 5.76 us, the gap 0.96 us.

use sundial_core::{Frame, Output, Segment, SegmentParameters, Span, Time};

use super::*;

fn switch(ports: usize, change: impl FnOnce(&mut SwitchParameters)) -> Switch {
    let common = SegmentParameters::of_machines(ports, 64);
    let mut parameters = SwitchParameters {
        rate_bps: vec![100_000_000; ports],
        propagation: vec![Span::from_ns(50); ports],
        forwarding_latency: Span::from_ns(2_000),
        queue_frames: 64,
        mac_table_entries: 16,
        ageing: Span::from_ns(300_000_000_000),
        timeline: vec![],
    };
    change(&mut parameters);
    Switch::new(&common, parameters)
}

fn at(ns: u64) -> Time {
    Time::from_ns(ns)
}

fn frame(source: u8, destination: u8, bytes: usize) -> Frame {
    let mut frame = vec![2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source, 8, 0];
    frame.resize(bytes, 0);
    frame.into()
}

fn deliveries(switch: &mut Switch) -> Vec<(Time, usize)> {
    while let Some(time) = switch.poll_timeout() {
        switch.handle_timeout(time);
    }
    let outputs = std::iter::from_fn(|| switch.poll_output());
    let deliveries = outputs.filter_map(|output| match output {
        Output::Deliver { due, port, .. } => Some((due, port)),
        _ => None,
    });
    deliveries.collect()
}

#[test]
fn a_frame_is_stored_looked_up_and_sent() {
    let mut switch = switch(2, |_| {});
    switch.handle_frame(at(0), 0, frame(1, 2, 60));
    // 5.76 + 0.05 us in, 2 us inside, 5.76 + 0.05 us out: what the lookahead promises for the smallest.
    assert_eq!(switch.lookahead(0, 1), Span::from_ns(13_620));
    assert_eq!(deliveries(&mut switch), [(at(13_620), 1)]);
}

#[test]
fn a_train_is_serialised_once_more_for_its_first_frame_only() {
    let mut switch = switch(2, |_| {});
    for _ in 0..3 {
        switch.handle_frame(at(0), 0, frame(1, 2, 1514));
    }
    // 1526 bytes are 122.08 us, 123.04 us with the gap; the first arrives after 2 x 122.13 + 2 us.
    let first = 246_260;
    let expected = [(at(first), 1), (at(first + 123_040), 1), (at(first + 246_080), 1)];
    assert_eq!(deliveries(&mut switch), expected);
}

#[test]
fn unknown_and_group_addresses_are_flooded_and_known_ones_are_not() {
    let mut switch = switch(3, |_| {});
    switch.handle_frame(at(0), 0, frame(1, 2, 60));
    assert_eq!(deliveries(&mut switch).len(), 2, "the port of 2 is unknown");
    switch.handle_frame(at(1_000_000), 1, frame(2, 1, 60));
    let ports: Vec<usize> = deliveries(&mut switch).into_iter().map(|(_, port)| port).collect();
    assert_eq!(ports, [0], "1 is at port 0");
    let mut group = frame(1, 2, 60).to_vec();
    group[0] |= 1;
    switch.handle_frame(at(2_000_000), 0, group.into());
    assert_eq!(deliveries(&mut switch).len(), 2);
    // 2 to 1 again, but sent at port 0, where 1 is: it stays there.
    switch.handle_frame(at(3_000_000), 0, frame(3, 1, 60));
    assert_eq!(deliveries(&mut switch), []);
    assert_eq!(switch.counters().ports[0].filtered, 1);
}

#[test]
fn an_address_that_has_aged_is_flooded_again() {
    let mut switch = switch(3, |parameters| parameters.ageing = Span::from_ns(1_000_000));
    switch.handle_frame(at(0), 1, frame(2, 9, 60));
    assert_eq!(deliveries(&mut switch).len(), 2);
    // Learned when it was received, 5.81 us after the start; asked for just before and just at the age.
    switch.handle_frame(at(999_999), 0, frame(1, 2, 60));
    assert_eq!(deliveries(&mut switch).len(), 1);
    switch.handle_frame(at(1_000_000 + 6_720), 0, frame(1, 2, 60));
    assert_eq!(deliveries(&mut switch).len(), 2);
}

#[test]
fn an_output_queue_drops_its_tail() {
    let mut switch = switch(3, |parameters| {
        parameters.queue_frames = 1;
        parameters.rate_bps[2] = 10_000_000;
    });
    switch.handle_frame(at(0), 2, frame(3, 9, 60));
    deliveries(&mut switch);
    // The output is ten times slower: one frame is on the line, one waits, the others find no place.
    for _ in 0..4 {
        switch.handle_frame(at(1_000_000), 0, frame(1, 3, 60));
    }
    let dues = deliveries(&mut switch);
    // Received at 1005.81 us, sent from 1007.81 us on; 57.6 us and 9.6 us of gap at 10 Mb/s.
    let first = 1_000_000 + 5_810 + 2_000 + 57_600 + 50;
    assert_eq!(dues, [(at(first), 2), (at(first + 67_200), 2)]);
    assert_eq!(switch.counters().ports[2].dropped["queue full"], 2);
}

#[test]
fn a_frame_that_starts_at_that_instant_leaves_its_place() {
    let mut switch = switch(3, |parameters| {
        parameters.queue_frames = 1;
        parameters.rate_bps[2] = 10_000_000;
    });
    switch.handle_frame(at(0), 2, frame(3, 9, 60));
    deliveries(&mut switch);
    // 67.2 us on the line for each: the third is queued when the second starts.
    for start in [1_000_000, 1_010_000, 1_067_200] {
        switch.handle_frame(at(start), 0, frame(1, 3, 60));
    }
    let first = 1_000_000 + 5_810 + 2_000 + 57_600 + 50;
    assert_eq!(deliveries(&mut switch), [0, 1, 2].map(|before| (at(first + before * 67_200), 2)));
}

#[test]
fn of_frames_received_at_one_instant_the_lower_port_goes_first() {
    for order in [[0, 1], [1, 0]] {
        let mut switch = switch(3, |_| {});
        switch.handle_frame(at(0), 2, frame(3, 9, 60));
        deliveries(&mut switch);
        for port in order {
            switch.handle_frame(at(1_000_000), port, frame(port as u8, 3, 100));
        }
        while let Some(time) = switch.poll_timeout() {
            switch.handle_timeout(time);
        }
        let sources: Vec<u8> = std::iter::from_fn(|| switch.poll_output())
            .filter_map(|output| match output {
                Output::Deliver { port: 2, frame, .. } => Some(frame[11]),
                _ => None,
            })
            .collect();
        assert_eq!(sources, [0, 1]);
    }
}

#[test]
fn deliveries_are_announced_before_the_frame_is_in() {
    let mut switch = switch(2, |_| {});
    switch.handle_frame(at(0), 0, frame(1, 2, 1514));
    // Received at 122.13 us; nothing handed in after 122.13 - 5.81 = 116.32 us can be before it.
    let certain = Time::from_ps(116_320_001);
    assert_eq!(switch.poll_timeout(), Some(certain));
    // 122.13 + 2 + 122.13 us.
    assert_eq!(switch.earliest_delivery(1), Some(at(246_260)));
    assert_eq!(switch.earliest_delivery(0), None);
}

#[test]
fn a_lower_port_goes_first_though_its_frame_was_handed_in_last() {
    let mut switch = switch(3, |_| {});
    switch.handle_frame(at(0), 2, frame(3, 9, 60));
    deliveries(&mut switch);
    switch.handle_frame(at(1_000_000), 1, frame(1, 3, 1514));
    // 122.08 - 5.76 us later, so that both are received at 1122.13 us.
    let last = at(1_116_320);
    while let Some(time) = switch.poll_timeout().filter(|&time| time <= last) {
        switch.handle_timeout(time);
    }
    switch.handle_frame(last, 0, frame(0, 3, 60));
    // The short one is sent from 1124.13 us on, the long one after it and the gap.
    let short = 1_124_130 + 5_760;
    let long = short + 960 + 122_080;
    assert_eq!(deliveries(&mut switch), [(at(short + 50), 2), (at(long + 50), 2)]);
}

/// How many copies of a broadcast of port 0 arrive, which begins at 0, with one change.
fn copies(ns: u64, cut: &[usize], partition: &[Vec<usize>]) -> (usize, Vec<&'static str>) {
    let blocks = Blocks::new(3, cut, partition).expect("valid");
    let mut switch = switch(3, |parameters| {
        parameters.timeline = vec![SwitchChange { at: at(ns), note: String::new(), blocks }];
    });
    switch.handle_frame(at(0), 0, Frame::from([vec![0xff; 6], vec![2; 54]].concat()));
    let arrived = deliveries(&mut switch).len();
    let counters = switch.counters();
    let reasons = counters.ports.iter().flat_map(|port| port.dropped.keys().copied());
    (arrived, reasons.collect())
}

#[test]
fn a_cut_meets_what_begins_on_its_cable() {
    // Of the sender.
    assert_eq!(copies(0, &[0], &[]), (0, vec!["cut"]));
    assert_eq!(copies(1, &[0], &[]), (2, vec![]));
    // Of a receiver, where the frame begins 5.76 + 0.05 + 2 us later.
    assert_eq!(copies(7_810, &[1], &[]), (1, vec!["cut"]));
    assert_eq!(copies(7_811, &[1], &[]), (2, vec![]));
}

#[test]
fn a_machine_that_is_off_loses_what_is_for_it_and_what_its_adapter_holds() {
    let counted = |port, off: &[usize]| {
        let blocks = Blocks::new(3, &[], &[]).expect("valid").with_off(off).expect("valid");
        let mut switch = switch(3, |parameters| {
            parameters.timeline = vec![SwitchChange { at: at(7_000), note: String::new(), blocks }];
        });
        // The second begins at 6.72 us + 0.28, the first leaves the switch at 7.81.
        switch.handle_frame(at(0), port, Frame::from([vec![0xff; 6], vec![2; 54]].concat()));
        switch.handle_frame(at(7_000), port, Frame::from([vec![0xff; 6], vec![2; 54]].concat()));
        let arrived = deliveries(&mut switch).len();
        let ports = switch.counters().ports;
        let lost = |name| ports.iter().filter_map(|port| port.dropped.get(name)).sum::<u64>();
        (arrived, lost("off"), lost("adapter off"), ports[port].tx_frames)
    };
    assert_eq!(counted(0, &[1]), (2, 2, 0, 2));
    assert_eq!(counted(0, &[0]), (2, 0, 1, 1));
}

#[test]
fn a_partition_meets_what_its_sender_begins() {
    let groups = [vec![0, 2], vec![1]];
    assert_eq!(copies(0, &[], &groups), (1, vec!["partition"]));
    assert_eq!(copies(1, &[], &groups), (2, vec![]));
}

#[test]
fn what_met_a_cut_is_not_learned() {
    let blocks = Blocks::new(3, &[1], &[]).expect("valid");
    let mut switch = switch(3, |parameters| {
        let change = |ns, blocks| SwitchChange { at: at(ns), note: String::new(), blocks };
        parameters.timeline = vec![change(0, blocks), change(1_000_000, Blocks::default())];
    });
    switch.handle_frame(at(0), 1, frame(2, 9, 60));
    switch.handle_frame(at(1_000_000), 0, frame(1, 2, 60));
    assert_eq!(deliveries(&mut switch).len(), 2, "flooded");
}
