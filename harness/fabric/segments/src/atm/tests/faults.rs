// SPDX-License-Identifier: Apache-2.0
//! Lost cells and wrong bits, and what is said of them.

use serde_json::{Value, json};
use sundial_core::{Segment, Time};

use super::{Outcome, Recorded, atm, fields, finish, frame_of_cells, oc3c};

/// Eight cells from port 0 to port 1 with `faults` on one line.
fn with_faults(side: &str, port: usize, faults: Value) -> (Outcome, super::Atm) {
    let mut fields = fields(2);
    fields["impairments"][side][port] = faults;
    let mut atm = atm(fields);
    atm.handle_frame(Time::ZERO, 0, frame_of_cells(0, 1, 8));
    (finish(&mut atm), atm)
}

fn only_fate(outcome: &Outcome) -> (Time, &str) {
    assert_eq!(outcome.arrivals(), []);
    match &outcome.fates[..] {
        [(at, comment)] => (*at, comment),
        fates => panic!("{} fates", fates.len()),
    }
}

#[test]
fn lost_cells_are_counted_and_placed() {
    let (outcome, atm) = with_faults("from", 0, json!({ "cell_loss": 1.0 }));
    let expected = "dropped: 8 of 8 cells, cell loss from m0:eth0";
    assert_eq!(only_fate(&outcome), (Time::ZERO + oc3c(1), expected));
    let counters = atm.counters();
    assert_eq!(counters.ports[0].dropped["cell loss"], 1);
    assert_eq!(counters.ports[0].own["tx_cells"], 8);
    assert_eq!(counters.ports[1].own["rx_cells"], 0);

    let (outcome, atm) = with_faults("to", 1, json!({ "cell_loss": 1.0 }));
    let expected = "dropped: 8 of 8 cells, cell loss towards m1:eth0";
    assert_eq!(only_fate(&outcome), (Time::ZERO + oc3c(1), expected));
    let counters = atm.counters();
    assert_eq!(counters.ports[1].dropped["cell loss"], 1);
    assert_eq!(counters.channels["m0:eth0 0.101"].cells_out, 8);
}

#[test]
fn two_wrong_header_bits_cost_the_cell() {
    let (outcome, atm) = with_faults("to", 1, json!({ "header_bit": 1.0 }));
    assert_eq!(only_fate(&outcome).1, "dropped: 8 of 8 cells, header error towards m1:eth0");
    assert_eq!(atm.counters().ports[1].own["cells_corrected"], 0);
}

#[test]
fn one_wrong_header_bit_is_put_right() {
    let mut fields = fields(2);
    fields["impairments"]["to"][1] = json!({ "header_bit": 0.01 });
    let mut atm = atm(fields);
    for _ in 0..100 {
        atm.handle_frame(Time::ZERO, 0, frame_of_cells(0, 1, 8));
    }
    let outcome = finish(&mut atm);
    let own = atm.counters().ports[1].own.clone();
    assert!(own["cells_corrected"] > 0);
    assert_eq!(own["rx_cells"] + outcome.fates.len() as u64, 800, "a fate lost one cell each");
    assert_eq!(own["rx_pdus"] as usize, outcome.deliveries.len());
}

#[test]
fn a_wrong_payload_bit_costs_the_pdu() {
    let (outcome, atm) = with_faults("from", 0, json!({ "payload_bit": 1.0 }));
    // All cells arrive; the last bit is there after nine cell times.
    let expected = "dropped: wrong CRC towards m1:eth0";
    assert_eq!(only_fate(&outcome), (Time::ZERO + oc3c(9), expected));
    let counters = atm.counters();
    assert_eq!(counters.ports[1].own["rx_cells"], 8);
    assert_eq!(counters.ports[1].own["bad_pdus"], 1);
    assert_eq!(counters.ports[1].dropped["wrong CRC"], 1);
    // The bad PDU in the capture is not the one that was sent, and is marked.
    let octets = |interface: usize| {
        let mut trains = outcome.trains.iter();
        let is_here = |train: &&Recorded| (train.capture, train.interface) == (0, interface);
        let train = trains.find(is_here).expect("a PDU");
        train.records(0).next().expect("it has a record").1
    };
    let (sent, bad) = (octets(0), octets(2));
    assert_eq!((sent[9], bad[9]), (0x04, 0x14));
    let wrong = sent[20..].iter().zip(&bad[20..]).map(|(a, b)| (a ^ b).count_ones());
    assert_eq!(wrong.sum::<u32>(), 8, "one bit a cell");
}

#[test]
fn without_its_last_cell_a_pdu_costs_the_next_one_too() {
    let mut fields = fields(2);
    // The contract lets the first seven cells pass and drops the eighth; then it has recovered.
    fields["contracts"][0] =
        json!({ "rate_bps": 74_880_000, "tolerance_ns": 17_000, "action": "drop" });
    let mut atm = atm(fields);
    atm.handle_frame(Time::ZERO, 0, frame_of_cells(0, 1, 8));
    atm.handle_frame(Time::from_ns(1_000_000), 0, frame_of_cells(0, 1, 4));
    atm.handle_frame(Time::from_ns(2_000_000), 0, frame_of_cells(0, 1, 4));
    let outcome = finish(&mut atm);
    let comments: Vec<&str> = outcome.fates.iter().map(|(_, comment)| &comment[..]).collect();
    let expected = [
        "dropped: 1 of 8 cells, policed from m0:eth0",
        "dropped: joined to the PDU before towards m1:eth0",
    ];
    assert_eq!(comments, expected);
    assert_eq!(outcome.arrivals(), [(Time::from_ns(2_000_000) + oc3c(5), 1)]);
    assert_eq!(atm.counters().ports[1].own["bad_pdus"], 1);
    assert_eq!(atm.counters().channels["m0:eth0 0.101"].dropped["policed"], 1);
}

#[test]
fn tagged_cells_are_the_first_to_go() {
    let mut fields = fields(3);
    fields["contracts"][0] = json!({ "rate_bps": 64_000, "tolerance_ns": 0, "action": "tag" });
    fields["queue"]["clp1_above"] = 1.into();
    let mut atm = atm(fields);
    // Port 1 fills the output; the first cell of port 0 conforms, the others are tagged.
    atm.handle_frame(Time::ZERO, 1, frame_of_cells(1, 2, 16));
    atm.handle_frame(Time::ZERO, 0, frame_of_cells(0, 2, 8));
    let outcome = finish(&mut atm);
    // Cell 0 of each joins at once, port 0's first; cell 1 of port 0 finds port 1's cell just sent; from then on
    // one cell waits whenever a tagged one comes.
    let counters = atm.counters();
    assert_eq!(counters.ports[0].own["cells_tagged"], 7);
    let dropped = counters.channels["m0:eth0 0.102"].dropped["CLP 1"];
    assert!(dropped > 0);
    let expected = format!("dropped: {dropped} of 8 cells, CLP 1 towards m2:eth0");
    assert_eq!(outcome.fates.iter().map(|(_, comment)| comment).collect::<Vec<_>>(), [&expected]);
}
