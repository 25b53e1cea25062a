// SPDX-License-Identifier: Apache-2.0
//! How clients join.

use sundial_core::{Refusal, Rule};
use sundial_wire::atm::lane::Opcode;

use super::rig::{Copy, Rig, at, frame, mac, ms, seconds, settings};
use sundial_wire::ethernet::Address;

#[test]
fn a_client_is_configured_joins_and_finds_the_bus() {
    let mut rig = Rig::new(2, settings());
    rig.run_until(at(ms(1)));
    let mine =
        rig.lines().into_iter().filter(|line| !line.contains("1 to") && !line.contains("to 1"));
    // 10 us to the servers, 50 us there, 10 us back; three times.
    let expected = [
        "0 us, 0 to 2 on 17: ConfigureRequest 1",
        "60 us, 2 to 0 on 17: ConfigureResponse 1",
        "70 us, 0 to 2 on 33: JoinRequest 2",
        "130 us, 2 to 0 on 33: JoinResponse 2",
        "140 us, 0 to 2 on 33: ArpRequest 3 of ff:ff:ff:ff:ff:ff",
        "200 us, 2 to 0 on 33: ArpResponse 3 of ff:ff:ff:ff:ff:ff",
    ];
    assert_eq!(mine.collect::<Vec<_>>(), expected);
}

#[test]
fn clients_begin_a_microsecond_apart_and_get_ids_from_one() {
    let mut rig = Rig::new(3, settings());
    rig.run_until(at(ms(1)));
    let first = |port: usize| rig.copies.iter().find(|copy| copy.from == port);
    for port in 0..3 {
        let begin = first(port).expect("every client sends something").sent;
        assert_eq!(begin.as_ns_ceil(), 1_000 * port as u64);
    }
    let ids: Vec<(usize, u16)> = rig
        .copies
        .iter()
        .filter_map(|copy| Some((copy.to, copy.control()?)))
        .filter(|(_, frame)| frame.opcode == Opcode::JoinResponse)
        .map(|(port, frame)| (port, frame.requester))
        .collect();
    assert_eq!(ids, [(0, 1), (1, 2), (2, 3)]);
}

#[test]
fn frames_before_a_client_has_joined_are_dropped() {
    let mut rig = Rig::new(2, settings());
    // It is a member at 210 us.
    rig.frame_at(at(ms(0)), 0, 1, 1);
    rig.hand_in_at(at(ms(1)), 0, frame(mac(0), Address::BROADCAST, 2));
    rig.run_until(at(ms(2)));
    assert_eq!(rig.dropped, [(at(ms(0)), 1, Refusal::by(Rule::NotJoined))]);
    assert_eq!(rig.delivered.iter().map(|(_, _, number)| *number).collect::<Vec<_>>(), [2]);
}

#[test]
fn what_is_not_answered_is_asked_again_and_then_all_of_it() {
    let mut rig = Rig::new(1, settings());
    let mut lost = 0;
    // Both answers to JOIN.
    rig.lose = Box::new(move |copy| {
        let is_lost =
            lost < 2 && copy.control().is_some_and(|frame| frame.opcode == Opcode::JoinResponse);
        lost += u32::from(is_lost);
        is_lost
    });
    rig.run_until(at(seconds(300)));
    let requests = rig.lines().into_iter().filter(|line| line.contains("Request"));
    let expected = [
        "0 us, 0 to 1 on 17: ConfigureRequest 1",
        "70 us, 0 to 1 on 33: JoinRequest 2",
        // C7 is 120 s, C13 is 1.
        "120000070 us, 0 to 1 on 33: JoinRequest 3",
        "240000070 us, 0 to 1 on 17: ConfigureRequest 4",
        "240000140 us, 0 to 1 on 33: JoinRequest 5",
        "240000210 us, 0 to 1 on 33: ArpRequest 6 of ff:ff:ff:ff:ff:ff",
    ];
    assert_eq!(requests.collect::<Vec<_>>(), expected);
    assert_eq!(rig.next(), None);
}

#[test]
fn a_client_that_begins_again_keeps_its_id() {
    let mut rig = Rig::new(1, settings());
    let is_answer =
        |copy: &Copy| copy.control().is_some_and(|frame| frame.opcode == Opcode::ArpResponse);
    // The address of the BUS, which C20 and C13 give 2 s.
    rig.lose = Box::new(move |copy| is_answer(copy) && copy.sent < at(seconds(2)));
    rig.run_until(at(seconds(3)));
    let requesters: Vec<(Opcode, u16)> = rig
        .copies
        .iter()
        .filter(|copy| copy.from == 0)
        .filter_map(|copy| copy.control().map(|frame| (frame.opcode, frame.requester)))
        .collect();
    let expected = [
        (Opcode::ConfigureRequest, 0),
        (Opcode::JoinRequest, 0),
        (Opcode::ArpRequest, 1),
        (Opcode::ArpRequest, 1),
        (Opcode::ConfigureRequest, 0),
        (Opcode::JoinRequest, 0),
        (Opcode::ArpRequest, 1),
    ];
    assert_eq!(requesters, expected);
}
