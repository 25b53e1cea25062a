// SPDX-License-Identifier: Apache-2.0
//! Times worked out by hand from IEEE 802.3: at 10 Mb/s a bit is 100 ns, the gap 9.6 us, a slot 51.2 us,
//! preamble and jam together 9.6 us, the smallest frame 57.6 us. Carrier is sensed 1 us after it arrives.

use sundial_core::{Frame, Output, Segment, SegmentParameters, Span, Time};

use super::*;

/// A hub at 10 Mb/s with `cables` ns of cable a port and 800 ns of repeater.
fn hub(cables: &[u64]) -> Hub {
    seeded(cables, 1)
}

fn seeded(cables: &[u64], seed: u64) -> Hub {
    let common = SegmentParameters { seed, ..SegmentParameters::of_machines(cables.len(), 64) };
    let parameters = HubParameters {
        rate_bps: 10_000_000,
        cable_delay: cables.iter().map(|&ns| Span::from_ns(ns)).collect(),
        repeater_delay: Span::from_ns(800),
    };
    Hub::new(&common, parameters)
}

fn at(ns: u64) -> Time {
    Time::from_ns(ns)
}

fn frame(bytes: usize) -> Frame {
    Frame::from(vec![7; bytes])
}

/// (due, port) of all deliveries that are decided.
fn deliveries(hub: &mut Hub) -> Vec<(Time, usize)> {
    let outputs = std::iter::from_fn(|| hub.poll_output());
    let deliveries = outputs.filter_map(|output| match output {
        Output::Deliver { due, port, .. } => Some((due, port)),
        _ => None,
    });
    deliveries.collect()
}

fn run(hub: &mut Hub) {
    while let Some(time) = hub.poll_timeout() {
        hub.handle_timeout(time);
    }
}

#[test]
fn a_lone_frame_arrives_after_its_serialisation_and_the_way() {
    let mut hub = hub(&[100, 200, 300]);
    hub.handle_frame(at(1_000), 0, frame(60));
    run(&mut hub);
    // 1 us + 57.6 us + 0.1 us of own cable + 0.8 us + the other's cable.
    assert_eq!(deliveries(&mut hub), [(at(59_700), 1), (at(59_800), 2)]);
}

#[test]
fn the_outcome_is_known_when_all_others_sense_the_carrier() {
    let mut hub = hub(&[100, 200, 300]);
    hub.handle_frame(at(0), 0, frame(1514));
    // The farthest station hears it 0.1 + 0.8 + 0.3 us after the start, and knows 1 us later.
    hub.handle_timeout(at(2_199));
    assert_eq!(deliveries(&mut hub), []);
    hub.handle_timeout(at(2_200));
    assert_eq!(deliveries(&mut hub).len(), 2);
    assert_eq!(hub.earliest_delivery(1), None);
}

#[test]
fn a_station_defers_to_a_carrier_and_keeps_the_gap() {
    let mut hub = hub(&[100, 100]);
    hub.handle_frame(at(0), 0, frame(60));
    // Port 1 hears port 0 from 1.0 us until 58.6 us, and knows from 2.0 us.
    hub.handle_frame(at(2_000), 1, frame(60));
    run(&mut hub);
    // It starts 9.6 us after the end of the carrier: 68.2 us; 57.6 us and 1 us later it has arrived.
    assert_eq!(deliveries(&mut hub), [(at(58_600), 1), (at(126_800), 0)]);
    assert_eq!(hub.counters().ports[1].deferred, 1);
    assert_eq!(hub.counters().ports[0].collisions, 0);
}

#[test]
fn what_comes_as_the_wire_falls_free_counts_as_deferred() {
    // The carrier ends at port 1 at 58.6 us, and the gap 9.6 us later.
    for (came_ns, deferred) in [(68_199, 1), (68_200, 1), (68_201, 0)] {
        let mut hub = hub(&[100, 100]);
        hub.handle_frame(at(0), 0, frame(60));
        hub.handle_frame(at(came_ns), 1, frame(60));
        run(&mut hub);
        assert_eq!(hub.counters().ports[1].deferred, deferred, "{came_ns}");
    }
    // Behind its own frame it waits for the gap too, and that is not deferring.
    let mut hub = hub(&[100, 100]);
    hub.handle_frame(at(0), 0, frame(60));
    hub.handle_frame(at(67_200), 0, frame(60));
    run(&mut hub);
    assert_eq!(hub.counters().ports[0].deferred, 0);
}

