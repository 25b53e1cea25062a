// SPDX-License-Identifier: Apache-2.0
//! The binary on the real clock, with this test as both machines.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

struct Fabric {
    child: Child,
    events: BufReader<ChildStdout>,
    directory: TempDir,
}

impl Drop for Fabric {
    fn drop(&mut self) {
        // A test that failed half-way leaves nothing behind.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

impl Fabric {
    fn start(directory: TempDir, config: &Value) -> Self {
        let file = directory.path().join("fabric.json");
        std::fs::write(&file, config.to_string()).expect("room");
        let mut child = binary("run", &file)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary is built");
        let events = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, events, directory }
    }

    fn event(&mut self) -> Value {
        let mut line = String::new();
        self.events.read_line(&mut line).expect("it says something");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no event: {line:?}"))
    }

    fn machine(&self, name: &str) -> UnixDatagram {
        let socket = UnixDatagram::bind(self.path(&format!("{name}.q"))).expect("free");
        socket.connect(self.path(&format!("{name}.f"))).expect("the fabric listens");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
        socket
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn ask(&self, command: &str) -> Value {
        let mut client = UnixStream::connect(self.path("control")).expect("it listens");
        writeln!(client, "{{\"command\":\"{command}\"}}").expect("it reads");
        let mut answer = String::new();
        BufReader::new(client).read_line(&mut answer).expect("it answers");
        serde_json::from_str(&answer).expect("in JSON")
    }

    /// The counters when they are as `expected`.
    fn counters_once(&self, expected: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let counters = self.ask("counters");
            if expected(&counters) {
                return counters;
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "{counters}");
        }
    }

    fn status(&mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }
}

fn binary(command: &str, file: &Path) -> Command {
    let mut binary =
        Command::new(std::env::var_os("CARGO_BIN_EXE_sundial-fabric").expect("cargo sets it"));
    binary.arg(command).arg(file);
    binary
}

/// A link between a and b.
fn config(directory: &Path, rate_bps: u64, propagation_ns: u64, adapter: Value) -> Value {
    let port = |name: &str| {
        json!({ "machine": name, "nic": 0, "interface": "eth0", "mac": "02:53:44:00:00:01",
                "local": directory.join(format!("{name}.f")),
                "remote": directory.join(format!("{name}.q")) })
    };
    json!({
        "version": 1, "clock": "real", "seed": 1, "capture_dir": directory,
        "control": directory.join("control"), "linger_ns": 50_000_000, "done_machines": ["a", "b"],
        "machines": [{ "name": "a", "nics": 1 }, { "name": "b", "nics": 1 }],
        "segments": [{ "name": "wan", "kind": "link", "rate_bps": rate_bps, "max_frame_bytes": 9216,
            "propagation_ns": propagation_ns, "adapter": adapter, "ports": [port("a"), port("b")] }],
    })
}

fn start(rate_bps: u64, propagation_ns: u64, adapter: Value) -> Fabric {
    let directory = tempfile::tempdir().expect("a directory");
    let config = config(directory.path(), rate_bps, propagation_ns, adapter);
    let mut fabric = Fabric::start(directory, &config);
    assert_eq!(fabric.event(), json!({ "event": "listening" }));
    fabric
}

fn done(status: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 12];
    frame.extend([0x88, 0xb5]);
    frame.extend(b"sundial-done");
    frame.push(status);
    frame
}

#[test]
fn frames_are_never_early_and_the_run_ends_when_all_are_done() {
    let mut fabric = start(1_000_000_000, 2_000_000, json!({}));
    let (a, b) = (fabric.machine("a"), fabric.machine("b"));
    let mut buffer = [0; 10_000];
    let mut late = Vec::new();
    for number in 0..200_u8 {
        let frame = vec![number; 100 + 40 * usize::from(number)];
        let began = Instant::now();
        a.send(&frame).expect("the fabric takes it");
        let length = b.recv(&mut buffer).expect("it arrives");
        let took = began.elapsed();
        assert_eq!(buffer[..length], frame);
        // 2 ms and the serialisation of preamble, frame and FCS at a bit a nanosecond.
        let least = Duration::from_nanos(2_000_000 + 8 * (frame.len() as u64 + 12));
        assert!(took >= least, "{took:?} of {least:?}");
        late.push(took - least);
    }
    late.sort();
    println!("late: median {:?}, 99 % {:?}", late[100], late[198]);
    b.send(&done(0)).expect("taken");
    let event = fabric.event();
    assert_eq!((&event["machine"], &event["status"]), (&json!("b"), &json!(0)));
    a.send(&done(3)).expect("taken");
    let event = fabric.event();
    assert_eq!((&event["machine"], &event["status"]), (&json!("a"), &json!(3)));
    let last_ns = event["at_ns"].as_u64().expect("a number");
    let event = fabric.event();
    assert_eq!(event, json!({ "event": "finished", "virtual_ns": last_ns + 50_000_000 }));
    assert_eq!(fabric.status(), Some(0));
    let counters = std::fs::read(fabric.path("counters.json")).expect("written");
    let counters: Value = serde_json::from_slice(&counters).expect("JSON");
    let ports = &counters["segments"]["wan"]["ports"];
    assert_eq!(ports["a:eth0"]["tx_frames"], 200);
    assert_eq!(ports["b:eth0"]["rx_frames"], 200);
    assert_eq!(ports["b:eth0"]["tx_frames"], 0, "control frames are not forwarded");
    for gone in ["control", "a.f", "b.f"] {
        assert!(!fabric.path(gone).exists(), "{gone} is left behind");
    }
}

