// SPDX-License-Identifier: Apache-2.0
//! Random trees of segments that bridges join, machines on them, and what these send.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use sundial_core::Frame;
use sundial_io::Config;
use sundial_io::shm::NICS;
use sundial_segments::kinds;

/// Frames that one machine may send; a conversation must end.
pub const MOST_FRAMES: usize = 40;
/// Nothing from here on happens: LAN emulation has timers of minutes. The last wish is before half of it.
pub const END_NS: u64 = 100_000_000;

/// A machine hands in a frame of its own accord.
#[derive(Clone, Debug)]
pub struct Wish {
    pub at_ns: u64,
    pub machine: usize,
    pub letter: Letter,
}

/// What a machine sends: to whom and by which interface is chosen among what there is.
#[derive(Clone, Debug)]
pub struct Letter {
    pub nic: Index,
    /// The last one stands for all machines.
    pub to: Index,
    pub bytes: usize,
}

/// A network and what happens in it.
#[derive(Clone, Debug)]
pub struct World {
    pub config: Value,
    pub machines: usize,
    /// In order of time.
    pub wishes: Vec<Wish>,
    /// What machines answer with, chosen by what they answer.
    pub answers: Vec<Letter>,
    /// Whose turn it is.
    pub turns: Vec<Index>,
}

impl World {
    pub fn config(&self, directory: &Path) -> Config {
        let mut config = self.config.clone();
        config["capture_dir"] = json!(directory);
        Config::parse(Path::new("world"), config.to_string().as_bytes(), &kinds())
            .unwrap_or_else(|error| panic!("{:#}: {config:#}", anyhow::Error::from(error)))
    }

    /// What `machine` answers to `received`, if it does.
    pub fn answer(&self, machine: usize, received: &Frame) -> Option<&Letter> {
        let (sender, number) = identity(received);
        let choice = 31 * sender + 7 * number + machine;
        choice.is_multiple_of(3).then(|| &self.answers[choice % self.answers.len()])
    }
}

impl Letter {
    /// The frame number `number` of `machine`.
    pub fn frame(&self, world: &World, machine: usize, number: usize) -> Frame {
        let to = self.to.index(world.machines + 1);
        let destination = if to == world.machines { [0xff; 6] } else { [2, 0, 0, 0, 0, to as u8] };
        let mut frame = Vec::from(destination);
        frame.extend([2, 0, 0, 0, 0, machine as u8, 8, 0, machine as u8, number as u8]);
        frame.resize(self.bytes, 0);
        Frame::from(frame)
    }
}

/// Who sent `frame`, and its number among those that it sent.
pub fn identity(frame: &Frame) -> (usize, usize) {
    (usize::from(frame[14]), usize::from(frame[15]))
}

fn letter() -> impl Strategy<Value = Letter> {
    let bytes = prop_oneof![3 => 16_usize..100, 1 => 100_usize..1514, 1 => Just(1514_usize)];
    (any::<Index>(), any::<Index>(), bytes).prop_map(|(nic, to, bytes)| Letter { nic, to, bytes })
}

fn wishes(machines: usize) -> impl Strategy<Value = Vec<Wish>> {
    let pause = prop_oneof![3 => Just(0_u64), 3 => 0_u64..30_000, 3 => 0_u64..2_000_000];
    prop::collection::vec((pause, 0..machines, letter()), 1..20).prop_map(|list| {
        let mut at_ns = 0;
        let wish = |(pause, machine, letter)| {
            at_ns += pause;
            Wish { at_ns, machine, letter }
        };
        list.into_iter().map(wish).collect()
    })
}

/// How a segment hangs on the others, and what it is.
#[derive(Clone, Debug)]
struct Branch {
    /// The earlier segment that a bridge joins it to.
    parent: Index,
    /// By a bridge that is there already, if one is.
    same_bridge: bool,
    bridge: Value,
    machines: Vec<usize>,
    kind: Index,
    rate_bps: u64,
    delay_ns: u64,
    impairments: Option<Value>,
}