#[test]
fn a_station_does_not_defer_to_what_it_does_not_sense_yet() {
    let mut hub = hub(&[100, 100]);
    hub.handle_frame(at(0), 0, frame(60));
    hub.handle_frame(at(1_999), 1, frame(60));
    hub.handle_timeout(at(2_000));
    assert_eq!(hub.counters().ports[1].collisions, 1);
    run(&mut hub);
    assert_eq!(hub.counters().ports[1].deferred, 0);
    assert_eq!(deliveries(&mut hub).len(), 2);
}

#[test]
fn a_carrier_in_the_first_part_of_the_gap_restarts_it() {
    // Port 2 hears port 0 until 58.6 us. The first part of its gap ends 6.4 us later, at 65.0 us: what it
    // senses before that it lets pass, what it senses then it does not.
    for (sensed, first) in [(64_999, 1), (65_000, 2)] {
        let mut hub = hub(&[100, 100, 100]);
        hub.handle_frame(at(0), 0, frame(60));
        hub.handle_frame(at(2_000), 2, frame(60));
        hub.handle_timeout(at(30_000));
        // Port 1 is made to send too early: sensed by port 2 a way and 1 us later.
        hub.handle_timeout(at(sensed - 2_000));
        let station = &mut hub.stations[1];
        assert!(station.ring.enter(at(sensed - 2_000)));
        station.queue.push_back(frame(60));
        hub.start(1, 576);
        hub.handle_timeout(at(70_500));
        let sends = |port: usize| hub.stations[port].sending.is_some_and(|it| !it.collided);
        assert_eq!((sends(1), sends(2)), (first == 1, false), "sensed at {sensed} ns");
        assert_eq!(hub.counters().ports[2].collisions, u64::from(first == 2));
    }
}

#[test]
fn equal_slots_collide_again() {
    // Port 1 waits for the gap after port 0's first frame, port 0 for its own: both are deaf, the second
    // collides a way after the first. So their jams end a way apart, and so would equal backoffs.
    let mut equal = 0;
    for seed in 0..64 {
        let mut hub = seeded(&[100, 100], seed);
        hub.handle_frame(at(0), 0, frame(60));
        hub.handle_frame(at(0), 0, frame(60));
        hub.handle_frame(at(2_000), 1, frame(60));
        // Port 0 starts at 67.2 us, port 1 at 68.2 us; their jams end at 76.8 and 77.8 us.
        hub.handle_timeout(at(75_000));
        let ends = [0, 1].map(|port| hub.stations[port].sending.expect("jams").end);
        assert_eq!(ends, [at(76_800), at(77_800)]);
        let slots = [0, 1].map(|port| {
            let until = hub.stations[port].backoff_until;
            until.map_or(0, |until| until.since(ends[port]).as_ps() / 51_200_000)
        });
        // Past all starts and carriers of slot 1, before any frame can have ended.
        hub.handle_timeout(at(77_800 + 51_200 + 3_000));
        let collided = hub.counters().ports.iter().all(|port| port.collisions >= 2);
        assert_eq!(collided, slots[0] == slots[1], "drew {slots:?}");
        equal += u32::from(slots == [1, 1]);
    }
    assert!(equal >= 8, "{equal} of 64 are too few to tell");
}

#[test]
fn a_stations_own_frames_are_a_gap_apart() {
    let mut hub = hub(&[100, 100]);
    hub.handle_frame(at(0), 0, frame(60));
    hub.handle_frame(at(0), 0, frame(60));
    run(&mut hub);
    // Ends at 57.6 us and, after the gap of 9.6 us, at 124.8 us; the way is 1 us.
    assert_eq!(deliveries(&mut hub), [(at(58_600), 1), (at(125_800), 1)]);
}

