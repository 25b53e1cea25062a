// SPDX-License-Identifier: Apache-2.0
//! Data direct VCs over time: READY_IND that is lost, release, ageing.

use sundial_core::{Span, Time};
use sundial_wire::atm::lane::{ControlFrame, Flags, Message, Opcode};

use super::rig::{Rig, at, frame, mac, ms, seconds, settings};
use crate::atm::lane::{CONTROL_DISTRIBUTE, LaneSettings, Sdu};

fn ready(octets: &Sdu) -> Option<Message> {
    let Sdu::Control(octets) = octets else { return None };
    Message::parse(octets).filter(|message| !matches!(message, Message::Frame(_)))
}

fn lines_with(rig: &mut Rig, words: &[&str]) -> Vec<String> {
    let has_word = |line: &String| words.iter().any(|word| line.contains(word));
    rig.lines().into_iter().filter(has_word).collect()
}

/// Machine 0 has called machine 1 with frames 1 and 2, and nothing is under way any more at 1 s.
fn called(lane: LaneSettings) -> Rig {
    let mut rig = Rig::pair(lane).frames([(10, 0, 1), (11, 0, 1)]);
    rig.run_until(at(seconds(1)));
    assert_eq!(rig.delivered.len(), 2);
    rig.copies.clear();
    rig
}

#[test]
fn a_client_that_was_called_asks_for_a_lost_ready_indication() {
    let mut rig = Rig::pair(settings())
        .losing(|copy| {
            ready(&copy.sdu) == Some(Message::ReadyIndication) && copy.sent < at(seconds(1))
        })
        .frames([(10, 0, 1), (20, 1, 0), (30, 1, 0)]);
    rig.run_until(at(seconds(10)));
    let expected = [
        "12070 us, 0 to 1 on 65: ReadyIndication",
        // C28 is 4 s. Meanwhile C11 lets frame 3 go by the BUS.
        "4012070 us, 1 to 0 on 64: ReadyQuery",
        "4012080 us, 0 to 1 on 65: ReadyIndication",
    ];
    assert_eq!(lines_with(&mut rig, &["Ready"]), expected);
    assert_eq!(rig.numbers(), [1, 2, 3]);
}

#[test]
fn data_tells_as_much_as_a_ready_indication() {
    let mut rig = Rig::pair(settings()).losing(|copy| ready(&copy.sdu).is_some()).frames([
        (10, 0, 1),
        (20, 1, 0),
        (30, 1, 0),
        (40, 0, 1),
    ]);
    rig.run_until(at(seconds(10)));
    // Frame 4 arrives at 40.01 ms, the flush over the BUS takes 140 us.
    let third = rig.delivered.last().expect("frame 3 arrives");
    assert_eq!(*third, (at(Span::from_ns(40_160_000)), 0, 3));
    assert_eq!(lines_with(&mut rig, &["ReadyQuery"]), Vec::<String>::new());
}

#[test]
fn a_caller_that_never_gets_ready_is_called() {
    let mut rig = Rig::pair(settings())
        .losing(|copy| ready(&copy.sdu).is_some() && copy.from == 0)
        .frames([(10, 0, 1)]);
    // They go by the BUS, one in C11, from 11.6 s on; eight of them wait when the channel is released.
    for number in 2..=10 {
        rig.frame_at(at(ms(11_600)), 1, 0, number);
    }
    rig.run_until(at(seconds(30)));
    let expected = [
        "12070 us, 0 to 1 on 65: ReadyIndication",
        "4012070 us, 1 to 0 on 64: ReadyQuery",
        "4012080 us, 0 to 1 on 65: ReadyIndication",
        "8012070 us, 1 to 0 on 64: ReadyQuery",
        "8012080 us, 0 to 1 on 65: ReadyIndication",
        // C28 once more is 12.01207 s: released, and called for the frames that wait.
        "12014070 us, 1 to 0 on 64: ReadyIndication",
    ];
    assert_eq!(lines_with(&mut rig, &["Ready"]), expected);
    assert_eq!(rig.numbers(), (1..=10).collect::<Vec<_>>());
}

