// SPDX-License-Identifier: Apache-2.0
use sundial_core::{Direction, Fate, Frame, Way};
use sundial_segments::kinds;

use super::*;
use crate::Config;

pub(super) fn segment() -> SegmentConfig {
    let text = r#"{
      "version": 1, "clock": "virtual", "seed": 1, "capture_dir": "unused", "shm": "unused",
      "machines": [{"name": "a", "nics": 1}, {"name": "b", "nics": 1}],
      "segments": [{"name": "lan", "kind": "hub", "rate_bps": 10000000, "max_frame_bytes": 1514,
        "cable_delay_ns": [25, 25], "repeater_delay_ns": 800,
        "ports": [{"machine": "a", "nic": 0, "interface": "eth0", "mac": "02:53:44:00:00:01"},
                  {"machine": "b", "nic": 0, "interface": "eth0", "mac": "02:53:44:00:00:02"}]}]}"#;
    Config::parse(Path::new("test"), text.as_bytes(), &kinds()).expect("right").segments.remove(0)
}

fn create(directory: &Path) -> Captures {
    let segment = segment();
    Captures::create(directory, &segment, &*segment.build(1), EPOCH_NS).expect("room")
}

fn inbound(at: Time, byte: u8) -> Output {
    let (interface, direction, fate) = (0, Direction::Inbound, None);
    Output::Record { at, interface, direction, frame: Frame::new(&[byte; 14]), fate }
}

/// Interface, ns since the zero of the run, first byte, comment's presence, of each packet block.
pub(super) fn packets(file: &[u8]) -> Vec<(u32, u64, u8, bool)> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
    let (mut at, mut packets) = (0, Vec::new());
    while at < file.len() {
        let length = word(at + 4) as usize;
        if word(at) == 6 {
            let stamp = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
            let captured = word(at + 20) as usize;
            let bare = 32 + captured.next_multiple_of(4);
            // epb_flags and the end of options take 12 bytes.
            packets.push((word(at + 8), stamp - EPOCH_NS, file[at + 28], length > bare + 12));
        }
        at += length;
    }
    packets
}

#[test]
fn records_are_written_in_order_of_time_then_of_emission() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut capture = create(directory.path());
    let mut record = |ns, interface, byte: u8| {
        let way = || Way { from: "a".into(), to: "b".into() };
        let fate = (interface == 2).then(|| Box::new(Fate::Lost(way())));
        let direction = if interface == 2 { Direction::Unknown } else { Direction::Inbound };
        let at = Time::from_ns(ns);
        let frame = Frame::new(&[byte; 14]);
        capture.record(Output::Record { at, interface, direction, frame, fate });
    };
    record(300_000, 0, 1);
    record(100_000, 1, 2);
    record(300_000, 1, 3);
    record(200_000, 0, 4);
    record(100_000, 2, 5);
    record(100_000, 1, 6);
    capture.advance(Time::from_ns(250_000)).expect("room");
    // The lag of a hub at 10 Mb/s, 102.4 us, is not over yet.
    capture.record(inbound(Time::from_ns(150_000), 7));
    capture.record(inbound(Time::from_ns(400_000), 8));
    capture.finish(Time::from_ns(400_000)).expect("room");
    let file = std::fs::read(directory.path().join("lan.pcapng")).expect("written");
    assert_eq!(
        packets(&file),
        [
            (1, 100_000, 2, false),
            (2, 100_000, 5, true),
            (1, 100_000, 6, false),
            (0, 150_000, 7, false),
            (0, 200_000, 4, false),
            (0, 300_000, 1, false),
            (1, 300_000, 3, false),
        ]
    );
}

#[test]
fn stamps_are_rounded_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut capture = create(directory.path());
    let at = Time::from_ps(1_000_001);
    capture.record(inbound(at, 1));
    capture.finish(Time::MAX).expect("room");
    let file = std::fs::read(directory.path().join("lan.pcapng")).expect("written");
    assert_eq!(packets(&file), [(0, 1_001, 1, false)]);
}

#[test]
fn a_full_disk_is_named() {
    // Each write to this device fails as on a full disk.
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("lan.pcapng");
    std::os::unix::fs::symlink("/dev/full", &path).expect("a link");
    let capture = create(directory.path());
    let error = capture.finish(Time::MAX).expect_err("nothing fits");
    let text = error.to_string();
    assert_eq!(text, format!("cannot write {}", path.display()));
    assert_eq!(error.source.kind(), std::io::ErrorKind::StorageFull);
}
