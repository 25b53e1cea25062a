// SPDX-License-Identifier: Apache-2.0
//! The whole segment. Times worked out by hand on OC-3c: a cell is 331,250,000 / 117 ps.

mod against_reference;
mod bounds;
mod captures;
mod discard;
mod faults;
mod lane;
mod lane_order;
mod netem;
mod reference;
mod refused;

use serde_json::{Value, json};
use std::sync::Arc;
use sundial_core::{
    Direction, Frame, Output, Segment, SegmentKind, SegmentParameters, Span, Time, Train,
};

use super::{Atm, Config, plain_fields};

/// Picoseconds of `cells` cells of OC-3c, rounded up.
fn oc3c(cells: u64) -> Span {
    Span::from_ps((cells * 331_250_000).div_ceil(117))
}

/// The plainest segment of `ports` ports, all of OC-3c, with the capture of cells.
fn fields(ports: usize) -> Value {
    let mut fields = plain_fields(ports);
    fields["capture"]["cells"] = true.into();
    fields
}

fn atm(fields: Value) -> Atm {
    let ports = fields["lines"].as_array().expect("a list").len();
    let common = SegmentParameters {
        max_frame_bytes: 65_525,
        ..SegmentParameters::of_machines(ports, 100_000)
    };
    let config: Config = serde_json::from_value(fields).expect("the fields are right");
    Atm::new(&common, config.check(ports).expect("the fields are right"))
}

fn frame(source: u8, destination: u8, bytes: usize) -> Frame {
    let mut frame = vec![2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source, 8, 0];
    frame.resize(bytes, 0);
    frame.into()
}

/// A bridged frame whose PDU has `cells` cells: 10 octets in front and 8 behind.
fn frame_of_cells(source: u8, destination: u8, cells: usize) -> Frame {
    frame(source, destination, cells * 48 - 18)
}

/// A train of a further capture.
struct Recorded {
    capture: usize,
    interface: usize,
    direction: Direction,
    /// Of the first record.
    at: Time,
    train: Arc<dyn Train>,
}

impl Recorded {
    /// Stamp and octets of each record, stamped in the octets as `stamp_ns`.
    fn records(&self, stamp_ns: u64) -> impl Iterator<Item = (Time, Vec<u8>)> {
        let rest = (0..).map_while(|index| self.train.after(index));
        std::iter::once(self.at).chain(rest).enumerate().map(move |(index, at)| {
            let mut octets = Vec::new();
            self.train.put(index, stamp_ns, &mut octets);
            (at, octets)
        })
    }
}

/// What comes out of a segment.
#[derive(Default)]
struct Outcome {
    /// Due, port, frame.
    deliveries: Vec<(Time, usize, Frame)>,
    /// Stamp and words of frames that did not arrive.
    fates: Vec<(Time, String)>,
    trains: Vec<Recorded>,
    finished: Vec<(Time, usize)>,
}

impl Outcome {
    /// Takes what `segment` has decided.
    fn take(&mut self, segment: &mut dyn Segment) {
        let ports = segment.counters().ports.len();
        while let Some(output) = segment.poll_output() {
            match output {
                Output::Deliver { due, port, frame } => self.deliveries.push((due, port, frame)),
                Output::Record { at, interface, fate, .. } if interface == ports => {
                    self.fates.push((at, fate.expect("it has one").words()));
                }
                Output::Record { .. } => {}
                Output::Note { .. } => unreachable!("it has no timeline"),
                Output::Train { capture, at, interface, direction, train } => {
                    self.trains.push(Recorded { capture, interface, direction, at, train });
                }
                Output::TxDone { due, port } => self.finished.push((due, port)),
            }
        }
    }

    /// When and where frames arrive.
    fn arrivals(&self) -> Vec<(Time, usize)> {
        self.deliveries.iter().map(|(due, port, _)| (*due, *port)).collect()
    }
}

/// Runs `segment` until nothing is left inside.
fn finish(segment: &mut dyn Segment) -> Outcome {
    let mut outcome = Outcome::default();
    loop {
        outcome.take(segment);
        match segment.poll_timeout() {
            Some(at) => segment.handle_timeout(at),
            None => return outcome,
        }
    }
}

#[test]
fn a_lone_pdu_takes_one_cell_time_more_than_its_cells() {
    for cells in 2..=1366 {
        let mut fields = fields(2);
        fields["cell_latency_ns"] = 10_000.into();
        fields["propagation_ns"] = json!([500, 700]);
        fields["tx_latency_ns"] = json!([20, 30]);
        fields["rx_latency_ns"] = json!([40, 50]);
        let mut atm = atm(fields);
        // The longest SDU has 65535 octets, 25 less than would fill its cells.
        let bytes = (cells * 48 - 18).min(65_525);
        atm.handle_frame(Time::from_ns(1_000), 0, frame(0, 1, bytes));
        let latencies = Span::from_ns(1_000 + 20 + 500 + 10_000 + 700 + 50);
        let outcome = finish(&mut atm);
        let due = Time::ZERO + latencies + oc3c(cells as u64 + 1);
        assert_eq!(outcome.arrivals(), [(due, 1)], "{cells} cells");
        assert_eq!(outcome.finished, [(Time::from_ns(1_020) + oc3c(cells as u64), 0)]);
    }
}

#[test]
fn cells_back_to_back_do_not_drift() {
    // 117,000 cells of OC-3c take 331.25 ms; the switch adds one.
    let mut atm = atm(fields(2));
    for _ in 0..3656 {
        atm.handle_frame(Time::ZERO, 0, frame_of_cells(0, 1, 32));
    }
    atm.handle_frame(Time::ZERO, 0, frame_of_cells(0, 1, 8));
    let outcome = finish(&mut atm);
    let last_sent = outcome.finished.last().expect("there are frames");
    assert_eq!(*last_sent, (Time::from_ns(331_250_000), 0));
    let last = outcome.deliveries.last().expect("there are frames");
    assert_eq!(last.0, Time::ZERO + oc3c(117_001));
}
