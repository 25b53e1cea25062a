// SPDX-License-Identifier: Apache-2.0
use sundial_segments::kinds;

use super::*;

const LINK: &str = r#"{
  "version": 1, "clock": "virtual", "seed": 42, "capture_dir": "/run/wire", "shm": "/dev/shm/s",
  "linger_ns": 5, "done_machines": ["b"],
  "machines": [{"name": "a", "nics": 1}, {"name": "b", "nics": 1}],
  "segments": [
    {"name": "wan", "kind": "link", "rate_bps": 10000000, "max_frame_bytes": 1514,
     "propagation_ns": 1000,
     "ports": [{"machine": "a", "nic": 0, "interface": "eth0", "mac": "02:53:44:00:00:01"},
               {"machine": "b", "nic": 0, "interface": "eth0", "mac": "02:53:44:00:00:02"}]}]
}"#;

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(Path::new("fabric.json"), text.as_bytes(), &kinds())
        .map_err(|error| format!("{:#}", anyhow::Error::from(error)))
}

#[test]
fn a_link_is_read() {
    let config = parse(LINK).expect("the text is right");
    assert_eq!(config.done_machines, [1]);
    let segment = &config.segments[0];
    assert_eq!(segment.ports[0].ring_frames, 64);
    assert_eq!(segment.when_full, WhenFull::Stop);
    assert_eq!(segment.port_name(1), "b:eth0");
    let model = segment.build(config.seed);
    // 57.6 us for the smallest frame at 10 Mbit/s, and the propagation.
    assert_eq!(model.lookahead(0, 1), Span::from_ns(58_600));
}

/// The message for LINK with `old` replaced by `new`.
fn refused(old: &str, new: &str) -> String {
    assert!(LINK.contains(old), "{old}");
    parse(&LINK.replacen(old, new, 1)).expect_err("it is wrong")
}

