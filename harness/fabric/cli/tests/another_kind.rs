// SPDX-License-Identifier: Apache-2.0
//! A program with a kind of segment that Sundial does not ship: everything there is to it is in this file.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use sundial_core::{
    Board, Frame, Invalid, Kind, Kinds, LinkType, Output, Ring, Segment, SegmentCounters,
    SegmentKind, SegmentParameters, Span, Time,
};
use sundial_fabric::run_command;

/// A pneumatic tube: what is put in at one end arrives at the other after a fixed time.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tube {
    delay_ns: u64,
}

impl SegmentKind for Tube {
    const NAME: &'static str = "tube";
    type Parameters = Span;

    fn check(self, ports: usize) -> Result<Span, Invalid> {
        match ports {
            2 => Ok(Span::from_ns(self.delay_ns)),
            _ => Err(Invalid::new("ports", format!("a tube has 2 ends, not {ports}"))),
        }
    }

    fn build(common: &SegmentParameters, delay: &Span) -> Box<dyn Segment> {
        let rings = [0, 1].map(|port| common.ring(port));
        Box::new(TubeModel { delay: *delay, rings, board: Board::new(common) })
    }
}

struct TubeModel {
    delay: Span,
    rings: [Ring; 2],
    board: Board,
}

/// LINKTYPE_USER0.
const TUBE_LINK_TYPE: u16 = 147;

impl Segment for TubeModel {
    fn handle_frame(&mut self, now: Time, port: usize, frame: Frame) {
        if !self.board.admit(now, port, &frame, None, &mut self.rings[port]) {
            return;
        }
        self.rings[port].leave(now);
        self.board.sent(now, now, port, &frame);
        *self.board.port(port).own.entry("capsules").or_default() += 1;
        self.board.deliver(now + self.delay, 1 - port, frame);
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.board.poll_output()
    }

    fn lookahead(&self, from: usize, to: usize) -> Span {
        if from == to { Span::MAX } else { self.delay }
    }

    fn earliest_delivery(&self, _port: usize) -> Option<Time> {
        None
    }

    fn earliest_tx_done(&self, _port: usize) -> Option<Time> {
        None
    }

    fn counters(&self) -> SegmentCounters {
        self.board.counters()
    }

    fn rate_bps(&self, _port: usize) -> u64 {
        0
    }

    fn link_type(&self) -> LinkType {
        LinkType(TUBE_LINK_TYPE)
    }

    fn record_lag(&self) -> Span {
        Span::ZERO
    }
}

fn kinds() -> Kinds {
    sundial_segments::kinds().with(Kind::of::<Tube>())
}

/// Writes a configuration of a tube with these fields of its own between a and b; its file.
fn write_config(directory: &Path, own: Value) -> String {
    let port = |name: &str| {
        json!({ "machine": name, "nic": 0, "interface": "eth0", "mac": "02:53:44:00:00:01",
                "local": directory.join(format!("{name}.f")),
                "remote": directory.join(format!("{name}.q")) })
    };
    let mut segment = json!({
        "name": "mail", "kind": "tube", "max_frame_bytes": 1514, "ports": [port("a"), port("b")],
    });
    let fields = segment.as_object_mut().expect("made as an object");
    fields.extend(own.as_object().expect("made as an object").clone());
    let config = json!({
        "version": 1, "clock": "real", "seed": 1, "capture_dir": directory, "done_machines": ["b"],
        "machines": [{ "name": "a", "nics": 1 }, { "name": "b", "nics": 1 }], "segments": [segment],
    });
    let file = directory.join("fabric.json");
    std::fs::write(&file, config.to_string()).expect("room");
    file.to_str().expect("a temporary name").to_owned()
}

#[test]
fn its_configuration_is_checked_where_the_kind_is_registered() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = write_config(directory.path(), json!({ "delay_ns": 5 }));
    let check = ["sundial-fabric", "check", &file];
    assert_eq!(run_command(&kinds(), check), 0);
    assert_eq!(run_command(&sundial_segments::kinds(), check), 2);
    for own in [json!({}), json!({ "delay_ns": 5, "rate_bps": 1 }), json!({ "delay_ns": "5" })] {
        write_config(directory.path(), own);
        assert_eq!(run_command(&kinds(), check), 2);
    }
}

/// The machine called `name`, once the fabric listens for it.
fn machine(directory: &Path, name: &str) -> UnixDatagram {
    let socket = UnixDatagram::bind(directory.join(format!("{name}.q"))).expect("free");
    while socket.connect(directory.join(format!("{name}.f"))).is_err() {
        std::thread::sleep(Duration::from_millis(1));
    }
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    socket
}

#[test]
fn frames_travel_and_are_captured_with_its_link_type() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = write_config(directory.path(), json!({ "delay_ns": 1_000_000 }));
    let fabric = std::thread::spawn(move || {
        run_command(&kinds(), ["sundial-fabric", "run", "--orphan", &file])
    });
    let (a, b) = (machine(directory.path(), "a"), machine(directory.path(), "b"));
    a.send(&[7; 100]).expect("taken");
    let mut buffer = [0; 200];
    assert_eq!(b.recv(&mut buffer).expect("it arrives"), 100);
    b.send(&[&[0xff; 12][..], &[0x88, 0xb5], b"sundial-done\0"].concat()).expect("taken");
    assert_eq!(fabric.join().expect("no panic"), 0);
    let read = |name| std::fs::read(directory.path().join(name)).expect("written");
    let counters: Value = serde_json::from_slice(&read("counters.json")).expect("JSON");
    assert_eq!(counters["segments"]["mail"]["kind"], "tube");
    assert_eq!(counters["segments"]["mail"]["ports"]["a:eth0"]["capsules"], 1);
    // The first interface follows the section header, whose length is its second word.
    let capture = read("mail.pcapng");
    let interface = u32::from_le_bytes(capture[4..8].try_into().expect("four bytes")) as usize;
    assert_eq!(capture[interface..interface + 4], [1, 0, 0, 0]);
    assert_eq!(capture[interface + 8..interface + 10], TUBE_LINK_TYPE.to_le_bytes());
}
