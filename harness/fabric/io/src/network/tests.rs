// SPDX-License-Identifier: Apache-2.0
use std::path::Path;

use sundial_core::{Frame, Span};
use sundial_segments::atm::plain_fields;
use sundial_segments::kinds;

use super::*;
use crate::EPOCH_NS;

/// A hub, a switch and a link full of impairments, each between machines of its own.
fn config(directory: &Path, seed: u64) -> Config {
    let text = config_text(directory, seed);
    Config::parse(Path::new("test"), text.to_string().as_bytes(), &kinds()).expect("right")
}

fn config_text(directory: &Path, seed: u64) -> Value {
    let port = |machine: &str| {
        let mac = "02:00:00:00:00:01";
        json!({ "machine": machine, "nic": 0, "interface": "eth0", "mac": mac })
    };
    let machines =
        ["a", "b", "c", "d", "e", "f"].map(|machine| json!({ "name": machine, "nics": 1 }));
    let segment = |name: &str, kind: &str, names: [&str; 2], own: Value| {
        let mut segment = json!({
            "name": name, "kind": kind, "rate_bps": 10_000_000, "max_frame_bytes": 1514,
        });
        segment["ports"] = names.map(port).into();
        let fields = segment.as_object_mut().expect("made as an object");
        fields.extend(own.as_object().expect("made as an object").clone());
        segment
    };
    let hub = json!({ "cable_delay_ns": [500, 500], "repeater_delay_ns": 800 });
    let switch = json!({
        "forwarding_latency_ns": 2000, "queue_frames": 4, "mac_table_entries": 16, "ageing_ns": 1_000_000,
    });
    let impaired = json!({
        "delay_ns": 2_000_000, "jitter_ns": 1_000_000, "distribution": "normal", "loss": 0.1,
        "duplicate": 0.1, "corrupt": 0.1, "reorder": 0.2,
    });
    let link = json!({ "impairments": { "0": impaired, "1": impaired } });
    json!({
        "version": 1, "clock": "virtual", "seed": seed, "capture_dir": directory, "shm": "unused",
        "machines": machines,
        "segments": [
            segment("lan", "hub", ["a", "b"], hub),
            segment("office", "switch", ["c", "d"], switch),
            segment("wan", "link", ["e", "f"], link),
        ],
    })
}

/// Runs 300 frames through every segment; the contents of all files.
fn run(seed: u64) -> Vec<Vec<u8>> {
    run_watched(seed, |_, _| {})
}

/// The same with an observer that looks after each frame.
fn run_watched(seed: u64, mut watch: impl FnMut(&mut Network, &Path)) -> Vec<Vec<u8>> {
    let directory = tempfile::tempdir().expect("a directory");
    let mut network = Network::open(&config(directory.path(), seed), EPOCH_NS).expect("room");
    let mut now = Time::ZERO;
    for number in 0..300_u64 {
        now += Span::from_ns(number % 7 * 100_000);
        for (machine, address) in (0..6).zip([1_u8, 2].into_iter().cycle()) {
            let (segment, port) = network.plug(machine, 0).expect("plugged in");
            let segment = &mut network.segments[segment];
            while let Some(at) = segment.model.poll_timeout().filter(|&at| at <= now) {
                segment.model.handle_timeout(at);
                while segment.poll_output().is_some() {}
            }
            let mut bytes = vec![2, 0, 0, 0, 0, 3 - address, 2, 0, 0, 0, 0, address, 8, 0];
            bytes.resize(60 + (number as usize * 37) % 1400, number as u8);
            segment.model.handle_frame(now, port, Frame::from(bytes));
            while segment.poll_output().is_some() {}
            segment.advance(now).expect("room");
        }
        watch(&mut network, directory.path());
    }
    network.finish(now + Span::from_ns(1_000_000_000)).expect("room");
    ["lan.pcapng", "office.pcapng", "wan.pcapng", "counters.json"]
        .map(|file| std::fs::read(directory.path().join(file)).expect("written"))
        .into()
}

#[test]
fn the_same_run_writes_the_same_bytes_and_another_seed_others() {
    let first = run(1);
    assert_eq!(first, run(1));
    let other = run(2);
    assert_ne!(first[0], other[0], "backoff");
    assert_eq!(first[1], other[1], "a switch draws nothing");
    assert_ne!(first[2], other[2], "impairments");
}

#[test]
fn an_unplugged_interface_is_nowhere() {
    let directory = tempfile::tempdir().expect("a directory");
    let network = Network::open(&config(directory.path(), 1), EPOCH_NS).expect("room");
    assert_eq!(network.plug(2, 0), Some((1, 0)));
    assert_eq!(network.plug(2, 1), None);
    assert_eq!(network.plug(6, 0), None);
}

#[test]
fn files_can_be_read_while_they_grow_and_end_with_the_same_bytes() {
    let mut lengths = Vec::new();
    let watched = run_watched(7, |network, directory| {
        network.next_flush_ns = 0;
        network.flush_when_due().expect("room");
        let file = std::fs::read(directory.join("lan.pcapng")).expect("written");
        lengths.push(file.len());
        if network.next_flush_ns().is_none() {
            assert!(network.segments.iter().all(|segment| !segment.captures.is_behind()));
        }
    });
    assert!(lengths.is_sorted() && lengths[10] < lengths[290]);
    assert_eq!(watched, run(7));
}

#[test]
fn files_are_not_written_before_it_is_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut network = Network::open(&config(directory.path(), 1), EPOCH_NS).expect("room");
    let behind = network.next_flush_ns();
    assert_eq!(behind, Some(0), "the files have no header yet");
    network.flush_when_due().expect("room");
    assert_eq!(network.next_flush_ns(), None);
    assert!(network.next_flush_ns > 0);
}