#[test]
fn a_late_joiner_collides_and_each_station_sees_it_at_its_own_time() {
    let mut hub = hub(&[5_000, 5_000]);
    // The way is 10.8 us: port 1 starts 10 us later, 1.8 us before it senses port 0.
    hub.handle_frame(at(0), 0, frame(1514));
    hub.handle_frame(at(10_000), 1, frame(1514));
    // Port 1 senses it at 11.8 us, in its preamble, which it finishes (6.4 us) and jams (3.2 us):
    // silent at 19.6 us. Port 0 senses port 1 at 21.8 us, past the preamble, and jams until 25.0 us.
    hub.handle_timeout(at(11_800));
    let sending = hub.stations[1].sending.expect("jams");
    assert_eq!((sending.collided, sending.end), (true, at(19_600)));
    assert!(!hub.stations[0].sending.expect("sends").collided);
    hub.handle_timeout(at(21_800));
    let sending = hub.stations[0].sending.expect("jams");
    assert_eq!((sending.collided, sending.end), (true, at(25_000)));
    let collisions: Vec<_> = std::iter::from_fn(|| hub.poll_output())
        .map(|output| match output {
            Output::Record { at, interface: 2, fate: Some(fate), .. } => (at, fate.words()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        collisions,
        [
            (at(11_800), "collision: m1:eth0, attempt 1, 96 bits on the wire".into()),
            (at(21_800), "collision: m0:eth0, attempt 1, 250 bits on the wire".into()),
        ]
    );
    run(&mut hub);
    assert_eq!(deliveries(&mut hub).len(), 2, "both get through in the end");
}

#[test]
fn a_bit_that_has_begun_is_finished_before_the_jam() {
    let mut hub = hub(&[4_010, 4_005]);
    hub.handle_frame(at(0), 0, frame(1514));
    hub.handle_frame(at(0), 1, frame(1514));
    // Both sense each other at 9.815 us: 98.15 bits, so 99 and 32 of jam.
    hub.handle_timeout(at(9_815));
    assert_eq!(hub.stations[0].sending.expect("jams").end, at(13_100));
    assert_eq!(hub.stations[1].sending.expect("jams").end, at(13_100));
}

#[test]
fn retries_start_whole_slots_after_the_jam() {
    let mut hub = hub(&[100, 100]);
    hub.handle_frame(at(0), 0, frame(60));
    hub.handle_frame(at(0), 1, frame(60));
    // Jams end at 9.6 us and are heard until 10.6 us: with no slot drawn a station starts at 20.2 us,
    // after the gap; with one at 9.6 + 51.2 = 60.8 us, if no other is before it.
    run(&mut hub);
    let dues: Vec<Time> = deliveries(&mut hub).into_iter().map(|(due, _)| due).collect();
    let first = dues[0];
    let (gap, slot) = (at(20_200 + 58_600), at(60_800 + 58_600));
    let attempts = hub.counters().ports[0].collisions;
    assert!(attempts > 1 || first == gap || first == slot, "{first}");
    assert_eq!(dues.len(), 2);
}

#[test]
fn the_backoff_draws_from_a_range_that_doubles_up_to_1024_slots() {
    // Station 0 is made to collide in the first bit of each attempt.
    let mut hub = hub(&[0, 0]);
    hub.handle_frame(at(0), 0, frame(60));
    let mut longest = [0_u64; 17];
    for round in 0..2_000_u64 {
        let attempts = hub.stations[0].attempts;
        if hub.stations[0].sending.is_none() {
            hub.stations[0].backoff_until = None;
            hub.start(0, 576);
        }
        hub.collide(0);
        let end = hub.stations[0].sending.take().expect("jams").end;
        let slots = hub.stations[0].backoff_until.map_or(0, |until| {
            let ps = until.since(end).as_ps();
            assert_eq!(ps % 51_200_000, 0, "whole slots");
            ps / 51_200_000
        });
        let attempt = attempts as usize + 1;
        longest[attempt] = longest[attempt].max(slots);
        hub.events.clear();
        hub.now += Span::from_ns(1_000_000_000);
        if hub.stations[0].queue.is_empty() {
            assert_eq!(attempt, 16, "given up in round {round}");
            hub.stations[0].deference = Deference::Free;
            hub.handle_frame(hub.now, 0, frame(60));
        }
    }
    // 125 draws for each attempt: the widest of them is in the upper half of its range.
    for attempt in 1..16 {
        let range = 1_u64 << attempt.min(10);
        assert!(longest[attempt] < range, "attempt {attempt}: {longest:?}");
        assert!(longest[attempt] >= range / 2, "attempt {attempt}: {longest:?}");
    }
    assert_eq!(longest[16], 0, "no station backs off after the last attempt");
    assert_eq!(hub.counters().ports[0].excessive_collisions, 125);
    assert_eq!(hub.counters().ports[0].dropped["excessive collisions"], 125);
}

#[test]
fn others_hear_the_fragments_of_a_collision() {
    let mut hub = hub(&[100, 100, 100]);
    hub.handle_frame(at(0), 0, frame(60));
    hub.handle_frame(at(0), 1, frame(60));
    hub.handle_timeout(at(15_000));
    assert_eq!(hub.counters().ports[2].fragments_seen, 2);
    assert_eq!(hub.counters().ports[2].rx_frames, 0);
}

#[test]
fn a_way_beyond_the_slot_is_too_long() {
    // (512 - 32) / 2 bits of 0.1 us, less the 1 us of carrier sense; at 100 Mb/s 0.175 us.
    assert_eq!(HubParameters::longest_way(10_000_000), Span::from_ns(23_000));
    assert_eq!(HubParameters::longest_way(100_000_000), Span::from_ns(2_225));
}
