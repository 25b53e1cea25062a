// SPDX-License-Identifier: Apache-2.0
//! The captures of PDUs and cells.

use serde_json::json;
use sundial_core::{Direction, LinkType, Segment, Time};
use sundial_wire::atm::aal5;
use sundial_wire::atm::cell::CellHeader;

use super::{Outcome, Recorded, atm, fields, finish, frame, oc3c};

/// The records of one capture on one interface in one direction: stamps and octets.
fn records(
    outcome: &Outcome,
    capture: usize,
    interface: usize,
    direction: Direction,
) -> Vec<(Time, Vec<u8>)> {
    let here = |train: &&Recorded| {
        (train.capture, train.interface, train.direction) == (capture, interface, direction)
    };
    outcome.trains.iter().filter(here).flat_map(|train| train.records(1_500_000_000)).collect()
}

fn header(record: &[u8]) -> CellHeader {
    CellHeader::from_octets(record[16..20].try_into().expect("four octets"))
}

#[test]
fn there_is_one_of_pdus_and_if_asked_for_one_of_cells() {
    let mut fields = fields(2);
    let captures = atm(fields.clone()).further_captures();
    let paths: Vec<&str> = captures.iter().map(|capture| &capture.path[..]).collect();
    assert_eq!(paths, ["atm/lan.pdus", "atm/lan.cells"]);
    assert!(captures.iter().all(|capture| capture.link_type == LinkType::ERF));
    assert_eq!(captures[1].records_most, Some(1_000_000));
    fields["capture"]["cells"] = false.into();
    assert_eq!(atm(fields).further_captures().len(), 1);
}

#[test]
fn cells_joined_are_the_pdu_and_its_stamps_are_theirs() {
    let mut atm = atm(fields(2));
    let sent = frame(0, 1, 100);
    atm.handle_frame(Time::ZERO, 0, sent.clone());
    let outcome = finish(&mut atm);
    // 10 octets in front of 100 and 8 behind: three cells.
    for (interface, direction, way, vci, cells_at, pdu_at) in [
        (0, Direction::Outbound, 4, 101, [oc3c(0), oc3c(1), oc3c(2)], oc3c(0)),
        (1, Direction::Inbound, 5, 100, [oc3c(2), oc3c(3), oc3c(4)], oc3c(4)),
    ] {
        let pdus = records(&outcome, 0, interface, direction);
        let [(at, pdu)] = &pdus[..] else { panic!("{} PDUs", pdus.len()) };
        assert_eq!(*at, Time::ZERO + pdu_at);
        // A second and a half is 1.8 in hexadecimal.
        assert_eq!(pdu[..10], [0, 0, 0, 0x80, 1, 0, 0, 0, 4, way]);
        assert_eq!(header(pdu).vci, vci);
        let sdu = aal5::parse(&pdu[20..]).expect("a PDU is right");
        assert_eq!(sdu[10..], sent[..]);
        let cells = records(&outcome, 1, interface, direction);
        let joined: Vec<u8> = cells.iter().flat_map(|(_, cell)| cell[20..].to_vec()).collect();
        assert_eq!(joined, pdu[20..]);
        for (index, (at, cell)) in cells.iter().enumerate() {
            assert_eq!(*at, Time::ZERO + cells_at[index]);
            assert_eq!(cell[8..10], [3, way]);
            let expected =
                CellHeader { vpi: 0, vci, payload_type: u8::from(index == 2), low_priority: false };
            assert_eq!(header(cell), expected);
        }
    }
}

#[test]
fn an_incomplete_pdu_is_recorded_as_it_was_sent_and_marked() {
    let mut fields = fields(2);
    // Three cells conform, the last one does not.
    fields["contracts"][0] =
        json!({ "rate_bps": 74_880_000, "tolerance_ns": 6_000, "action": "drop" });
    let mut atm = atm(fields);
    atm.handle_frame(Time::ZERO, 0, frame(0, 1, 160));
    let outcome = finish(&mut atm);
    let [(at, fate)] = &records(&outcome, 0, 2, Direction::Unknown)[..] else { panic!("one fate") };
    assert_eq!(*at, Time::ZERO + oc3c(4));
    // Flags: RX error; rlen 16 + 4 + 192; one cell lost; wlen 4 + 192.
    assert_eq!(fate[8..16], [4, 0x14, 0, 212, 0, 1, 0, 196]);
    let sent = &records(&outcome, 0, 0, Direction::Outbound)[0].1;
    assert_eq!(fate[16..], sent[16..]);
    assert_eq!(records(&outcome, 1, 1, Direction::Inbound).len(), 3);
    assert_eq!(records(&outcome, 0, 1, Direction::Inbound), []);
}

#[test]
fn a_tagged_cell_shows_its_priority_behind_the_switch_only() {
    let mut fields = fields(2);
    fields["contracts"][0] = json!({ "rate_bps": 74_880_000, "tolerance_ns": 0, "action": "tag" });
    let mut atm = atm(fields);
    atm.handle_frame(Time::ZERO, 0, frame(0, 1, 160));
    let outcome = finish(&mut atm);
    let priorities = |interface, direction| -> Vec<bool> {
        let cells = records(&outcome, 1, interface, direction);
        cells.iter().map(|(_, cell)| header(cell).low_priority).collect()
    };
    assert_eq!(priorities(0, Direction::Outbound), [false; 4]);
    assert_eq!(priorities(1, Direction::Inbound), [false, true, false, true]);
}
