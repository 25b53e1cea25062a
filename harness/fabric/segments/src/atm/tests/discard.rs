// SPDX-License-Identifier: Apache-2.0
//! What an output queue discards: two inputs send eight PDUs of 32 cells back to back from one instant; the queue
//! has 64 places. What is left is worked out by hand: the lower port always goes first, so that once the queue
//! is full no cell of the higher one finds a place.

use serde_json::json;
use sundial_core::{Segment, Time};

use super::{Outcome, atm, fields, finish, frame_of_cells};

struct Result {
    /// Cells of each input that are lost, by cause.
    lost: [Vec<(&'static str, u64)>; 2],
    outcome: Outcome,
}

fn contend(cells: u64, discard: &str, epd_above: Option<u64>) -> Result {
    let mut fields = fields(3);
    fields["queue"] = json!({
        "cells": cells, "discard": discard, "epd_above": epd_above, "vc_cells": null, "clp1_above": null,
    });
    let mut atm = atm(fields);
    for _ in 0..8 {
        for port in 0..2 {
            atm.handle_frame(Time::ZERO, port, frame_of_cells(port as u8, 2, 32));
        }
    }
    let outcome = finish(&mut atm);
    let channels = atm.counters().channels;
    let lost = ["m0:eth0 0.102", "m1:eth0 0.102"].map(|name| {
        let channel = &channels[name];
        let lost = channel.dropped.values().sum::<u64>();
        assert_eq!(channel.cells_in, 256);
        assert_eq!(channel.cells_out + lost, 256);
        channel.dropped.iter().map(|(cause, cells)| (*cause, *cells)).collect()
    });
    Result { lost, outcome }
}

/// Frames that arrive from each input.
fn arrived(outcome: &Outcome) -> [usize; 2] {
    [0, 1].map(|from| outcome.deliveries.iter().filter(|(.., frame)| frame[11] == from).count())
}

#[test]
fn a_full_queue_drops_its_tail() {
    let Result { lost, outcome } = contend(64, "tail", None);
    assert_eq!(lost, [vec![], vec![("queue full", 192)]]);
    assert_eq!(arrived(&outcome), [8, 2]);
    assert_eq!(outcome.fates.len(), 6);
}

#[test]
fn the_rest_of_a_packet_is_discarded_but_for_its_last_cell() {
    let Result { lost, outcome } = contend(64, "ppd", None);
    assert_eq!(lost, [vec![], vec![("partial packet discard", 180), ("queue full", 12)]]);
    assert_eq!(arrived(&outcome), [8, 2]);
    let expected = "dropped: 32 of 32 cells, queue full towards m2:eth0";
    assert_eq!(outcome.fates.last().expect("there are some").1, expected);
}

#[test]
fn packets_are_discarded_before_the_queue_is_full() {
    let Result { lost, outcome } = contend(64, "epd", Some(16));
    let early = || vec![("early packet discard", 128)];
    assert_eq!(lost, [early(), early()]);
    assert_eq!(arrived(&outcome), [4, 4]);
    let expected = "dropped: 32 of 32 cells, early packet discard towards m2:eth0";
    assert!(outcome.fates.iter().all(|(_, comment)| comment == expected));
}

#[test]
fn a_smaller_queue_is_full_sooner() {
    let Result { lost, outcome } = contend(32, "tail", None);
    assert_eq!(lost, [vec![], vec![("queue full", 224)]]);
    assert_eq!(arrived(&outcome), [8, 1]);
}
