// SPDX-License-Identifier: Apache-2.0
//! The same network, with all events known and handled in order.

use std::collections::BTreeMap;

use sundial_core::{Frame, Output, Segment, Time};
use sundial_io::{Config, End, Notice};

use crate::machines::Machine;
use crate::world::{END_NS, World};

/// The law of order: time, then what it is, then whose it is and where, then which was first.
type Rank = (Time, u8, usize, usize, usize);

const DEVICE_RECEIVES: u8 = 1;
const DEVICE_SENDS: u8 = 2;
const MACHINE_SENDS: u8 = 3;

struct Reference {
    config: Config,
    segments: Vec<Box<dyn Segment>>,
    /// Of each device.
    tables: Vec<Table>,
    machines: Vec<Machine>,
    frames: BTreeMap<Rank, Frame>,
    ranked: usize,
    now: Time,
}

/// Port and time of the latest sight of each address.
type Table = BTreeMap<[u8; 6], (usize, Time)>;

/// The notices of each machine.
pub fn run(world: &World, config: Config) -> Vec<Vec<Notice>> {
    let segments = config.segments.iter().map(|segment| segment.build(config.seed)).collect();
    let tables = vec![Table::new(); config.devices.len()];
    let machines = Machine::all(world);
    let frames = BTreeMap::new();
    let mut reference =
        Reference { config, segments, tables, machines, frames, ranked: 0, now: Time::ZERO };
    while reference.step(world) {}
    reference.machines.into_iter().map(|machine| machine.heard).collect()
}

impl Reference {
    /// Works on the next event; `false`: there is none before the end.
    fn step(&mut self, world: &World) -> bool {
        let acts =
            self.machines.iter().enumerate().filter_map(|(index, machine)| {
                Some((Time::from_ns(machine.next_ns(world)?), index))
            });
        let act = acts.min();
        let asks = self.segments.iter().enumerate();
        let timeout = asks.filter_map(|(index, it)| Some((it.poll_timeout()?, index))).min();
        let frame = self.frames.first_key_value().map(|(&rank, _)| rank);
        let first = [act.map(|(at, _)| at), timeout.map(|(at, _)| at), frame.map(|rank| rank.0)];
        let end = Time::from_ns(END_NS);
        let next = first.into_iter().flatten().min().filter(|&next| next < end);
        let Some(now) = next else { return false };
        assert!(now >= self.now, "{now} after {}: {act:?} {timeout:?} {frame:?}", self.now);
        self.now = now;
        // A machine says what it does at an instant before anything happens there.
        if let Some((_, machine)) = act.filter(|&(at, _)| at == now) {
            let config = &self.config.machines[machine];
            let begins = now + config.adapter_latency;
            if let Some(sent) = self.machines[machine].step(world, machine, config.nics) {
                self.rank(begins, MACHINE_SENDS, machine, sent.nic, sent.frame);
            }
        } else if let Some((_, segment)) = timeout.filter(|&(at, _)| at == now) {
            self.segments[segment].handle_timeout(now);
            self.collect(segment);
        } else {
            let ((_, what, owner, port, _), frame) = self.frames.pop_first().expect("the first");
            match what {
                DEVICE_RECEIVES => self.relay(now, owner, port, &frame),
                DEVICE_SENDS => self.send(now, End::Device { device: owner, port }, frame),
                _ => self.send(now, End::Machine { machine: owner, nic: port }, frame),
            }
        }
        true
    }

    fn rank(&mut self, at: Time, what: u8, owner: usize, port: usize, frame: Frame) {
        self.frames.insert((at, what, owner, port, self.ranked), frame);
        self.ranked += 1;
    }

    /// Segment and port where `end` is plugged in.
    fn plug(&self, end: End) -> (usize, usize) {
        let places = self.config.segments.iter().enumerate();
        let mut found = places.filter_map(|(segment, it)| {
            Some((segment, it.ports.iter().position(|port| port.end == end)?))
        });
        found.next().expect("all is plugged in")
    }

    fn send(&mut self, now: Time, end: End, frame: Frame) {
        let (segment, port) = self.plug(end);
        self.segments[segment].handle_frame(now, port, frame);
        self.collect(segment);
    }

    fn collect(&mut self, segment: usize) {
        while let Some(output) = self.segments[segment].poll_output() {
            let (due, port, frame) = match output {
                Output::Deliver { due, port, frame } => (due, port, Some(frame)),
                Output::TxDone { due, port } => (due, port, None),
                Output::Record { .. } | Output::Note { .. } | Output::Train { .. } => continue,
            };
            match (self.config.segments[segment].ports[port].end, frame) {
                (End::Machine { machine, nic }, frame) => {
                    self.machines[machine].hear(Notice { machine, nic, due, frame });
                }
                (End::Device { device, port }, Some(frame)) => {
                    self.rank(due, DEVICE_RECEIVES, device, port, frame);
                }
                (End::Device { .. }, None) => {}
            }
        }
    }

    fn relay(&mut self, now: Time, device: usize, port: usize, frame: &Frame) {
        let address = |from: usize| <[u8; 6]>::try_from(&frame[from..from + 6]).expect("six");
        let (destination, source) = (address(0), address(6));
        let config = &self.config.devices[device];
        let (ports, latency) = (config.ports, config.bridge.forwarding_latency);
        let (ageing, places) = (config.bridge.ageing, config.bridge.mac_table_entries);
        let table = &mut self.tables[device];
        table.retain(|_, (_, seen)| now.since(*seen) < ageing);
        if table.contains_key(&source) || table.len() < places {
            let before = table.insert(source, (port, now));
            if before.is_some_and(|(before, _)| before != port) {
                self.note(now, device, port, source, now);
            }
            for other in (0..ports).filter(|&other| other != port) {
                self.note(now, device, other, source, now + ageing);
            }
        }
        let known = self.tables[device].get(&destination).map(|&(port, _)| port);
        let others = (0..ports).filter(|&other| other != port);
        for to in others.filter(|&to| known.is_none_or(|known| known == to)) {
            let at = Time::from_ns(now.as_ns_ceil()) + latency;
            self.rank(at, DEVICE_SENDS, device, to, frame.clone());
        }
    }

    fn note(&mut self, now: Time, device: usize, port: usize, address: [u8; 6], until: Time) {
        let (segment, port) = self.plug(End::Device { device, port });
        self.segments[segment].note_reachable(now, port, address, until);
        self.collect(segment);
    }
}
