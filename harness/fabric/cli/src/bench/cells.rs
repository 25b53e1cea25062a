// SPDX-License-Identifier: Apache-2.0
//! How many cells a second the model of ATM decides on, alone: without captures, as a library.

use std::time::Instant;

use serde_json::{Map, Value, json};
use sundial_core::{Frame, SegmentParameters, Span, Time};
use sundial_segments::atm::plain_fields;
use sundial_segments::kinds;

/// Cells of a frame of 1514 bytes, bridged.
const CELLS: u64 = 32;

/// One input that sends all the time, and four that do so to one output.
pub fn all(frames: u64) -> Vec<Value> {
    [1, 4].map(|inputs| measure(inputs, frames)).into()
}

/// The time of `cells` cells on the lines of these segments, rounded up.
pub fn line_time(cells: u64) -> Span {
    Span::of_bits(cells * 424, 149_760_000)
}

/// The fields of a segment of `ports` ports of OC-3c that bridges.
pub fn fields(ports: usize, capture_cells: bool) -> Value {
    let mut fields = plain_fields(ports);
    fields["propagation_ns"] = vec![25; ports].into();
    fields["cell_latency_ns"] = 10_000.into();
    fields["capture"] = json!({ "cells": capture_cells, "cells_most": u64::MAX });
    fields
}

fn object(fields: Value) -> Map<String, Value> {
    match fields {
        Value::Object(fields) => fields,
        _ => unreachable!("made as an object"),
    }
}

/// All of `inputs` ports send as fast as their lines take it, to one more.
fn measure(inputs: usize, frames: u64) -> Value {
    let kinds = kinds();
    let kind = kinds.find("atm").expect("it ships with Sundial");
    let fields = object(fields(inputs + 1, false));
    let builder = kind.check(fields, inputs + 1).expect("the fields are right");
    let mut model = builder.build(&SegmentParameters::of_machines(inputs + 1, 64));
    let sources: Vec<Frame> = (0..inputs).map(|port| frame(port, inputs)).collect();
    let started = Instant::now();
    let mut now = Time::ZERO;
    for number in 0..frames {
        let port = (number % inputs as u64) as usize;
        if port == 0 {
            now += line_time(CELLS);
        }
        // The inputs are not in step.
        let at = now + Span::from_ns(700 * port as u64);
        while let Some(at) = model.poll_timeout().filter(|&asked| asked <= at) {
            model.handle_timeout(at);
        }
        model.handle_frame(at, port, sources[port].clone());
        while model.poll_output().is_some() {}
    }
    now += Span::from_ns(1_000_000_000);
    model.handle_timeout(now);
    while model.poll_output().is_some() {}
    let seconds = started.elapsed().as_secs_f64();
    let counters = model.counters();
    let cells: u64 = counters.channels.values().map(|channel| channel.cells_in).sum();
    json!({
        "inputs": inputs,
        "cells": cells,
        "cells_per_second": (cells as f64 / seconds).round(),
        "delivered": counters.ports[inputs].rx_frames,
        "seconds": seconds,
    })
}

fn frame(from: usize, to: usize) -> Frame {
    let mut bytes = vec![0; 1514];
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, to as u8, 2, 0, 0, 0, 0, from as u8, 8, 0]);
    bytes.into()
}
