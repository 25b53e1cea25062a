// SPDX-License-Identifier: Apache-2.0
//! How many frames a second the models and the captures carry, on one core and without machines.

mod cells;

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use serde_json::{Value, json};
use sundial_core::{Frame, Span, Time};
use sundial_io::shm::NICS;
use sundial_io::{Config, EPOCH_NS, Network};
use sundial_segments::{GAP_BITS, kinds, wire_bits};

const RATE_BPS: u64 = 100_000_000;

/// What is measured: a segment of some kind and size, and where frames go.
struct Load {
    kind: &'static str,
    /// The fields of the kind.
    own: Value,
    ports: usize,
    queue_frames: usize,
    bytes: usize,
    /// All ports send to port 0, whose queue is always full, instead of each to the next.
    incast: bool,
    /// One port sends at a time.
    shared: bool,
    /// From one frame of a port to the next.
    pace: Span,
}

/// All measurements.
pub fn all(frames: u64, directory: &Path) -> anyhow::Result<Value> {
    let mut loads = vec![link(), hub()];
    loads.extend([2, 4, 8, 16, 32, 64].map(|ports| switch(ports, 64, 60, false)));
    loads.extend([16, 256, 4096, 65_536].map(|queue| switch(8, queue, 60, true)));
    loads.push(switch(8, 64, 1514, false));
    loads.extend(
        [(60, false), (60, true), (1514, false), (1514, true)]
            .map(|(bytes, cells)| atm(bytes, cells)),
    );
    let results: anyhow::Result<Vec<Value>> = loads
        .iter()
        .map(|load| {
            // Long frames fill the disk before they say more.
            let frames = if load.bytes > 1000 { frames / 4 } else { frames };
            measure(load, frames, directory)
        })
        .collect();
    Ok(json!({ "frames": frames, "results": results?, "cells": cells::all(frames) }))
}

/// The time of a frame on Ethernet, with the gap behind it.
fn ethernet_pace(bytes: usize) -> Span {
    Span::of_bits(wire_bits(bytes) + GAP_BITS, RATE_BPS)
}

fn link() -> Load {
    let own = json!({ "rate_bps": RATE_BPS, "propagation_ns": 25 });
    let pace = ethernet_pace(60);
    Load {
        kind: "link",
        own,
        ports: 2,
        queue_frames: 0,
        bytes: 60,
        incast: false,
        shared: false,
        pace,
    }
}

fn hub() -> Load {
    let own = json!({ "rate_bps": RATE_BPS, "cable_delay_ns": [25, 25], "repeater_delay_ns": 460 });
    let pace = ethernet_pace(60);
    Load {
        kind: "hub",
        own,
        ports: 2,
        queue_frames: 0,
        bytes: 60,
        incast: false,
        shared: true,
        pace,
    }
}

fn switch(ports: usize, queue_frames: usize, bytes: usize, incast: bool) -> Load {
    let own = json!({
        "rate_bps": RATE_BPS,
        "forwarding_latency_ns": 2000, "queue_frames": queue_frames, "mac_table_entries": 1024,
        "ageing_ns": 300_000_000_000_u64, "propagation_ns": 25,
    });
    let pace = ethernet_pace(bytes);
    Load { kind: "switch", own, ports, queue_frames, bytes, incast, shared: false, pace }
}

/// Eight ports of OC-3c, bridged, with or without the capture of cells.
fn atm(bytes: usize, cells: bool) -> Load {
    let ports = 8;
    // 18 octets in front and behind.
    let pace = cells::line_time((bytes + 18).div_ceil(48) as u64);
    let own = cells::fields(ports, cells);
    Load { kind: "atm", own, ports, queue_frames: 0, bytes, incast: false, shared: false, pace }
}

fn measure(load: &Load, frames: u64, directory: &Path) -> anyhow::Result<Value> {
    let directory = directory.join(format!("sundial-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let config = config(load, &directory)?;
    let outcome = push(load, &config, frames);
    let captures = ["wire.pcapng", "atm/wire.pdus.pcapng", "atm/wire.cells.pcapng"];
    let capture_bytes: u64 = captures
        .map(|name| std::fs::metadata(directory.join(name)).map_or(0, |file| file.len()))
        .iter()
        .sum();
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
        "capture_cells": load.own["capture"]["cells"],
        "capture_bytes": capture_bytes,
        "seconds": seconds,
    }))
}

/// Hands in `frames` frames, round-robin, as fast as the ports' lines take them; the seconds it took.
fn push(load: &Load, config: &Config, frames: u64) -> anyhow::Result<(f64, u64)> {
    let mut network = Network::open(config, EPOCH_NS)?;
    // The first frames teach a switch every address, so that what is measured is forwarding.
    let sources: Vec<Frame> = (0..load.ports).map(|port| frame(load, port)).collect();
    let started = Instant::now();
    let mut now = Time::ZERO;
    for number in 0..frames {
        let port = (number % load.ports as u64) as usize;
        if port == 0 || load.shared {
            now += load.pace;
        }
        let segment = &mut network.segments[0];
        while let Some(at) = segment.model.poll_timeout().filter(|&at| at <= now) {
            segment.model.handle_timeout(at);
        }
        segment.model.handle_frame(now, port, sources[port].clone());
        while segment.poll_output().is_some() {}
        if number % 256 == 0 {
            segment.advance(now)?;
        }
    }
    now += Span::from_ns(10_000_000_000);
    let model = &mut network.segments[0].model;
    model.handle_timeout(now);
    let delivered = model.counters().ports.iter().map(|port| port.rx_frames).sum();
    network.finish(now)?;
    Ok((started.elapsed().as_secs_f64(), delivered))
}

fn frame(load: &Load, port: usize) -> Frame {
    let to = if load.incast { 0 } else { (port + 1) % load.ports };
    let to = if to == port { 1 } else { to };
    let mut bytes = vec![0; load.bytes];
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, to as u8, 2, 0, 0, 0, 0, port as u8, 8, 0]);
    bytes.into()
}

/// Each machine has as many interfaces as one may have, so that there are machines enough for all ports.
fn config(load: &Load, directory: &Path) -> anyhow::Result<Config> {
    let names: Vec<String> = (0..load.ports.div_ceil(NICS)).map(|m| format!("m{m}")).collect();
    let machines: Vec<Value> =
        names.iter().map(|name| json!({ "name": name, "nics": NICS })).collect();
    let plug = |port: usize| {
        let nic = port % NICS;
        json!({
            "machine": names[port / NICS], "nic": nic, "interface": format!("eth{nic}"),
            "mac": format!("02:00:00:00:00:{port:02x}"),
        })
    };
    let ports: Vec<Value> = (0..load.ports).map(plug).collect();
    let mut segment = json!({
        "name": "wire", "kind": load.kind, "max_frame_bytes": 1514,
        "adapter": { "ring_frames": 64, "when_full": "drop" }, "ports": ports,
    });
    let fields = segment.as_object_mut().expect("made as an object");
    fields.extend(load.own.as_object().expect("made as an object").clone());
    let text = json!({
        "version": 1, "clock": "virtual", "seed": 1, "capture_dir": directory, "shm": "unused",
        "machines": machines, "segments": [segment],
    });
    Ok(Config::parse(Path::new("bench"), text.to_string().as_bytes(), &kinds())?)
}