#[test]
fn a_channel_that_nobody_uses_is_released_and_set_up_again() {
    let mut rig = called(settings());
    // The last frame arrived at 12.22 ms; C12 is 1200 s. The address was forgotten after 300 s.
    rig.frame_at(at(seconds(1201)), 0, 1, 3);
    rig.run_until(at(seconds(1202)));
    let expected = [
        "1201000000 us, 0 to 2 on 33: ArpRequest 6 of 02:53:44:00:00:02",
        "1201000000 us, 0 to 2 on 35: frame 3",
        "1201002070 us, 0 to 1 on 65: ReadyIndication",
        "1201002070 us, 0 to 2 on 35: FlushRequest 7",
    ];
    assert_eq!(lines_with(&mut rig, &[", 0 to"]), expected);
}

#[test]
fn an_address_in_use_is_verified_before_it_is_forgotten() {
    let mut rig = called(settings());
    // Answered at 10.07 ms. C17 is 300 s; LE_ARP takes at most 2 s with its repetition.
    for (number, second) in [(3, 290), (4, 298), (5, 299), (6, 300)] {
        rig.frame_at(at(seconds(second)), 0, 1, number);
    }
    rig.frame_at(at(ms(299_500)), 0, 1, 7);
    rig.run_until(at(seconds(301)));
    let expected = [
        "290000000 us, 0 to 1 on 65: frame 3",
        "298000000 us, 0 to 1 on 65: frame 4",
        "299000000 us, 0 to 1 on 65: frame 5",
        "299000000 us, 0 to 2 on 33: ArpRequest 6 of 02:53:44:00:00:02",
        "299500000 us, 0 to 1 on 65: frame 7",
        "300000000 us, 0 to 1 on 65: frame 6",
    ];
    let lines = lines_with(&mut rig, &[", 0 to"]);
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    assert_eq!(sorted(lines), sorted(expected.map(str::to_owned).to_vec()));
}

#[test]
fn an_address_out_of_use_is_asked_for_again() {
    let mut rig = called(settings());
    rig.frame_at(at(seconds(100)), 0, 1, 3);
    rig.frame_at(at(seconds(301)), 0, 1, 4);
    rig.run_until(at(seconds(302)));
    let expected = [
        "100000000 us, 0 to 1 on 65: frame 3",
        // The channel is still there.
        "301000000 us, 0 to 2 on 33: ArpRequest 6 of 02:53:44:00:00:02",
        "301000000 us, 0 to 2 on 35: frame 4",
        "301000070 us, 0 to 2 on 35: FlushRequest 7",
    ];
    assert_eq!(lines_with(&mut rig, &[", 0 to"]), expected);
}

#[test]
fn from_a_channel_to_the_bus_the_channel_is_flushed() {
    // Forgotten 3 s after LE_ARP, and the answers to the verification are lost.
    let mut rig = called(LaneSettings { ageing: seconds(3), ..settings() });
    rig.lose =
        Box::new(|copy| copy.control().is_some_and(|frame| frame.opcode == Opcode::ArpResponse));
    rig.frame_at(at(seconds(2)), 0, 1, 3);
    rig.frame_at(at(ms(3_020)), 0, 1, 4);
    rig.run_until(at(ms(3_500)));
    let expected = [
        "2000000 us, 0 to 1 on 65: frame 3",
        "2000000 us, 0 to 2 on 33: ArpRequest 6 of 02:53:44:00:00:02",
        "3000000 us, 0 to 2 on 33: ArpRequest 7 of 02:53:44:00:00:02",
        "3020000 us, 0 to 1 on 65: FlushRequest 8",
        // 10 us on the channel, 70 us by the LES.
        "3020080 us, 0 to 2 on 35: frame 4",
    ];
    let mut lines = lines_with(&mut rig, &[", 0 to"]);
    lines[..2].sort();
    assert_eq!(lines, expected);
    assert_eq!(rig.numbers(), [1, 2, 3, 4]);
}