#[test]
fn a_run_ends_where_the_clock_of_a_segment_does() {
    let directory = tempfile::tempdir().expect("a directory");
    let without = Network::open(&config(directory.path(), 1), EPOCH_NS).expect("room");
    assert!(without.out_of_time().is_none());
    let mut text = config_text(directory.path(), 1);
    let segment = text["segments"][1].as_object_mut().expect("made as an object");
    segment.retain(|field, _| ["name", "ports", "max_frame_bytes"].contains(&field.as_str()));
    segment.insert("kind".into(), "atm".into());
    segment.extend(plain_fields(2).as_object().expect("made as an object").clone());
    let with = Config::parse(Path::new("test"), text.to_string().as_bytes(), &kinds());
    let with = Network::open(&with.expect("right"), EPOCH_NS).expect("room");
    let last = with.out_of_time().expect("it tells");
    assert_eq!(last.after, Time::from_ns(136_800_000_000_000));
    let words = "segment office ends the run after 136800 s: its clock counts 38 h";
    assert_eq!(last.to_string(), words);
}

/// Machines a and b on the hub; the adapters of a need 20 us.
fn with_latency(directory: &Path) -> Network {
    let mut text = config_text(directory, 1);
    text["machines"][0]["adapter_latency_ns"] = 20_000.into();
    let config = Config::parse(Path::new("test"), text.to_string().as_bytes(), &kinds());
    Network::open(&config.expect("right"), EPOCH_NS).expect("room")
}

fn ns(time: Option<Time>) -> Option<u64> {
    time.map(Time::as_ns_floor)
}

#[test]
fn an_adapter_begins_its_latency_after_the_doorbell() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut network = with_latency(directory.path());
    let frame = |from: u8| {
        let mut bytes = vec![2, 0, 0, 0, 0, 3 - from, 2, 0, 0, 0, 0, from, 8, 0];
        bytes.resize(60, 0);
        Frame::from(bytes)
    };
    network.hand_in(Time::from_ns(1_000), 0, 0, frame(1));
    network.hand_in(Time::from_ns(300_000), 1, 0, frame(2));
    assert_eq!(ns(network.next_event()), Some(21_000));
    assert!(network.handle_next(Time::from_ns(21_000)).is_none());
    let mut due = Vec::new();
    while network.handle_next(Time::from_ns(1_000_000)).is_some() {
        while let Some(notice) = network.poll_notice() {
            due.push((notice.machine, notice.frame.is_some(), notice.due.as_ns_floor()));
        }
    }
    // 57.6 us for the smallest frame at 10 Mbit/s, and 500 + 800 + 500 ns through the hub.
    let sent = [(0, false, 78_600), (1, true, 80_400), (1, false, 357_600), (0, true, 359_400)];
    assert_eq!(due, sent);
}

#[test]
fn a_latency_widens_the_distances_from_its_machine() {
    let directory = tempfile::tempdir().expect("a directory");
    let network = with_latency(directory.path());
    let distances = network.distances().as_ns();
    assert_eq!((distances[0][1], distances[1][0]), (79_400, 59_400));
    // An adapter may answer in place of its machine: then only the frame that it answers was late.
    assert_eq!((distances[0][0], distances[1][1]), (138_800, 118_800));
    assert_eq!(network.least_adapter_latency(), Span::ZERO, "b has none");
}

#[test]
fn what_waits_in_an_adapter_bounds_what_comes_of_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut network = with_latency(directory.path());
    let distances = network.distances();
    network.hand_in(Time::from_ns(1_000), 0, 0, Frame::from(vec![0xff; 60]));
    let mut bounds = network.bounds(&distances);
    assert_eq!(bounds[1], Bounds::default(), "nothing is in the segment yet");
    let begins = network.bound_by_adapters(&distances, &mut bounds);
    assert_eq!(begins.iter().map(|&it| ns(it)).collect::<Vec<_>>()[..2], [Some(21_000), None]);
    assert_eq!((ns(bounds[1].delivery), ns(bounds[1].tx_done)), (Some(80_400), None));
    assert_eq!((ns(bounds[0].delivery), ns(bounds[0].tx_done)), (Some(139_800), Some(21_001)));
}

#[test]
fn what_a_machine_says_arrives_at_the_named_one_on_no_wire() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut network = Network::open(&config(directory.path(), 1), EPOCH_NS).expect("room");
    let at = Time::from_ns(5_000);
    let frame =
        |to: u8| [&[0xff; 12][..], &[0x88, 0xb5], b"sundial-tell", &[to, 0, 0, 0, 7]].concat();
    // The hub joins machine 0 with 1; the switch 2 with 3. No machine has number 9.
    for to in [1, 2, 0, 9] {
        network.hand_in(at, 0, 0, Frame::from(frame(to)));
    }
    while network.handle_next(Time::MAX).is_some() {}
    let mut arrived = Vec::new();
    while let Some(notice) = network.poll_notice() {
        if let Some(frame) = notice.frame {
            arrived.push((notice.machine, notice.nic, notice.due, frame.to_vec()));
        }
    }
    let apart = network.distances().between(0, 2);
    assert_eq!(arrived, [(1, 0, at + LEAST_TELL, frame(1)), (2, 0, at + apart, frame(2))]);
    let counters = network.counters(at);
    assert_eq!(counters["segments"]["lan"]["ports"]["a:eth0"]["tx_frames"], 0);
}