#[test]
fn every_refusal_is_one_line_that_names_file_and_field() {
    let cases = [
        ("\"version\": 1", "\"version\": 2", "version: 2 is not known; this fabric reads 1"),
        ("\"shm\": \"/dev/shm/s\",", "", "shm: needed with clock virtual"),
        (
            "\"clock\": \"virtual\"",
            "\"clock\": \"real\"",
            "segments[0].ports[0].local: needed with clock real",
        ),
        (
            "\"propagation_ns\": 1000",
            "\"timeline\": [{\"at_ns\": 5, \"note\": \"\", \"off\": [2]}]",
            "segments[0].timeline[0].off[0]: no port 2; ports are 0 to 1",
        ),
        ("[\"b\"]", "[\"x\"]", "done_machines[0]: no machine \"x\""),
        (
            "\"name\": \"b\", \"nics\"",
            "\"name\": \"a\", \"nics\"",
            "machines[1].name: \"a\" is used twice",
        ),
        ("\"wan\"", "\"../wan\"", "segments[0].name: must be usable as a file name"),
        ("1514", "18189", "segments[0].max_frame_bytes: 18189 is outside 14 to 18188"),
        ("10000000", "0", "segments[0].rate_bps: 0 is outside 1 to 1000000000000"),
        (
            "\"propagation_ns\": 1000",
            "\"queue_frames\": 3",
            "segments[0].queue_frames: unknown field `queue_frames`, expected one of `rate_bps`, \
             `propagation_ns`, `impairments`, `timeline`, `by_hand` (kind link)",
        ),
        (
            "\"propagation_ns\": 1000",
            "\"timeline\": [{\"at_ns\": 5, \"note\": \"\"}, {\"at_ns\": 5, \"note\": \"\"}]",
            "segments[0].timeline[1].at_ns: must be later than that of the change before",
        ),
        (
            "\"propagation_ns\": 1000",
            "\"timeline\": [{\"at_ns\": 5, \"note\": \"\", \"cut\": [2]}]",
            "segments[0].timeline[0].cut[0]: no port 2; ports are 0 to 1",
        ),
        (
            "\"propagation_ns\": 1000",
            "\"timeline\": [{\"at_ns\": 5, \"note\": \"\", \"impairments\": {\"0\": {\"loss\": 2}}}]",
            "segments[0].timeline[0].impairments.0.loss: 2 is outside 0 to 1",
        ),
        (
            "\"machine\": \"b\", \"nic\": 0",
            "\"machine\": \"a\", \"nic\": 0",
            "segments[0].ports[1].nic: interface 0 of \"a\" is plugged in twice",
        ),
        (
            "\"machine\": \"b\", \"nic\": 0",
            "\"machine\": \"b\", \"nic\": 1",
            "segments[0].ports[1].nic: \"b\" has 1 interfaces, counted from 0",
        ),
        (
            "\"propagation_ns\": 1000",
            "\"impairments\": {\"2\": {}}",
            "segments[0].impairments.2: keys are the sending ports \"0\" and \"1\"",
        ),
        (
            "\"propagation_ns\": 1000",
            "\"impairments\": {\"1\": {\"loss\": 2}}",
            "segments[0].impairments.1.loss: 2 is outside 0 to 1",
        ),
        (
            "\"propagation_ns\": 1000",
            "\"adapter\": {\"ring_frames\": 0}",
            "segments[0].adapter.ring_frames: must be at least 1",
        ),
        ("\"rate_bps\": 10000000,", "", "segments[0]: missing field `rate_bps` (kind link)"),
        (
            "10000000",
            "[10000000, 10000000]",
            "segments[0].rate_bps: invalid type: sequence, expected u64 (kind link)",
        ),
        (
            "\"propagation_ns\": 1000",
            "\"impairments\": {\"1\": {\"loss\": \"2\"}}",
            "segments[0].impairments.1.loss: invalid type: string \"2\", expected f64 (kind link)",
        ),
        (
            "{\"name\": \"a\", \"nics\": 1}",
            "{\"name\": \"a\", \"nics\": 9}",
            "machines[0].nics: 9 are too many, at most 8",
        ),
        (
            "{\"name\": \"a\", \"nics\": 1}",
            "{\"name\": \"a\", \"nics\": 1, \"adapter_latency_ns\": 10000001}",
            "machines[0].adapter_latency_ns: 10000001 is outside 0 to 10000000",
        ),
        (
            "\"kind\": \"link\"",
            "\"kind\": \"hub\"",
            "segments[0].propagation_ns: unknown field `propagation_ns`, expected one of `rate_bps`, \
             `cable_delay_ns`, `repeater_delay_ns` (kind hub)",
        ),
    ];
    for (old, new, expected) in cases {
        assert_eq!(refused(old, new), format!("fabric.json: {expected}"));
    }
}