#[test]
fn from_a_channel_to_the_bus_the_channel_is_flushed_though_nothing_is_known_any_more() {
    // Half of C17 after LE_ARP is 1.51 s: until then a frame does not make the client ask again.
    let mut rig = called(LaneSettings { ageing: seconds(3), ..settings() });
    rig.frame_at(at(ms(1_400)), 0, 1, 3);
    rig.frame_at(at(ms(3_500)), 0, 1, 4);
    rig.run_until(at(seconds(4)));
    let expected = [
        "1400000 us, 0 to 1 on 65: frame 3",
        "3500000 us, 0 to 2 on 33: ArpRequest 6 of 02:53:44:00:00:02",
        "3500000 us, 0 to 1 on 65: FlushRequest 7",
        // LE_ARP is answered first: it is the same channel.
        "3500070 us, 0 to 1 on 65: frame 4",
    ];
    assert_eq!(lines_with(&mut rig, &[", 0 to"]), expected);
}

#[test]
fn a_channel_that_is_gone_is_not_flushed() {
    let mut rig = called(LaneSettings { vcc_time_out: seconds(2), ..settings() });
    // Last used at 12.22 ms.
    rig.frame_at(at(seconds(3)), 0, 1, 3);
    rig.run_until(at(seconds(4)));
    let expected =
        ["3002000 us, 0 to 1 on 65: ReadyIndication", "3002000 us, 0 to 1 on 65: frame 3"];
    assert_eq!(lines_with(&mut rig, &[", 0 to"]), expected);
}

#[test]
fn what_is_forgotten_while_frames_wait_is_asked_for_again() {
    let mut rig = Rig::new(2, LaneSettings { ageing: seconds(5), ..settings() }).joined();
    rig.vc_setup = seconds(20);
    for number in 1..=9 {
        rig.frame_at(at(ms(10)), 0, 1, number);
    }
    rig.run_until(at(seconds(6)));
    let expected = [
        "10000 us, 0 to 2 on 33: ArpRequest 4 of 02:53:44:00:00:02",
        "5010070 us, 0 to 2 on 33: ArpRequest 5 of 02:53:44:00:00:02",
    ];
    assert_eq!(lines_with(&mut rig, &["ArpRequest"]), expected);
}

#[test]
fn while_the_topology_changes_addresses_behind_clients_age_faster() {
    let mut rig = Rig::with_relays(vec![false, true], settings()).joined();
    let behind = mac(9);
    rig.clients[1].note_reachable(rig.now, behind, Time::MAX);
    rig.hand_in_at(at(ms(10)), 0, frame(mac(0), behind, 1));
    rig.frame_at(at(ms(10)), 0, 1, 2);
    rig.run_until(at(seconds(1)));
    let change = ControlFrame {
        flags: Flags::TOPOLOGY_CHANGE,
        ..ControlFrame::request(
            Opcode::TopologyRequest,
            1,
            sundial_wire::atm::lane::AtmAddress::NONE,
        )
    };
    let message = Message::Frame(Box::new(change));
    rig.clients[0].handle_control(rig.now, CONTROL_DISTRIBUTE, &message.to_octets());
    rig.run_until(at(seconds(20)));
    rig.copies.clear();
    // C18 is 15 s, for the address behind the proxy alone.
    rig.hand_in_at(at(seconds(20)), 0, frame(mac(0), behind, 3));
    rig.frame_at(at(seconds(20)), 0, 1, 4);
    rig.run_until(at(seconds(21)));
    let expected = ["20000000 us, 0 to 2 on 33: ArpRequest 8 of 02:53:44:00:00:0a"];
    assert_eq!(lines_with(&mut rig, &["ArpRequest"])[..1], expected);
    assert_eq!(rig.numbers(), [1, 2, 4, 3]);
}
