// SPDX-License-Identifier: Apache-2.0
use super::*;

const LINK: &str = r#"{
  "version": 1, "clock": "virtual", "seed": 42, "capture_dir": "/run/wire", "shm": "/dev/shm/s",
  "linger_ns": 5, "done_machines": ["b"],
  "machines": [{"name": "a", "nics": 1}, {"name": "b", "nics": 1}],
  "segments": [
    {"name": "wan", "kind": "link", "rate_bps": 10000000, "max_frame_bytes": 1514,
     "propagation_ns": 1000,
     "ports": [{"machine": "a", "nic": 0, "interface": "eth0"},
               {"machine": "b", "nic": 0, "interface": "eth0"}]}]
}"#;

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(Path::new("fabric.json"), text.as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn a_link_is_read() {
    let config = parse(LINK).expect("the text is right");
    assert_eq!(config.done_machines, [1]);
    let segment = &config.segments[0];
    assert_eq!(segment.ring_frames, 64);
    assert_eq!(segment.when_full, WhenFull::Stop);
    assert_eq!(segment.port_name(1), "b:eth0");
    let model = segment.build(config.seed);
    // 57.6 us for the smallest frame at 10 Mbit/s, and the propagation.
    assert_eq!(model.lookahead(0, 1), Span::from_ns(58_600));
}
