// SPDX-License-Identifier: Apache-2.0
//! What a machine hands in and no adapter can carry: refused at once, counted and recorded with a reason.

use serde_json::{Value, json};
use sundial_core::{Frame, Segment, SegmentKind, SegmentParameters, Time};

use super::lane::lane_fields;
use super::{Config, atm, fields, finish, frame};
use crate::atm::Atm;

/// When frames are handed in.
const AT: Time = Time::from_ns(1_000);

fn lan(frame_size: u64) -> Atm {
    let mut fields = lane_fields(2);
    fields["lane"]["frame_size"] = frame_size.into();
    fields["lane"]["resolution"] = "static".into();
    let common =
        SegmentParameters { max_frame_bytes: 65_525, ..SegmentParameters::of_machines(2, 128) };
    let config: Config = serde_json::from_value(fields).expect("the fields are right");
    Atm::new(&common, config.check(2).expect("the fields are right"))
}

/// Hands frames in at the first port: what is said of those that are refused, at that instant, and how many arrive.
fn hand_in(atm: &mut Atm, frames: Vec<Frame>) -> (Vec<String>, usize) {
    let offered = frames.len();
    for frame in frames {
        atm.handle_frame(AT, 0, frame);
    }
    let outcome = finish(atm);
    assert!(outcome.fates.iter().all(|(at, _)| *at == AT));
    assert_eq!(outcome.finished.len(), offered, "the ring gets each place back");
    assert_eq!(atm.counters().ports[0].offered_frames, offered as u64);
    (outcome.fates.into_iter().map(|(_, comment)| comment).collect(), outcome.deliveries.len())
}

#[test]
fn a_frame_above_the_lans_frame_size_is_refused() {
    // A size of af-lane-0021 has the LEC ID in it.
    for frame_size in [1516, 4544, 9234, 18190] {
        let mut atm = lan(frame_size as u64);
        let longest = frame_size - 2;
        let frames = [longest, longest + 1].map(|bytes| frame(0, 1, bytes)).to_vec();
        let too_long = format!("dropped: {} bytes, longest is {longest} (m0:eth0)", longest + 1);
        assert_eq!(hand_in(&mut atm, frames), (vec![too_long], 1));
        let counters = &atm.counters().ports[0];
        assert_eq!((counters.dropped["too long"], counters.tx_frames), (1, 1));
    }
}

fn routed() -> Value {
    let mut fields = fields(2);
    fields["encapsulation"] = "routed".into();
    fields["addresses"] = json!([["10.0.0.1"], ["10.0.0.2"]]);
    fields
}

/// A frame of a type with a payload, to the second machine.
fn typed(ethertype: u16, payload: &[u8]) -> Frame {
    let mut octets = frame(0, 1, 12).to_vec();
    octets.extend(ethertype.to_be_bytes());
    octets.extend(payload);
    octets.into()
}

#[test]
fn classical_ip_carries_nothing_but_ip() {
    let mut packet = [0; 28];
    packet[0] = 0x45;
    packet[16..20].copy_from_slice(&[10, 0, 0, 2]);
    let mut atm = atm(routed());
    let frames = vec![
        typed(0x0800, &packet),
        typed(0x86dd, &[0x60; 40]), // IPv6
        typed(0x88b5, &packet),     // local experiments
        typed(0x0800, &packet[..19]),
        typed(0x0800, &[0x60; 28]), // says IPv4, and is not
    ];
    let not_ip = "dropped: not IP (m0:eth0)".to_owned();
    assert_eq!(hand_in(&mut atm, frames), (vec![not_ip; 4], 1));
    let counters = &atm.counters().ports[0];
    assert_eq!((counters.dropped["not IP"], counters.own["tx_pdus"]), (4, 1));
}

#[test]
fn what_is_no_frame_is_refused_by_every_encapsulation() {
    let mut bridged = fields(2);
    bridged["encapsulation"] = "bridged-fcs".into();
    for mut atm in [lan(1516), atm(routed()), atm(bridged)] {
        let too_short = "dropped: 13 bytes are no Ethernet frame (m0:eth0)".to_owned();
        assert_eq!(hand_in(&mut atm, vec![Frame::new(&[0; 13])]), (vec![too_short], 0));
        assert_eq!(atm.counters().ports[0].dropped["too short"], 1);
    }
}
