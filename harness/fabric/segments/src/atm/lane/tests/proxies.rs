// SPDX-License-Identifier: Apache-2.0
//! Addresses behind devices, and a segment whose clients know one another from the start.

use sundial_core::{Span, Time};
use sundial_wire::atm::lane::{Flags, LanDestination, Opcode};
use sundial_wire::ethernet::Address;

use super::rig::{Rig, at, frame, mac, ms, seconds, settings};
use crate::atm::lane::{LaneSettings, Resolution};

/// A station on the other side of a device.
const BEHIND: Address = Address([0x02, 0x53, 0x44, 0, 0, 0x77]);

fn static_settings() -> LaneSettings {
    LaneSettings { resolution: Resolution::Static, ..settings() }
}

/// The numbers of the frames that came to `port`.
fn received(rig: &Rig, port: usize) -> Vec<u16> {
    let at_port = rig.delivered.iter().filter(|(_, to, _)| *to == port);
    at_port.map(|(_, _, number)| *number).collect()
}

#[test]
fn a_proxy_answers_for_what_is_behind_it() {
    let mut rig = Rig::with_relays(vec![false, true, false], settings()).joined();
    rig.clients[1].note_reachable(rig.now, BEHIND, Time::MAX);
    rig.hand_in_at(at(ms(10)), 0, frame(mac(0), BEHIND, 1));
    rig.hand_in_at(at(ms(20)), 0, frame(mac(0), BEHIND, 2));
    rig.run_until(at(ms(30)));
    let arp: Vec<(usize, usize, u16, bool)> = rig
        .copies
        .iter()
        .filter_map(|copy| Some((copy, copy.control()?)))
        .filter(|(_, frame)| frame.target == LanDestination::Mac(BEHIND))
        .map(|(copy, frame)| (copy.from, copy.to, copy.vci, frame.flags.has(Flags::REMOTE)))
        .collect();
    // To the LES, which asks everybody; from the proxy to the LES and on.
    let asked = [(0, 3, 33, false), (3, 0, 34, false), (3, 1, 34, false), (3, 2, 34, false)];
    assert_eq!(arp[..4], asked);
    assert_eq!(arp[4..], [(1, 3, 33, true), (3, 0, 33, true)]);
    assert_eq!(received(&rig, 1), [1, 2]);
    assert_eq!(received(&rig, 2), [0; 0]);
    assert_eq!(rig.copies.last().map(|copy| copy.vci), Some(65));
}

#[test]
fn a_proxy_does_not_answer_for_what_it_has_forgotten() {
    let mut rig = Rig::with_relays(vec![false, true], settings()).joined();
    rig.clients[1].note_reachable(rig.now, BEHIND, at(ms(10)));
    rig.hand_in_at(at(ms(20)), 0, frame(mac(0), BEHIND, 1));
    rig.run_until(at(ms(30)));
    rig.clients[1].note_reachable(rig.now, BEHIND, Time::MAX);
    rig.clients[1].note_reachable(rig.now, BEHIND, rig.now);
    rig.run_until(at(seconds(5)));
    let is_answer = |line: &String| line.contains("ArpResponse") && line.contains(":77");
    assert_eq!(rig.lines().into_iter().find(is_answer), None);
}

#[test]
fn a_proxy_does_not_answer_itself() {
    let mut rig = Rig::with_relays(vec![false, true, true], settings()).joined();
    rig.clients[1].note_reachable(rig.now, BEHIND, Time::MAX);
    rig.hand_in_at(at(ms(10)), 1, frame(mac(0), BEHIND, 1));
    rig.run_until(at(seconds(5)));
    let is_answer = |line: &String| line.contains("ArpResponse");
    assert_eq!(rig.lines().into_iter().find(is_answer), None);
}

#[test]
fn without_a_proxy_nobody_is_asked_for_what_is_not_registered() {
    let mut rig = Rig::new(2, settings()).joined();
    rig.hand_in_at(at(ms(10)), 0, frame(mac(0), BEHIND, 1));
    rig.run_until(at(seconds(5)));
    assert!(!rig.copies.iter().any(|copy| copy.vci == 34));
}

