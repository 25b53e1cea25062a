// SPDX-License-Identifier: Apache-2.0
//! How much of its time a hub carries frames when every station always has one to send.

use serde_json::{Value, json};
use sundial_core::{Frame, Output, Segment, SegmentParameters, Span, Time};
use sundial_segments::hub::{Hub, HubParameters};
use sundial_segments::{GAP_BITS, wire_bits};

const RATE_BPS: u64 = 10_000_000;
const STATIONS: [usize; 7] = [2, 3, 5, 10, 15, 20, 24];
/// With the frame check sequence, as the literature counts.
const FRAME_BYTES: [usize; 6] = [64, 128, 256, 512, 1024, 1518];
const FCS_BYTES: usize = 4;
const SEEDS: u64 = 5;

/// Each number of stations with each length of frame for `span` of the model's time, once a seed.
pub fn all(span: Span) -> Value {
    let cells = STATIONS.iter().flat_map(|&stations| {
        FRAME_BYTES.iter().map(move |&frame_bytes| {
            let runs: Vec<Value> =
                (1..=SEEDS).map(|seed| run(stations, frame_bytes, seed, span)).collect();
            json!({ "stations": stations, "frame_bytes": frame_bytes, "runs": runs })
        })
    });
    let cells: Vec<Value> = cells.collect();
    json!({ "rate_bps": RATE_BPS, "span_ns": span.as_ns_floor(), "cells": cells })
}

/// A frame, its preamble and its gap count as carried; collisions, idle slots and longer gaps are the rest.
fn run(stations: usize, frame_bytes: usize, seed: u64, span: Span) -> Value {
    let common = SegmentParameters { seed, ..SegmentParameters::of_machines(stations, 64) };
    // 5 m of cable a station and the repeater's 8 bits.
    let parameters = HubParameters {
        rate_bps: RATE_BPS,
        cable_delay: vec![Span::from_ns(25); stations],
        repeater_delay: Span::from_ns(800),
    };
    let mut hub = Hub::new(&common, parameters);
    let frame = Frame::from(vec![0; frame_bytes - FCS_BYTES]);
    // Two each, so that the next is there when one has ended.
    for port in (0..stations).chain(0..stations) {
        hub.handle_frame(Time::ZERO, port, frame.clone());
    }
    let end = Time::ZERO + span;
    while let Some(now) = hub.poll_timeout().filter(|&now| now <= end) {
        hub.handle_timeout(now);
        let mut finished = Vec::new();
        while let Some(output) = hub.poll_output() {
            if let Output::TxDone { port, .. } = output {
                finished.push(port);
            }
        }
        for port in finished {
            hub.handle_frame(now, port, frame.clone());
        }
    }
    let counters = hub.counters();
    let sum =
        |of: fn(&sundial_core::PortCounters) -> u64| counters.ports.iter().map(of).sum::<u64>();
    let frames = sum(|port| port.tx_frames);
    let carried = Span::of_bits(frames * (wire_bits(frame.len()) + GAP_BITS), RATE_BPS);
    json!({
        "utilisation": carried.as_ps() as f64 / span.as_ps() as f64,
        "frames": frames,
        "collisions": sum(|port| port.collisions),
        "given_up": sum(|port| port.excessive_collisions),
    })
}
