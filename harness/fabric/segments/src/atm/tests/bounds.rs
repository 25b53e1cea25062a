// SPDX-License-Identifier: Apache-2.0
//! What the segment promises: lookahead, earliest deliveries and ends.

use serde_json::json;
use sundial_core::{Segment, Span, Time};

use super::super::units::{LAST, LAST_DEPARTURE};
use super::{atm, fields, finish, frame, frame_of_cells, oc3c};

#[test]
fn the_lookahead_is_the_way_of_the_shortest_frame() {
    // A padded frame has two cells and takes three cell times, without latencies 8.49, 12.96 and
    // 50.625 us.
    let lookahead = |rate_bps: u64, cell_octets: u32| {
        let mut fields = fields(2);
        fields["lines"] = json!([{ "rate_bps": rate_bps, "cell_octets": cell_octets },
            { "rate_bps": rate_bps, "cell_octets": cell_octets }]);
        atm(fields).lookahead(0, 1)
    };
    assert_eq!(lookahead(149_760_000, 53), oc3c(3));
    assert_eq!(lookahead(100_000_000, 54), Span::from_ns(12_960));
    assert_eq!(lookahead(25_600_000, 54), Span::from_ns(50_625));
    let mut routed = fields(2);
    routed["encapsulation"] = "routed".into();
    routed["addresses"] = json!([["10.0.0.1"], ["10.0.0.2"]]);
    assert_eq!(atm(routed).lookahead(0, 1), oc3c(2));
    assert_eq!(atm(fields(2)).lookahead(1, 1), Span::MAX);
}

#[test]
fn the_slower_line_and_all_latencies_are_in_the_lookahead() {
    let mut fields = fields(2);
    fields["lines"][1] = json!({ "rate_bps": 100_000_000, "cell_octets": 54 });
    fields["tx_latency_ns"] = json!([1, 0]);
    fields["propagation_ns"] = json!([20, 300]);
    fields["cell_latency_ns"] = 4_000.into();
    fields["rx_latency_ns"] = json!([0, 50_000]);
    // One cell of OC-3c until the first is there, then two of TAXI.
    let latencies = Span::from_ns(1 + 20 + 300 + 4_000 + 50_000 + 2 * 4_320);
    assert_eq!(atm(fields).lookahead(0, 1), latencies + oc3c(1));
}

#[test]
fn a_delivery_is_announced_before_the_last_cell_is_at_the_switch() {
    let mut fields = fields(2);
    fields["cell_latency_ns"] = 10_000.into();
    let mut atm = atm(fields);
    atm.handle_frame(Time::ZERO, 0, frame_of_cells(0, 1, 32));
    // The last cell joins 32 cell times and 10 us after the start, and nothing handed in can join within a cell
    // time and 10 us: 31 cell times, and the next instant.
    let certain = (31 * 331_250_000_u64 + 1).div_ceil(117);
    assert_eq!(atm.poll_timeout(), Some(Time::from_ps(certain)));
    let due = Time::from_ns(10_000) + oc3c(33);
    assert_eq!(atm.earliest_delivery(1), Some(due));
    assert_eq!(atm.earliest_delivery(0), None);
    assert_eq!(finish(&mut atm).arrivals(), [(due, 1)]);
    assert_eq!(atm.earliest_delivery(1), None);
}

#[test]
fn cells_of_two_channels_take_turns() {
    let mut fields = fields(3);
    fields["interleave"] = "cells".into();
    let mut atm = atm(fields);
    atm.handle_frame(Time::ZERO, 0, frame_of_cells(0, 1, 4));
    atm.handle_frame(Time::ZERO, 0, frame_of_cells(0, 2, 2));
    // 1 2 1 2 1 1: the short one has left after four cells, the long one after six.
    assert_eq!(atm.earliest_tx_done(0), Some(Time::ZERO + oc3c(2)));
    let outcome = finish(&mut atm);
    assert_eq!(outcome.finished, [(Time::ZERO + oc3c(4), 0), (Time::ZERO + oc3c(6), 0)]);
    assert_eq!(outcome.arrivals(), [(Time::ZERO + oc3c(5), 2), (Time::ZERO + oc3c(7), 1)]);
}