#[test]
fn a_proxy_gets_every_frame_of_the_bus_but_its_own() {
    let mut rig = Rig::with_relays(vec![false, true, true], settings()).joined();
    // Bridges flood what they do not know.
    rig.hand_in_at(at(ms(10)), 1, frame(BEHIND, mac(0), 1));
    rig.run_until(at(ms(20)));
    assert_eq!(received(&rig, 0), [1]);
    assert_eq!(received(&rig, 1), [0; 0]);
    assert_eq!(received(&rig, 2), [1]);
}

#[test]
fn a_proxy_tells_that_an_address_has_moved_to_it() {
    let mut rig = Rig::with_relays(vec![false, true, true], settings()).joined();
    rig.clients[1].note_reachable(rig.now, BEHIND, Time::MAX);
    for from in [0, 2] {
        rig.hand_in_at(at(ms(10)), from, frame(mac(from), BEHIND, 1));
    }
    rig.run_until(at(seconds(10)));
    rig.copies.clear();
    rig.clients[1].note_reachable(rig.now, BEHIND, rig.now);
    rig.clients[2].note_reachable(rig.now, BEHIND, Time::MAX);
    rig.drain(2);
    rig.hand_in_at(at(ms(10_010)), 0, frame(mac(0), BEHIND, 2));
    rig.hand_in_at(at(ms(10_020)), 0, frame(mac(0), BEHIND, 3));
    rig.run_until(at(seconds(11)));
    let narp = rig.copies[0].control().expect("the first thing that is sent is control");
    assert_eq!(narp.opcode, Opcode::NarpRequest);
    assert_eq!(narp.target, LanDestination::Mac(BEHIND));
    // The old client's address and the new one's.
    assert_eq!(narp.target_address.0[13..19], mac(1).0);
    assert_eq!(narp.source_address.0[13..19], mac(2).0);
    // No client asks again. The first goes by the BUS, which every proxy hears.
    assert!(!rig.lines().iter().any(|line| line.contains("ArpRequest")));
    assert_eq!(received(&rig, 2), [1, 2, 3]);
}

#[test]
fn static_clients_send_at_once_and_no_control_frame() {
    let mut rig = Rig::new(3, static_settings());
    rig.frame_at(at(ms(0)), 0, 2, 1);
    rig.hand_in_at(at(ms(0)), 1, frame(mac(1), Address::BROADCAST, 2));
    rig.run_until(at(seconds(2000)));
    let expected = [
        "0 us, 0 to 2 on 66: frame 1",
        "0 us, 1 to 3 on 35: frame 2",
        "60 us, 3 to 0 on 36: frame 2",
        "60 us, 3 to 1 on 36: frame 2",
        "60 us, 3 to 2 on 36: frame 2",
    ];
    assert_eq!(rig.lines(), expected);
    let us = |microseconds: u64| at(Span::from_ns(1_000 * microseconds));
    assert_eq!(rig.delivered, [(us(10), 2, 1), (us(70), 0, 2), (us(70), 2, 2)]);
    assert_eq!(rig.next(), None);
}

#[test]
fn static_clients_find_what_is_behind_the_only_device() {
    for (relays, path) in [
        (vec![false, true, false], "0 us, 0 to 1 on 65: frame 1"),
        (vec![false, true, true], "0 us, 0 to 3 on 35: frame 1"),
        (vec![true, false, false], "0 us, 0 to 3 on 35: frame 1"),
    ] {
        let mut rig = Rig::with_relays(relays, static_settings());
        rig.hand_in_at(at(ms(0)), 0, frame(mac(0), BEHIND, 1));
        rig.run_until(at(ms(1)));
        assert_eq!(rig.lines()[0], path);
    }
}

#[test]
fn a_frame_that_waits_is_for_its_machine_or_a_device() {
    let mut rig = Rig::with_relays(vec![false, false, true, false], settings()).joined();
    rig.frame_at(at(ms(10)), 0, 1, 1);
    rig.run_until(at(ms(11)));
    let waits = |rig: &Rig| [0, 1, 2, 3].map(|port| rig.clients[0].waits_for(port));
    assert_eq!(waits(&rig), [false; 4]);
    rig.frame_at(at(ms(11)), 0, 1, 2);
    rig.run_until(at(ms(11)));
    assert_eq!(waits(&rig), [false, true, true, false]);
    rig.run_until(at(ms(20)));
    assert_eq!(waits(&rig), [false; 4]);
}