#[test]
fn a_run_ends_after_its_deadline_and_names_the_machines_that_were_late() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = config(directory.path(), 1_000_000_000, 0, json!({}));
    config["deadline_ns"] = json!(1_000_000);
    let mut fabric = Fabric::start(directory, &config);
    assert_eq!(fabric.event(), json!({ "event": "listening" }));
    let event = fabric.event();
    let expected = json!({ "event": "finished", "virtual_ns": 51_000_000, "late": ["a", "b"] });
    assert_eq!(event, expected);
    assert_eq!(fabric.status(), Some(0));
}

#[test]
fn a_full_ring_stops_the_machine_and_loses_nothing() {
    // 100 frames of 1512 bytes on the wire take 121 ms at 10 Mb/s; the ring holds 4.
    let mut fabric = start(10_000_000, 0, json!({ "ring_frames": 4, "when_full": "stop" }));
    let (a, b) = (fabric.machine("a"), fabric.machine("b"));
    let began = Instant::now();
    for number in 0..100_u8 {
        // Blocks while the fabric does not read.
        a.send(&[number; 1500]).expect("taken in the end");
    }
    let mut buffer = [0; 10_000];
    for number in 0..100_u8 {
        let length = b.recv(&mut buffer).expect("it arrives");
        assert_eq!((length, buffer[0]), (1500, number));
    }
    // 100 frames and 99 gaps of 12 bytes, 0.8 us a byte.
    assert!(began.elapsed() >= Duration::from_nanos(800 * (100 * 1512 + 99 * 12)));
    let counters = fabric.ask("counters");
    let port = &counters["segments"]["wan"]["ports"]["a:eth0"];
    assert_eq!(port["offered_frames"], 100);
    assert_eq!(port["adapter_full"], 0);
    fabric.ask("stop");
    assert_eq!(fabric.event()["event"], "finished");
    assert_eq!(fabric.status(), Some(0));
}

#[test]
fn a_slow_receiver_holds_up_the_sender_and_loses_nothing() {
    // The delay lets 64 frames and more fall due at once; the receiver's socket queues about ten.
    let mut fabric = start(1_000_000_000, 10_000_000, json!({}));
    let (a, b) = (fabric.machine("a"), fabric.machine("b"));
    let frames = 5_000_u32;
    let sender = std::thread::spawn(move || {
        for number in 0..frames {
            let mut frame = vec![0; 1500];
            frame[14..18].copy_from_slice(&number.to_be_bytes());
            a.send(&frame).expect("taken in the end");
        }
    });
    let mut buffer = [0; 10_000];
    for number in 0..frames {
        if number % 500 == 0 {
            // Behind, but not for so long that it counts as dead.
            std::thread::sleep(Duration::from_millis(20));
        }
        b.recv(&mut buffer).expect("it arrives");
        assert_eq!(buffer[14..18], number.to_be_bytes());
    }
    sender.join().expect("all are sent");
    fabric.ask("stop");
    assert_eq!(fabric.status(), Some(0));
}

#[test]
fn a_full_ring_drops_where_it_is_told_to() {
    let mut fabric = start(1_000_000, 0, json!({ "ring_frames": 4, "when_full": "drop" }));
    let (a, b) = (fabric.machine("a"), fabric.machine("b"));
    for number in 0..40_u8 {
        a.send(&[number; 1500]).expect("taken at once");
    }
    let mut buffer = [0; 10_000];
    for number in 0..4_u8 {
        b.recv(&mut buffer).expect("it arrives");
        assert_eq!(buffer[0], number);
    }
    let counters = fabric.ask("counters");
    let port = &counters["segments"]["wan"]["ports"]["a:eth0"];
    assert!(port["adapter_full"].as_u64().expect("a number") > 0);
    fabric.ask("stop");
    assert_eq!(fabric.status(), Some(0));
}

#[test]
fn a_machine_that_is_not_there_is_counted() {
    let mut fabric = start(1_000_000_000, 0, json!({}));
    let a = fabric.machine("a");
    a.send(&[1; 100]).expect("taken");
    fabric.counters_once(|it| it["segments"]["wan"]["ports"]["b:eth0"]["undelivered"] == 1);
    fabric.ask("stop");
    assert_eq!(fabric.status(), Some(0));
}