#[test]
fn an_adapter_spaces_the_cells_of_a_channel() {
    let mut fields = fields(2);
    // Half of OC-3c's cell rate: every second cell time.
    fields["shaping_bps"] = json!([74_880_000, null]);
    let mut atm = atm(fields);
    atm.handle_frame(Time::ZERO, 0, frame_of_cells(0, 1, 3));
    atm.handle_frame(Time::ZERO, 0, frame_of_cells(0, 1, 2));
    let outcome = finish(&mut atm);
    // First bits after 0, 2, 4 and 6, 8 cell times.
    assert_eq!(outcome.arrivals(), [(Time::ZERO + oc3c(6), 1), (Time::ZERO + oc3c(10), 1)]);
    assert_eq!(outcome.finished, [(Time::ZERO + oc3c(5), 0), (Time::ZERO + oc3c(9), 0)]);
}

#[test]
fn an_arp_request_is_answered_no_sooner_than_a_frame_could_return() {
    let mut fields = fields(2);
    fields["encapsulation"] = "routed".into();
    fields["addresses"] = json!([["10.0.0.1"], ["10.0.0.2"]]);
    let mut atm = atm(fields);
    let mut request = frame(0, 255, 14).to_vec();
    request[12..].copy_from_slice(&[8, 6]);
    request.extend([0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 0, 10, 0, 0, 1]);
    request.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
    atm.handle_frame(Time::ZERO, 0, request.into());
    let outcome = finish(&mut atm);
    assert_eq!(outcome.arrivals(), [(Time::ZERO + oc3c(2) + oc3c(2), 0)]);
    assert_eq!(outcome.finished, [(Time::ZERO + oc3c(1), 0)]);
    assert_eq!(outcome.deliveries[0].2[22..32], [2, 0, 0, 0, 0, 1, 10, 0, 0, 2]);
}

/// The slowest line and the longest cell that a configuration may have, 48 octets a cell.
fn slowest() -> serde_json::Value {
    json!({ "rate_bps": 64_000, "cell_octets": 128 })
}

#[test]
fn what_the_last_hour_leaves_under_way_ends_within_the_clock() {
    let cell_ns: u64 = 128 * 8 * 1_000_000_000 / 64_000;
    // A full queue in front of the longest PDU, which its adapter has taken in turns with those of 16 stations.
    let queue_ns = (1 << 20) * cell_ns;
    let pdu_ns = 2 * 1366 * 17 * cell_ns;
    let latencies_ns = 6 * 10_000_000_000;
    let last = LAST_DEPARTURE + Span::from_ns(queue_ns + pdu_ns + latencies_ns);
    assert!(last.as_ps().checked_mul(117).is_some(), "{last}");
}

#[test]
fn at_the_last_hour_frames_still_arrive() {
    let mut fields = fields(2);
    fields["lines"] = json!([slowest(), slowest()]);
    let mut atm = atm(fields);
    atm.handle_frame(LAST, 0, frame_of_cells(0, 1, 3));
    let due = LAST + Span::from_ns(4 * 16_000_000);
    assert_eq!(finish(&mut atm).arrivals(), [(due, 1)]);
    let last = atm.last_instant().expect("its clock ends");
    assert_eq!(last, (Time::from_ns(38 * 3_600_000_000_000), "its clock counts 38 h"));
}

#[test]
fn an_adapter_that_is_busy_for_longer_than_the_clock_ends_the_model() {
    let mut fields = fields(2);
    fields["lines"] = json!([slowest(), slowest()]);
    let mut atm = atm(fields);
    // A PDU of 1366 cells takes 21.856 s: 6341 of them end before 38.5 h, the next one after that.
    for _ in 0..6_341 {
        atm.handle_frame(Time::from_ns(5), 0, frame(0, 1, 65_525));
    }
    assert_eq!(atm.last_instant().map(|(last, _)| last), Some(LAST));
    atm.handle_frame(Time::from_ns(5), 0, frame(0, 1, 65_525));
    let why = "frames wait in an adapter for longer than its clock of 38 h counts";
    assert_eq!(atm.last_instant(), Some((Time::from_ns(5), why)));
}
