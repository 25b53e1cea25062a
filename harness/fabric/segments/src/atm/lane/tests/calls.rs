// SPDX-License-Identifier: Apache-2.0
//! Unicast frames: the first by the BUS, the others by a data direct VC.

use sundial_core::{Refusal, Rule, Span, Time, Why};
use sundial_wire::atm::lane::Opcode;
use sundial_wire::ethernet::Address;

use super::rig::{Copy, Rig, at, frame, mac, ms, seconds, settings};
use crate::atm::lane::{LaneSettings, MULTICAST_SEND};

/// Of a frame for the address that no client has.
fn unsent(rule: Rule) -> Refusal {
    Refusal::with(rule, Why::Address { address: "02:00:00:00:00:09".into() })
}

fn us(microseconds: u64) -> Time {
    at(Span::from_ns(1_000 * microseconds))
}

fn is(copy: &Copy, opcode: Opcode) -> bool {
    copy.control().is_some_and(|frame| frame.opcode == opcode)
}

/// Frames by number, at the port that got them.
fn numbers(rig: &Rig) -> Vec<(usize, u16)> {
    rig.delivered.iter().map(|(_, port, number)| (*port, *number)).collect()
}

#[test]
fn the_first_frame_goes_by_the_bus_and_the_next_by_a_channel_of_its_own() {
    let mut rig = Rig::pair(settings()).frames([(10, 0, 1), (11, 0, 1), (20, 0, 1)]);
    rig.run_until(at(ms(30)));
    let expected = [
        "10000 us, 0 to 2 on 33: ArpRequest 4 of 02:53:44:00:00:02",
        "10000 us, 0 to 2 on 35: frame 1",
        "10060 us, 2 to 0 on 33: ArpResponse 4 of 02:53:44:00:00:02",
        "10060 us, 2 to 0 on 36: frame 1",
        "10060 us, 2 to 1 on 36: frame 1",
        // Called at 10070 us; frame 2 waits.
        "12070 us, 0 to 1 on 65: ReadyIndication",
        "12070 us, 0 to 2 on 35: FlushRequest 5",
        "12130 us, 2 to 0 on 36: FlushRequest 5",
        "12130 us, 2 to 1 on 36: FlushRequest 5",
        "12140 us, 1 to 2 on 33: FlushResponse 5",
        "12200 us, 2 to 0 on 33: FlushResponse 5",
        "12210 us, 0 to 1 on 65: frame 2",
        "20000 us, 0 to 1 on 65: frame 3",
    ];
    assert_eq!(rig.lines(), expected);
    assert_eq!(rig.delivered, [(us(10_070), 1, 1), (us(12_220), 1, 2), (us(20_010), 1, 3)]);
}

#[test]
fn the_called_client_asks_with_le_arp_but_calls_nobody() {
    let mut rig = Rig::pair(settings()).frames([(10, 0, 1), (20, 1, 0), (30, 1, 0)]);
    rig.run_until(at(ms(19)));
    rig.lines();
    rig.run_until(at(ms(40)));
    let expected = [
        // The channel is there, but whose it is only LE_ARP tells.
        "20000 us, 1 to 2 on 33: ArpRequest 4 of 02:53:44:00:00:01",
        "20000 us, 1 to 2 on 35: frame 2",
        "20060 us, 2 to 1 on 33: ArpResponse 4 of 02:53:44:00:00:01",
        "20060 us, 2 to 0 on 36: frame 2",
        "20060 us, 2 to 1 on 36: frame 2",
        "20070 us, 1 to 2 on 35: FlushRequest 5",
        "20130 us, 2 to 0 on 36: FlushRequest 5",
        "20130 us, 2 to 1 on 36: FlushRequest 5",
        "20140 us, 0 to 2 on 33: FlushResponse 5",
        "20200 us, 2 to 1 on 33: FlushResponse 5",
        "30000 us, 1 to 0 on 64: frame 3",
    ];
    assert_eq!(rig.lines(), expected);
}

/// What goes over the channel of machines 0 and 1, which call each other: frames at these microseconds.
fn calls_from_both_ends(frames: [(u64, usize); 6]) -> (Rig, Vec<String>) {
    let mut rig = Rig::pair(settings());
    for (number, (time, from)) in (1..).zip(frames) {
        rig.frame_at(us(time), from, 1 - from, number);
    }
    rig.run_until(at(ms(30)));
    let is_direct = |line: &String| line.contains("on 64") || line.contains("on 65");
    let lines = rig.lines().into_iter().filter(is_direct).collect();
    (rig, lines)
}