fn branch(machines: usize) -> impl Strategy<Value = Branch> {
    let bridge =
        (prop_oneof![Just(0_u64), 1..50_000_u64], 1..6_usize, 1..6_usize, 1_000..3_000_000_u64)
            .prop_map(|(latency_ns, queue_frames, mac_table_entries, ageing_ns)| {
                json!({
                    "kind": "bridge", "forwarding_latency_ns": latency_ns,
                    "queue_frames": queue_frames, "mac_table_entries": mac_table_entries,
                    "ageing_ns": ageing_ns,
                })
            });
    let impairments = (0.0..0.5_f64, 1..500_000_u64, 0..500_000_u64, 0.0..0.3_f64).prop_map(
        |(loss, delay_ns, jitter_ns, reorder)| {
            json!({
                "loss": loss, "delay_ns": delay_ns, "jitter_ns": jitter_ns, "reorder": reorder,
                "duplicate": 0.1,
            })
        },
    );
    (
        (any::<Index>(), any::<bool>(), bridge),
        prop::collection::vec(0..machines, 1..4),
        any::<Index>(),
        prop_oneof![Just(10_000_000_u64), Just(100_000_000), 1_000_000..1_000_000_000_u64],
        0..7_000_u64,
        prop::option::of(impairments),
    )
        .prop_map(
            |((parent, same_bridge, bridge), machines, kind, rate_bps, delay_ns, impairments)| {
                Branch {
                    parent,
                    same_bridge,
                    bridge,
                    machines,
                    kind,
                    rate_bps,
                    delay_ns,
                    impairments,
                }
            },
        )
}

/// Interfaces that each machine has, and segments with the ends at their ports.
struct Tree {
    nics: Vec<usize>,
    ends: Vec<Vec<Value>>,
    /// Ports and settings of each bridge, and the segments that it is on.
    bridges: Vec<(Value, Vec<usize>)>,
}

impl Tree {
    /// Once at most: an address is at one port of an emulated LAN.
    fn plug_machine(&mut self, segment: usize, machine: usize) {
        let (nic, name) = (self.nics[machine], format!("m{machine}"));
        if nic < NICS && self.ends[segment].iter().all(|end| end["machine"] != name) {
            self.nics[machine] += 1;
            self.ends[segment].push(json!({
                "machine": name, "nic": nic, "interface": format!("eth{nic}"),
                "mac": format!("02:00:00:00:00:{machine:02x}"),
            }));
        }
    }

    fn plug_bridge(&mut self, segment: usize, bridge: usize) {
        let segments = &mut self.bridges[bridge].1;
        let port = segments.len();
        segments.push(segment);
        self.ends[segment].push(json!({
            "device": format!("b{bridge}"), "nic": port, "interface": format!("e{port}"),
            "mac": format!("02:00:00:01:{port:02x}:{bridge:02x}"),
        }));
    }
}

/// The segment at the ports `ends`.
fn segment(index: usize, branch: &Branch, ends: Vec<Value>) -> Value {
    let ports = ends.len();
    let mut segment = match branch.kind.index(if ports == 2 { 4 } else { 3 }) {
        0 => {
            let fast = branch.rate_bps > 50_000_000;
            let scale = |ns: u64| if fast { ns / 10 } else { ns };
            json!({
                "kind": "hub", "rate_bps": if fast { 100_000_000 } else { 10_000_000 },
                "cable_delay_ns": vec![scale(branch.delay_ns); ports],
                "repeater_delay_ns": scale(800),
            })
        }
        1 => json!({
            "kind": "switch", "rate_bps": branch.rate_bps, "propagation_ns": branch.delay_ns,
            "forwarding_latency_ns": 2_000, "queue_frames": 3, "mac_table_entries": 4,
            "ageing_ns": 1_000_000,
        }),
        2 => atm(branch, ports),
        _ => json!({
            "kind": "link", "rate_bps": branch.rate_bps, "propagation_ns": branch.delay_ns,
            "impairments": branch.impairments.as_ref().map_or(json!({}), |it| json!({ "1": it })),
        }),
    };
    segment["name"] = json!(format!("s{index}"));
    segment["max_frame_bytes"] = json!(1514);
    segment["adapter"] = json!({ "ring_frames": 8, "when_full": "drop" });
    segment["ports"] = ends.into();
    segment
}

