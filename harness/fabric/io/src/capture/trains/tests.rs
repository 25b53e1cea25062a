// SPDX-License-Identifier: Apache-2.0
use sundial_core::{Direction, LinkType, Output, SegmentCounters, Span, Way};

use super::*;
use crate::capture::EPOCH_NS;
use crate::capture::tests::{packets, segment};

/// Records of four bytes: the name, the index, and the last two of the stamp's.
#[derive(Debug)]
struct Letters {
    name: u8,
    at_ns: Vec<u64>,
    fate: Option<Fate>,
}

impl Train for Letters {
    fn after(&self, index: usize) -> Option<Time> {
        self.at_ns.get(index + 1).map(|&ns| Time::from_ns(ns))
    }

    fn put(&self, index: usize, stamp_ns: u64, out: &mut Vec<u8>) {
        out.extend([self.name, index as u8]);
        out.extend(&stamp_ns.to_be_bytes()[6..]);
    }

    fn fate(&self, _index: usize) -> Option<&Fate> {
        self.fate.as_ref()
    }
}

/// A model that has a further capture and does nothing.
struct Idle;

impl Segment for Idle {
    fn handle_frame(&mut self, _now: Time, _port: usize, _frame: sundial_core::Frame) {}
    fn handle_timeout(&mut self, _now: Time) {}
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
    fn poll_output(&mut self) -> Option<Output> {
        None
    }
    fn lookahead(&self, _from: usize, _to: usize) -> Span {
        Span::MAX
    }
    fn earliest_delivery(&self, _port: usize) -> Option<Time> {
        None
    }
    fn earliest_tx_done(&self, _port: usize) -> Option<Time> {
        None
    }
    fn counters(&self) -> SegmentCounters {
        SegmentCounters::default()
    }
    fn rate_bps(&self, _port: usize) -> u64 {
        0
    }
}

fn create(directory: &Path, records_most: Option<u64>) -> TrainCapture {
    let further = FurtherCapture {
        path: "atm/elan.cells".into(),
        link_type: LinkType::ERF,
        record_lag: Span::from_ns(100),
        records_most,
    };
    TrainCapture::create(directory, &further, &segment(), &Idle, EPOCH_NS).expect("room")
}

fn add(capture: &mut TrainCapture, name: u8, at_ns: &[u64]) {
    let train = Letters { name, at_ns: at_ns.to_vec(), fate: None };
    capture.add(Time::from_ns(at_ns[0]), 0, Direction::Inbound, Arc::new(train));
}

fn read(directory: &Path) -> Vec<u8> {
    std::fs::read(directory.join("atm/elan.cells.pcapng")).expect("written")
}

/// Time and first byte of each record.
fn letters(directory: &Path) -> Vec<(u64, u8)> {
    packets(&read(directory)).into_iter().map(|(_, ns, letter, _)| (ns, letter)).collect()
}

#[test]
fn trains_are_merged_by_time_then_emission_then_index() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut capture = create(directory.path(), None);
    add(&mut capture, b'a', &[100, 200, 300]);
    add(&mut capture, b'b', &[100, 100, 250]);
    add(&mut capture, b'c', &[50]);
    add(&mut capture, b'd', &[200, 400]);
    capture.finish(Time::from_ns(400)).expect("room");
    let expected = [
        (50, b'c'),
        (100, b'a'),
        (100, b'b'),
        (100, b'b'),
        (200, b'a'),
        (200, b'd'),
        (250, b'b'),
        (300, b'a'),
    ];
    assert_eq!(letters(directory.path()), expected);
}

#[test]
fn a_train_may_begin_as_long_ago_as_the_lag_says() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut capture = create(directory.path(), None);
    add(&mut capture, b'a', &[100, 250]);
    capture.advance(Time::from_ns(300)).expect("room");
    add(&mut capture, b'b', &[200]);
    capture.finish(Time::MAX).expect("room");
    assert_eq!(letters(directory.path()), [(100, b'a'), (200, b'b'), (250, b'a')]);
}

#[test]
fn a_run_that_is_cut_short_leaves_whole_records() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut capture = create(directory.path(), None);
    add(&mut capture, b'a', &[100, 200, 300]);
    capture.advance(Time::from_ns(350)).expect("room");
    capture.flush().expect("room");
    drop(capture);
    assert_eq!(letters(directory.path()), [(100, b'a'), (200, b'a')]);
}

#[test]
fn bytes_are_made_for_the_stamp_they_are_written_with() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut capture = create(directory.path(), None);
    add(&mut capture, b'a', &[0x1234, 0x5678]);
    capture.finish(Time::MAX).expect("room");
    let stamps = [0x1234_u64, 0x5678].map(|ns| (EPOCH_NS + ns).to_be_bytes());
    let file = read(directory.path());
    for (index, stamp) in stamps.iter().enumerate() {
        let record = [b'a', index as u8, stamp[6], stamp[7]];
        assert!(file.windows(4).any(|bytes| bytes == record), "{record:?}");
    }
}

#[test]
fn a_capture_that_is_full_says_so_in_its_last_record() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut capture = create(directory.path(), Some(3));
    add(&mut capture, b'a', &[100, 200, 300]);
    add(&mut capture, b'b', &[150]);
    capture.finish(Time::MAX).expect("room");
    assert!(!capture.is_behind());
    add(&mut capture, b'c', &[500]);
    assert!(!capture.is_behind());
    let file = read(directory.path());
    let commented: Vec<_> = packets(&file).into_iter().map(|(_, ns, _, it)| (ns, it)).collect();
    assert_eq!(commented, [(100, false), (150, false), (200, true)]);
    // opt_comment, 28 bytes, which need no padding.
    let option = b"\x01\0\x1c\0capture ends: records_most 3";
    assert!(file.windows(option.len()).any(|bytes| bytes == option));
}

#[test]
fn the_last_record_keeps_its_own_comment() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut capture = create(directory.path(), Some(1));
    let fate = Fate::Lost(Way { from: "a".into(), to: "b".into() });
    let train = Letters { name: b'a', at_ns: vec![1, 2], fate: Some(fate) };
    capture.add(Time::from_ns(1), 2, Direction::Unknown, Arc::new(train));
    capture.finish(Time::MAX).expect("room");
    let comment = b"capture ends: records_most 1; lost: a to b | {";
    assert!(read(directory.path()).windows(comment.len()).any(|bytes| bytes == comment));
}
