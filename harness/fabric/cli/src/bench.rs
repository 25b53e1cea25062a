// SPDX-License-Identifier: Apache-2.0
//! How many frames a second the models and the captures carry, on one core and without machines.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use serde_json::{Value, json};
use sundial_core::{Frame, Span, Time};
use sundial_io::{Config, EPOCH_NS, Wires};

/// What is measured: a kind of segment, its size, and where frames go.
struct Load {
    kind: &'static str,
    ports: usize,
    queue_frames: usize,
    bytes: usize,
    /// All ports send to port 0, whose queue is always full, instead of each to the next.
    incast: bool,
}

/// All measurements.
pub fn all(frames: u64, directory: &Path) -> anyhow::Result<Value> {
    let mut loads = vec![
        Load { kind: "link", ports: 2, queue_frames: 0, bytes: 60, incast: false },
        Load { kind: "hub", ports: 2, queue_frames: 0, bytes: 60, incast: false },
    ];
    let switch = |ports, queue_frames, bytes, incast| Load {
        kind: "switch",
        ports,
        queue_frames,
        bytes,
        incast,
    };
    loads.extend([2, 4, 8, 16, 32, 64].map(|ports| switch(ports, 64, 60, false)));
    loads.extend([16, 256, 4096, 65_536].map(|queue| switch(8, queue, 60, true)));
    loads.push(switch(8, 64, 1514, false));
    let results: anyhow::Result<Vec<Value>> = loads
        .iter()
        .map(|load| {
            // Long frames fill the disk before they say more.
            let frames = if load.bytes > 1000 { frames / 4 } else { frames };
            measure(load, frames, directory)
        })
        .collect();
    Ok(json!({ "frames": frames, "results": results? }))
}

fn measure(load: &Load, frames: u64, directory: &Path) -> anyhow::Result<Value> {
    let directory = directory.join(format!("sundial-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let config = config(load, &directory)?;
    let outcome = push(load, &config, frames);
    let capture_bytes =
        std::fs::metadata(directory.join("wire.pcapng")).map_or(0, |file| file.len());
    std::fs::remove_dir_all(&directory)
        .with_context(|| format!("cannot remove {}", directory.display()))?;
    let (seconds, delivered) = outcome?;
    Ok(json!({
        "kind": load.kind,
        "ports": load.ports,
        "queue_frames": load.queue_frames,
        "frame_bytes": load.bytes,
        "load": if load.incast { "all to one, queue full" } else { "each to the next" },
        "frames_per_second": (frames as f64 / seconds).round(),
        "delivered": delivered,
        "capture_bytes": capture_bytes,
        "seconds": seconds,
    }))
}

/// Hands in `frames` frames, round-robin, as fast as the ports' lines take them; the seconds it took.
fn push(load: &Load, config: &Config, frames: u64) -> anyhow::Result<(f64, u64)> {
    let mut wires = Wires::open(config, EPOCH_NS)?;
    // Learn every address first, so that what is measured is forwarding.
    let sources: Vec<Frame> = (0..load.ports).map(|port| frame(load, port)).collect();
    let pace = Span::of_bits(sundial_core::wire_bits(load.bytes) + 96, 100_000_000);
    // On a hub one station at a time.
    let turns = if load.kind == "hub" { load.ports as u64 } else { 1 };
    let started = Instant::now();
    let mut now = Time::ZERO;
    for number in 0..frames {
        let port = (number % load.ports as u64) as usize;
        if port == 0 || turns > 1 {
            now += pace;
        }
        let wire = &mut wires.wires[0];
        while let Some(at) = wire.model.poll_timeout().filter(|&at| at <= now) {
            wire.model.handle_timeout(at);
        }
        wire.model.handle_frame(now, port, sources[port].clone());
        while wire.poll_output().is_some() {}
        if number % 256 == 0 {
            wire.advance(now)?;
        }
    }
    now += Span::from_ns(10_000_000_000);
    let model = &mut wires.wires[0].model;
    model.handle_timeout(now);
    let delivered = model.counters().ports.iter().map(|port| port.rx_frames).sum();
    wires.finish(now)?;
    Ok((started.elapsed().as_secs_f64(), delivered))
}

fn frame(load: &Load, port: usize) -> Frame {
    let to = if load.incast { 0 } else { (port + 1) % load.ports };
    let to = if to == port { 1 } else { to };
    let mut bytes = vec![0; load.bytes];
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, to as u8, 2, 0, 0, 0, 0, port as u8, 8, 0]);
    bytes.into()
}

fn config(load: &Load, directory: &Path) -> anyhow::Result<Config> {
    let names: Vec<String> = (0..load.ports).map(|port| format!("m{port}")).collect();
    let machines: Vec<Value> =
        names.iter().map(|name| json!({ "name": name, "nics": 1 })).collect();
    let plug = |name| json!({ "machine": name, "nic": 0, "interface": "eth0" });
    let ports: Vec<Value> = names.iter().map(plug).collect();
    let mut segment = json!({
        "name": "wire", "kind": load.kind, "rate_bps": 100_000_000, "max_frame_bytes": 1514,
        "adapter": { "ring_frames": 64, "when_full": "drop" }, "ports": ports,
    });
    let own = match load.kind {
        "hub" => json!({ "cable_delay_ns": vec![25; load.ports], "repeater_delay_ns": 460 }),
        "switch" => json!({
            "forwarding_latency_ns": 2000, "queue_frames": load.queue_frames,
            "mac_table_entries": 1024, "ageing_ns": 300_000_000_000_u64, "propagation_ns": 25,
        }),
        _ => json!({ "propagation_ns": 25 }),
    };
    let fields = segment.as_object_mut().expect("made as an object");
    fields.extend(own.as_object().expect("made as an object").clone());
    let text = json!({
        "version": 1, "clock": "virtual", "seed": 1, "capture_dir": directory, "shm": "unused",
        "machines": machines, "segments": [segment],
    });
    Ok(Config::parse(Path::new("bench"), text.to_string().as_bytes())?)
}