#[test]
fn a_bridge_passes_on_what_is_for_others_and_counts_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = config(directory.path(), 1_000_000_000, 1_000_000, json!({}));
    config["devices"] = json!([{
        "name": "edge", "kind": "bridge", "nics": 2, "forwarding_latency_ns": 2_000_000,
        "queue_frames": 8, "mac_table_entries": 8, "ageing_ns": 1_000_000_000_000_u64,
    }]);
    let mut second = config["segments"][0].clone();
    second["name"] = json!("lan");
    for (segment, port, nic) in [(&mut config["segments"][0], 1, 0), (&mut second, 0, 1)] {
        segment["ports"][port] = json!({
            "device": "edge", "nic": nic, "interface": format!("e{nic}"), "mac": "02:53:44:01:00:01",
        });
    }
    config["segments"].as_array_mut().expect("a list").push(second);
    let mut fabric = Fabric::start(directory, &config);
    assert_eq!(fabric.event(), json!({ "event": "listening" }));
    let (a, b) = (fabric.machine("a"), fabric.machine("b"));
    let frame = |to: u8, from: u8| {
        let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0];
        frame.resize(1500, from);
        frame
    };
    let mut buffer = [0; 10_000];
    let began = Instant::now();
    a.send(&frame(2, 1)).expect("taken");
    let length = b.recv(&mut buffer).expect("it arrives");
    // Twice 1 ms and 12,096 bits at a bit a nanosecond, and 2 ms in the bridge.
    assert!(began.elapsed() >= Duration::from_nanos(4_000_000 + 2 * 12_096));
    assert_eq!(buffer[..length], frame(2, 1));
    b.send(&frame(1, 2)).expect("taken");
    a.recv(&mut buffer).expect("it arrives");
    assert_eq!(buffer[..length], frame(1, 2));
    a.send(&frame(1, 3)).expect("taken");
    let counters = fabric
        .counters_once(|it| it["devices"]["edge"]["ports"]["edge:e0"]["received_frames"] == 2);
    let counted = |received: u64, forwarded: u64, flooded: u64, filtered: u64| {
        json!({ "received_frames": received, "forwarded_frames": forwarded,
                "flooded_frames": flooded, "filtered_frames": filtered })
    };
    let ports = json!({ "edge:e0": counted(2, 0, 1, 1), "edge:e1": counted(1, 1, 0, 0) });
    assert_eq!(counters["devices"], json!({ "edge": { "kind": "bridge", "ports": ports } }));
    fabric.ask("stop");
    assert_eq!(fabric.event()["event"], "finished");
    assert_eq!(fabric.status(), Some(0));
}

#[test]
fn a_frame_that_is_too_long_is_refused_and_counted() {
    let mut fabric = start(1_000_000_000, 0, json!({}));
    let (a, b) = (fabric.machine("a"), fabric.machine("b"));
    for bytes in [9217, 20_000, 9216] {
        a.send(&vec![1; bytes]).expect("taken");
    }
    let mut buffer = [0; 10_000];
    assert_eq!(b.recv(&mut buffer).expect("it arrives"), 9216);
    let counters = fabric.ask("counters");
    let port = &counters["segments"]["wan"]["ports"]["a:eth0"];
    assert_eq!(port["dropped"], json!({ "too long": 2 }));
    assert_eq!(port["offered_frames"], 3);
    fabric.ask("stop");
    assert_eq!(fabric.status(), Some(0));
}

#[test]
fn sigterm_ends_the_run_in_good_order() {
    let mut fabric = start(1_000_000_000, 0, json!({}));
    let id = fabric.child.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &id]).status().expect("kill is there");
    assert!(sent.success());
    assert_eq!(fabric.event()["event"], "finished");
    assert_eq!(fabric.status(), Some(0));
    assert!(fabric.path("counters.json").exists());
}

#[test]
fn a_full_disk_ends_the_run_with_status_5_and_the_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("wan.pcapng");
    std::os::unix::fs::symlink("/dev/full", &file).expect("a link");
    let config = config(directory.path(), 1_000_000_000, 0, json!({}));
    let mut fabric = Fabric::start(directory, &config);
    assert_eq!(fabric.event()["event"], "listening");
    // Captures can be read while they grow, so a full disk shows itself before anybody stops the run.
    assert_eq!(fabric.status(), Some(5));
    let mut text = String::new();
    let stderr = fabric.child.stderr.as_mut().expect("piped");
    stderr.read_to_string(&mut text).expect("text");
    assert!(text.contains("wan.pcapng") && text.lines().count() == 1, "{text}");
}

#[test]
fn a_bad_configuration_is_one_line_and_status_2() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = config(directory.path(), 1_000_000_000, 0, json!({}));
    config["segments"][0]["ports"][1]["machine"] = json!("absent");
    let file = directory.path().join("fabric.json");
    std::fs::write(&file, config.to_string()).expect("room");
    for command in ["run", "check"] {
        let output = binary(command, &file).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        let text = String::from_utf8(output.stderr).expect("text");
        let expected = format!(
            "sundial-fabric: {}: segments[0].ports[1].machine: no machine \"absent\"\n",
            file.display()
        );
        assert_eq!(text, expected);
    }
}