#[test]
fn a_kind_that_is_not_there_is_refused_with_those_that_are() {
    let text = refused("\"kind\": \"link\"", "\"kind\": \"ring\"");
    let expected = "fabric.json: segments[0].kind: no kind \"ring\", there are link, hub, switch";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn broken_json_is_named_by_line_and_column() {
    let unknown = refused("\"linger_ns\"", "\"lingerns\"");
    assert!(
        unknown.starts_with("fabric.json: lingerns: unknown field `lingerns`, expected one of"),
        "{unknown}"
    );
    assert!(unknown.contains("at line 3 column"), "{unknown}");
    let text = refused("\"nic\": 0", "\"nic\": \"0\"");
    let expected =
        "fabric.json: segments[0].ports[0].nic: invalid type: string \"0\", expected usize";
    assert!(text.starts_with(expected), "{text}");
    let cut = parse(&LINK[..100]).expect_err("cut");
    assert!(cut.contains("EOF") && cut.lines().count() == 1, "{cut}");
}

#[test]
fn a_missing_file_is_named() {
    let error = Config::load(Path::new("/nowhere/fabric.json"), &kinds()).expect_err("not there");
    let text = format!("{:#}", anyhow::Error::from(error));
    assert!(text.starts_with("/nowhere/fabric.json: No such file"), "{text}");
}

fn segment(fields: &str) -> String {
    let start = LINK.find("\"kind\"").expect("there");
    let end = LINK.find("\"ports\"").expect("there");
    format!("{}{fields}, \"max_frame_bytes\": 1514, {}", &LINK[..start], &LINK[end..])
}

#[test]
fn a_hub_and_a_switch_are_read() {
    let hub = segment(
        r#""kind": "hub", "rate_bps": 10000000, "cable_delay_ns": [25, 75], "repeater_delay_ns": 800"#,
    );
    let config = parse(&hub).expect("right");
    // 57.6 us and 25 + 800 + 75 ns.
    assert_eq!(config.segments[0].build(1).lookahead(0, 1), Span::from_ns(58_500));
    let switch = segment(
        r#""kind": "switch", "rate_bps": [10000000, 100000000], "full_duplex": true,
           "forwarding_latency_ns": 1000, "queue_frames": 8, "mac_table_entries": 16,
           "ageing_ns": 300000000000, "propagation_ns": 10"#,
    );
    let config = parse(&switch).expect("right");
    // 57.6 + 0.01 + 1 + 5.76 + 0.01 us.
    assert_eq!(config.segments[0].build(1).lookahead(0, 1), Span::from_ns(64_380));
    assert_eq!(config.segments[0].build(1).rate_bps(1), 100_000_000);
}

/// A machine, a bridge, and two segments that it joins.
const JOINED: &str = r#"{
  "version": 1, "clock": "virtual", "seed": 42, "capture_dir": "/run/wire", "shm": "/dev/shm/s",
  "machines": [{"name": "a", "nics": 1}, {"name": "b", "nics": 1}],
  "devices": [{"name": "edge", "kind": "bridge", "nics": 3, "forwarding_latency_ns": 20000,
               "queue_frames": 128, "mac_table_entries": 1024, "ageing_ns": 300000000000}],
  "segments": [
    {"name": "hub", "kind": "link", "rate_bps": 10000000, "max_frame_bytes": 1514,
     "ports": [{"machine": "a", "nic": 0, "interface": "eth0", "mac": "02:53:44:00:00:01"},
               {"device": "edge", "nic": 0, "interface": "e0", "mac": "02:53:44:01:00:01"}]},
    {"name": "elan", "kind": "link", "rate_bps": 10000000, "max_frame_bytes": 4542,
     "ports": [{"device": "edge", "nic": 2, "interface": "a0", "mac": "02:53:44:01:02:01"},
               {"machine": "b", "nic": 0, "interface": "eth0", "mac": "02:53:44:00:00:02"}]}]
}"#;

#[test]
fn a_bridge_is_read_and_its_rings_are_its_queues() {
    let config = parse(JOINED).expect("the text is right");
    assert_eq!(config.devices[0].ports, 3);
    let [hub, elan] = &config.segments[..] else { panic!("two segments") };
    assert_eq!(elan.ports[0].end, End::Device { device: 0, port: 2 });
    assert_eq!(elan.port_name(0), "edge:a0");
    assert_eq!([&hub.ports[0], &hub.ports[1]].map(|port| port.ring_frames), [64, 128]);
    assert_eq!(elan.ports[0].mac, [0x02, 0x53, 0x44, 0x01, 0x02, 0x01]);
    assert_eq!(config.domains(), [0, 0]);
    assert!(config.frame_buffer_bytes() > 4542);
}