#[test]
fn both_ends_calling_at_once_share_one_channel() {
    let (rig, lines) = calls_from_both_ends([
        (10_000, 0),
        (10_000, 1),
        (11_000, 0),
        (11_000, 1),
        (20_000, 0),
        (20_000, 1),
    ]);
    let expected = [
        "12070 us, 0 to 1 on 65: ReadyIndication",
        "12070 us, 1 to 0 on 64: ReadyIndication",
        "12210 us, 0 to 1 on 65: frame 3",
        "12210 us, 1 to 0 on 64: frame 4",
        "20000 us, 0 to 1 on 65: frame 5",
        "20000 us, 1 to 0 on 64: frame 6",
    ];
    assert_eq!(lines, expected);
    assert_eq!(numbers(&rig), [(1, 1), (0, 2), (1, 3), (0, 4), (1, 5), (0, 6)]);
}

#[test]
fn the_later_of_two_callers_says_that_it_is_ready_when_its_call_is_complete() {
    let (rig, lines) = calls_from_both_ends([
        (10_000, 0),
        (10_500, 1),
        (11_000, 0),
        (11_000, 1),
        (20_000, 0),
        (20_000, 1),
    ]);
    let expected = [
        "12070 us, 0 to 1 on 65: ReadyIndication",
        // Each after a flush of 140 us by the BUS; for machine 1, called, from 12.08 ms on.
        "12210 us, 0 to 1 on 65: frame 3",
        "12220 us, 1 to 0 on 64: frame 4",
        "12570 us, 1 to 0 on 64: ReadyIndication",
        "20000 us, 0 to 1 on 65: frame 5",
        "20000 us, 1 to 0 on 64: frame 6",
    ];
    assert_eq!(lines, expected);
    assert_eq!(numbers(&rig), [(1, 1), (0, 2), (1, 3), (0, 4), (1, 5), (0, 6)]);
}

#[test]
fn a_group_goes_by_the_bus_to_everybody_but_its_sender() {
    let mut rig = Rig::new(3, settings()).joined();
    rig.hand_in_at(at(ms(10)), 1, frame(mac(1), Address::BROADCAST, 1));
    rig.hand_in_at(at(ms(10)), 1, frame(mac(1), Address([1, 0, 0x5e, 0, 0, 1]), 2));
    rig.run_until(at(ms(20)));
    assert_eq!(numbers(&rig), [(0, 1), (2, 1), (0, 2), (2, 2)]);
    assert!(rig.copies.iter().all(|copy| copy.control().is_none()), "no client asks about a group");
}

#[test]
fn a_frame_by_the_bus_is_for_its_machine_alone() {
    let mut rig = Rig::new(3, settings()).joined();
    rig.frame_at(at(ms(10)), 0, 2, 1);
    rig.run_until(at(ms(20)));
    assert_eq!(numbers(&rig), [(2, 1)]);
}

#[test]
fn of_ten_frames_to_nobody_one_goes_by_the_bus_eight_wait_one_is_dropped() {
    let mut rig = Rig::pair(settings());
    let unknown = Address([2, 0, 0, 0, 0, 9]);
    for number in 1..=10 {
        rig.hand_in_at(at(ms(10)), 0, frame(mac(0), unknown, number));
    }
    rig.run_until(at(ms(10)));
    let by_bus = |rig: &Rig| {
        let frames = rig.copies.iter().filter(|copy| copy.vci == MULTICAST_SEND);
        frames.map(|copy| copy.sent).collect::<Vec<_>>()
    };
    assert_eq!(by_bus(&rig), [at(ms(10))]);
    let full = unsent(Rule::EightFramesWait);
    assert_eq!(rig.dropped, [(at(ms(10)), 10, full)]);
    // C11 lets one more go after 1 s. C20 and C13: LE_ARP again after 1 s, the end after 2 s.
    rig.run_until(at(seconds(5)));
    assert_eq!(by_bus(&rig), [at(ms(10)), at(ms(1010))]);
    let requests: Vec<Time> = rig
        .copies
        .iter()
        .filter(|copy| is(copy, Opcode::ArpRequest))
        .map(|copy| copy.sent)
        .collect();
    assert_eq!(requests, [at(ms(10)), at(ms(1010))]);
    let unanswered = unsent(Rule::NoAnswer);
    let expected: Vec<_> =
        (3..=9).map(|number| (at(ms(2010)), number, unanswered.clone())).collect();
    assert_eq!(rig.dropped[1..], expected);
}

