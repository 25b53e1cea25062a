// SPDX-License-Identifier: Apache-2.0
//! The same network, worked on one event after the other by somebody who knows all of them.

use std::collections::BTreeMap;

use sundial_core::{Frame, Output, Segment, Span, Time};
use sundial_io::{Config, End, Notice};

use crate::machines::Machine;
use crate::world::World;

/// The law of order: time, then what it is, then whose it is and where, then which was first.
type Rank = (Time, u8, usize, usize, usize);

const DEVICE_RECEIVES: u8 = 1;
const DEVICE_SENDS: u8 = 2;
const MACHINE_SENDS: u8 = 3;

struct Reference {
    config: Config,
    segments: Vec<Box<dyn Segment>>,
    bridges: Vec<Bridge>,
    machines: Vec<Machine>,
    frames: BTreeMap<Rank, Frame>,
    ranked: usize,
}

/// Port and time of the latest sight of each address.
#[derive(Default)]
struct Bridge(BTreeMap<[u8; 6], (usize, Time)>);

/// What every machine is told.
pub fn run(world: &World, config: Config) -> Vec<Vec<Notice>> {
    let segments = config.segments.iter().map(|segment| segment.build(config.seed)).collect();
    let bridges = config.devices.iter().map(|_| Bridge::default()).collect();
    let machines = Machine::all(world);
    let frames = BTreeMap::new();
    let mut reference = Reference { config, segments, bridges, machines, frames, ranked: 0 };
    while reference.step(world) {}
    reference.machines.into_iter().map(|machine| machine.heard).collect()
}

impl Reference {
    /// Works on the next event; `false`: there is none.
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
        let Some(now) = first.into_iter().flatten().min() else { return false };
        // A machine says what it does at an instant before anything happens there.
        if let Some((_, machine)) = act.filter(|&(at, _)| at == now) {
            let nics = self.config.machines[machine].nics;
            if let Some(sent) = self.machines[machine].step(world, machine, nics) {
                self.rank(now, MACHINE_SENDS, machine, sent.nic, sent.frame);
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
                Output::Record { .. } | Output::Train { .. } => continue,
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
        let config = &self.config.devices[device];
        let (ageing, places) = (config.bridge.ageing, config.bridge.mac_table_entries);
        let known = self.bridges[device].look_up(now, port, frame, ageing, places);
        let others = (0..config.ports).filter(|&other| other != port);
        let to: Vec<usize> = others.filter(|&to| known.is_none_or(|known| known == to)).collect();
        let latency = config.bridge.forwarding_latency;
        for to in to {
            let at = Time::from_ns(now.as_ns_ceil()) + latency;
            self.rank(at, DEVICE_SENDS, device, to, frame.clone());
        }
    }
}

impl Bridge {
    fn look_up(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        ageing: Span,
        places: usize,
    ) -> Option<usize> {
        let address = |from: usize| <[u8; 6]>::try_from(&frame[from..from + 6]).expect("six");
        self.0.retain(|_, (_, seen)| now.since(*seen) < ageing);
        if self.0.contains_key(&address(6)) || self.0.len() < places {
            self.0.insert(address(6), (port, now));
        }
        self.0.get(&address(0)).map(|&(port, _)| port)
    }
}