/// An ATM switch, with LAN emulation or a mesh of PVCs.
fn atm(branch: &Branch, ports: usize) -> Value {
    let line = |port: usize| match (branch.rate_bps + port as u64) % 3 {
        0 => json!({ "rate_bps": 25_600_000, "cell_octets": 54 }),
        _ => json!({ "rate_bps": 149_760_000, "cell_octets": 53 }),
    };
    let loss = branch.impairments.as_ref().map(|_| json!({ "cell_loss": 0.01 }));
    let contract = json!({ "rate_bps": 10_000_000, "tolerance_ns": 500_000, "action": "drop" });
    let of_rate = |part: u64, value: Value| {
        if branch.rate_bps.is_multiple_of(part) { value } else { Value::Null }
    };
    let mut segment = json!({
        "kind": "atm", "lines": (0..ports).map(line).collect::<Vec<_>>(),
        "propagation_ns": vec![branch.delay_ns; ports], "tx_latency_ns": vec![0; ports],
        "rx_latency_ns": vec![branch.delay_ns / 2; ports], "encapsulation": "bridged",
        "interleave": if branch.delay_ns.is_multiple_of(2) { "pdu" } else { "cells" },
        "cell_latency_ns": 10_000, "cdv_ns": if branch.delay_ns.is_multiple_of(5) { 3_000 } else { 0 },
        "queue": { "cells": 40, "discard": "epd", "epd_above": 20, "vc_cells": null, "clp1_above": null },
        "contracts": vec![of_rate(3, contract); ports],
        "shaping_bps": vec![of_rate(7, json!(5_000_000)); ports],
        "impairments": { "from": vec![loss; ports], "to": vec![Value::Null; ports] },
        "capture": { "cells": true, "cells_most": 1_000 },
    });
    if branch.same_bridge {
        segment["encapsulation"] = json!("lane");
        segment["lane"] = json!({
            "frame_size": 1516, "resolution": if branch.delay_ns.is_multiple_of(4) { "static" } else { "le_arp" },
            "vc_setup_ns": 2_000_000, "service_latency_ns": 50_000, "service_line": line(0),
            "unknown_frames": 1, "unknown_frame_time_ns": 10_000_000,
            "control_time_out_ns": 20_000_000, "vcc_time_out_ns": 30_000_000, "retries": 1,
            "ageing_ns": 20_000_000, "forward_delay_ns": 5_000_000,
            "le_arp_response_time_ns": 10_000_000, "flush_time_out_ns": 4_000_000,
            "path_switching_delay_ns": 6_000_000, "elan": "s",
        });
    }
    segment
}

/// Of each machine's adapters; often of none.
fn latencies(machines: usize) -> impl Strategy<Value = Vec<u64>> {
    let latency_ns = || prop_oneof![2 => Just(0_u64), 2 => 1..100_u64, 3 => 100..100_000_u64];
    prop_oneof![
        Just(vec![0; machines]),
        latency_ns().prop_map(move |latency_ns| vec![latency_ns; machines]),
        prop::collection::vec(latency_ns(), machines),
    ]
}

fn config(latencies: &[u64], branches: &[Branch]) -> Value {
    let machines = latencies.len();
    let mut tree =
        Tree { nics: vec![0; machines], ends: vec![Vec::new(); branches.len()], bridges: vec![] };
    for (index, branch) in branches.iter().enumerate() {
        if index > 0 {
            let parent = branch.parent.index(index);
            let there = tree.bridges.iter().position(|(_, segments)| segments.contains(&parent));
            match there.filter(|_| branch.same_bridge) {
                Some(bridge) => tree.plug_bridge(index, bridge),
                None => {
                    let bridge = tree.bridges.len();
                    tree.bridges.push((branch.bridge.clone(), Vec::new()));
                    tree.plug_bridge(parent, bridge);
                    tree.plug_bridge(index, bridge);
                }
            }
        }
        for &machine in &branch.machines {
            tree.plug_machine(index, machine);
        }
    }
    for index in 0..branches.len() {
        for machine in 0..machines {
            if tree.ends[index].len() < 2 {
                tree.plug_machine(index, machine);
            }
        }
    }
    let Tree { nics, ends, bridges } = tree;
    let machine = |(index, nics): (usize, usize)| json!({ "name": format!("m{index}"), "nics": nics, "adapter_latency_ns": latencies[index] });
    let device = |(index, (mut bridge, segments)): (usize, (Value, Vec<usize>))| {
        bridge["name"] = json!(format!("b{index}"));
        bridge["nics"] = json!(segments.len());
        bridge
    };
    let ends = ends.into_iter().zip(branches).enumerate();
    json!({
        "version": 1, "clock": "virtual", "seed": 1, "capture_dir": "", "shm": "unused",
        "machines": nics.into_iter().enumerate().map(machine).collect::<Vec<_>>(),
        "devices": bridges.into_iter().enumerate().map(device).collect::<Vec<_>>(),
        "segments": ends.map(|(index, (ends, it))| segment(index, it, ends)).collect::<Vec<_>>(),
    })
}

pub fn world() -> impl Strategy<Value = World> {
    (2..6_usize).prop_flat_map(|machines| {
        let branches = prop::collection::vec(branch(machines), 1..5);
        let answers = prop::collection::vec(letter(), 1..8);
        let turns = prop::collection::vec(any::<Index>(), 1..40);
        (branches, latencies(machines), wishes(machines), answers, turns).prop_map(
            move |(branches, latencies, wishes, answers, turns)| World {
                config: config(&latencies, &branches),
                machines,
                wishes,
                answers,
                turns,
            },
        )
    })
}