#[test]
fn an_address_that_nobody_has_is_not_forgotten_within_c11() {
    let lane = LaneSettings { unknown_frame_time: seconds(30), ..settings() };
    let mut rig = Rig::pair(lane);
    let unknown = Address([2, 0, 0, 0, 0, 9]);
    rig.hand_in_at(at(ms(10)), 0, frame(mac(0), unknown, 1));
    rig.hand_in_at(at(seconds(20)), 0, frame(mac(0), unknown, 2));
    rig.run_until(at(seconds(60)));
    let unanswered = unsent(Rule::NoAnswer);
    assert_eq!(rig.dropped, [(at(seconds(22)), 2, unanswered)]);
    // Then it is.
    assert_eq!(rig.next(), None);
}

#[test]
fn an_answer_that_comes_after_the_repetition_is_ignored() {
    let late = |copy: &Copy| is(copy, Opcode::ArpResponse) && copy.sent < at(seconds(1));
    let asked = |latency: Span| {
        let mut rig = Rig::pair(settings())
            .losing(|copy| is(copy, Opcode::ArpResponse) && copy.sent > at(seconds(1)))
            .frames([(10, 0, 1)]);
        rig.latency = Box::new(move |copy| if late(copy) { latency } else { ms(1) });
        rig.run_until(at(ms(1_500)));
        rig
    };
    // Sent at 11.05 ms, here at 1001.05 ms; asked again at 1010 ms.
    let rig = asked(ms(990));
    assert!(rig.copies.iter().any(|copy| copy.vci == 65), "the answer is in time");

    let rig = asked(ms(1_000));
    assert!(!rig.copies.iter().any(|copy| copy.vci == 65), "the answer is late");
    assert_eq!(rig.clients[0].ignored_sdus(), 1);
}

#[test]
fn frames_to_unknown_addresses_are_counted_by_address() {
    let lane = LaneSettings { unknown_frames: 2, ..settings() };
    let mut rig = Rig::pair(lane);
    for last in [8, 9] {
        for number in 1..=3 {
            let unknown = Address([2, 0, 0, 0, 0, last]);
            rig.hand_in_at(at(ms(10)), 0, frame(mac(0), unknown, number));
        }
    }
    rig.run_until(at(ms(900)));
    let by_bus = rig.copies.iter().filter(|copy| copy.vci == MULTICAST_SEND);
    assert_eq!(by_bus.count(), 4);
}

#[test]
fn without_its_response_a_flush_is_repeated_and_then_not_waited_for() {
    let mut rig = Rig::pair(settings())
        .losing(|copy| is(copy, Opcode::FlushResponse))
        .frames([(10, 0, 1), (11, 0, 1)]);
    rig.run_until(at(seconds(10)));
    let flushes: Vec<Time> = rig
        .copies
        .iter()
        .filter(|copy| is(copy, Opcode::FlushRequest) && copy.from == 0)
        .map(|copy| copy.sent)
        .collect();
    // C21: 4 s after the first. C22: 6 s after the last frame to the BUS.
    assert_eq!(flushes, [us(12_070), us(4_012_070)]);
    assert_eq!(rig.delivered, [(us(10_070), 1, 1), (us(6_010_010), 1, 2)]);
}

#[test]
fn an_answer_to_the_second_flush_opens_the_path() {
    let mut rig = Rig::pair(settings())
        .losing(|copy| is(copy, Opcode::FlushResponse) && copy.sent < at(seconds(1)))
        .frames([(10, 0, 1), (11, 0, 1)]);
    rig.run_until(at(seconds(10)));
    assert_eq!(rig.delivered, [(us(10_070), 1, 1), (us(4_012_220), 1, 2)]);
}

#[test]
fn once_the_last_frame_by_the_bus_is_old_enough_no_flush_is_needed() {
    // Called at 10.07 ms; C22 is over 6 s after 10 ms.
    for (vc_setup, flushes) in [(us(5_999_929), 1), (us(5_999_930), 0)] {
        let mut rig = Rig::pair(settings());
        rig.vc_setup = vc_setup.since(Time::ZERO);
        rig.frame_at(at(ms(10)), 0, 1, 1);
        rig.frame_at(at(seconds(8)), 0, 1, 2);
        rig.run_until(at(seconds(9)));
        let requests = rig.copies.iter().filter(|copy| is(copy, Opcode::FlushRequest));
        assert_eq!(requests.filter(|copy| copy.from == 0).count(), flushes);
        assert_eq!(rig.delivered, [(us(10_070), 1, 1), (us(8_000_010), 1, 2)]);
    }
}