#[test]
fn a_device_that_cannot_work_is_refused() {
    let again = r#"{"device": "edge", "nic": 1, "interface": "e1", "mac": "02:53:44:01:01:01"}"#;
    let port = r#"{"machine": "b", "nic": 0, "interface": "eth0", "mac": "02:53:44:00:00:02"}"#;
    let cases = [
        (
            "\"kind\": \"bridge\"",
            "\"kind\": \"router\"",
            "devices[0].kind: no kind \"router\" of device, there is bridge",
        ),
        ("\"nics\": 3", "\"nics\": 1", "devices[0].nics: 1 is outside 2 to 16"),
        ("\"nics\": 3", "\"nics\": 17", "devices[0].nics: 17 is outside 2 to 16"),
        (
            "\"queue_frames\": 128",
            "\"queue_frames\": 0",
            "devices[0].queue_frames: must be at least 1",
        ),
        (
            "\"ageing_ns\": 300000000000",
            "\"ageing_ns\": 0",
            "devices[0].ageing_ns: must be at least 1",
        ),
        ("\"name\": \"edge\"", "\"name\": \"a\"", "devices[0].name: \"a\" is used twice"),
        (
            "\"device\": \"edge\"",
            "\"device\": \"egde\"",
            "segments[0].ports[1].device: no device \"egde\"",
        ),
        (
            "\"device\": \"edge\"",
            "\"device\": \"edge\", \"machine\": \"b\"",
            "segments[0].ports[1]: names a machine or a device",
        ),
        ("\"device\": \"edge\",", "", "segments[0].ports[1]: names a machine or a device"),
        (
            "\"nic\": 2",
            "\"nic\": 3",
            "segments[1].ports[0].nic: \"edge\" has 3 interfaces, counted from 0",
        ),
        (
            "\"nic\": 2",
            "\"nic\": 0",
            "segments[1].ports[0].nic: interface 0 of \"edge\" is plugged in twice",
        ),
        (
            "\"e0\",",
            "\"e0\", \"local\": \"/x\",",
            "segments[0].ports[1].local: a device has no sockets",
        ),
        (
            port,
            again,
            "segments[1].ports[1].device: \"edge\" closes a loop of bridges: frames would go round for ever",
        ),
    ];
    for (old, new, expected) in cases {
        assert!(JOINED.contains(old), "{old}");
        let refused = parse(&JOINED.replacen(old, new, 1)).expect_err("it is wrong");
        assert_eq!(refused, format!("fabric.json: {expected}"));
    }
    let mac = parse(&JOINED.replacen("02:53:44:01:02:01", "02:53:44:01:02", 1)).expect_err("wrong");
    assert!(
        mac.starts_with("fabric.json: segments[1].ports[0].mac: \"02:53:44:01:02\" is no"),
        "{mac}"
    );
}

#[test]
fn two_bridges_between_the_same_segments_are_refused() {
    let mut config: serde_json::Value = serde_json::from_str(JOINED).expect("JSON");
    let mut second = config["devices"][0].clone();
    second["name"] = "second".into();
    config["devices"].as_array_mut().expect("a list").push(second);
    for (segment, nic) in [(0, 0), (1, 1)] {
        let port = serde_json::json!({
            "device": "second", "nic": nic, "interface": "x", "mac": "02:53:44:01:00:02",
        });
        let mut ports = config["segments"][segment]["ports"].as_array().expect("a list").clone();
        ports.retain(|port| port["machine"].is_null());
        ports.push(port);
        config["segments"][segment]["ports"] = ports.into();
    }
    let refused = parse(&config.to_string()).expect_err("a loop");
    let expected = "segments[1].ports[1].device: \"second\" closes a loop of bridges: frames would go \
                    round for ever";
    assert_eq!(refused, format!("fabric.json: {expected}"));
}

#[test]
fn a_hub_that_cannot_work_is_refused() {
    let hub = |rate: u64, cables: &str| {
        parse(&segment(&format!(
            r#""kind": "hub", "rate_bps": {rate}, "cable_delay_ns": {cables}, "repeater_delay_ns": 1000"#
        )))
        .expect_err("wrong")
    };
    assert_eq!(
        hub(1_000_000_000, "[1, 1]"),
        "fabric.json: segments[0].rate_bps: 1000000000: a hub runs at 10000000 or 100000000"
    );
    assert_eq!(
        hub(10_000_000, "[1]"),
        "fabric.json: segments[0].cable_delay_ns: 1 values for 2 ports"
    );
    // 240 bits at 100 Mb/s are 2.4 us, of which carrier sense takes 175 ns.
    assert_eq!(
        hub(100_000_000, "[700, 701]"),
        "fabric.json: segments[0].cable_delay_ns: 2401 ns from port 0 to port 1, longest is 2225 ns: \
         the round trip, carrier sense at both ends and the jam must be within the slot"
    );
}
