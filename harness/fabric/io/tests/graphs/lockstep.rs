// SPDX-License-Identifier: Apache-2.0
//! Machines and the fabric by turns, each as far as the promises of the others let it: the rules of
//! `harness/clock/README.md`, in which a machine is idle between what it does.

use std::collections::BTreeMap;

use sundial_core::{Distances, Span, Time};
use sundial_io::{Bounds, Config, EPOCH_NS, Network, Notice};

use crate::machines::{Machine, Sent};
use crate::world::{END_NS, World, identity};

const NEVER: u64 = u64::MAX / 4;

struct Lockstep<'a> {
    world: &'a World,
    nics: Vec<usize>,
    network: Network,
    distances: Distances,
    machines: Vec<Machine>,
    /// By who sent it and its number.
    frames: BTreeMap<(usize, usize), Traced>,
    /// What the fabric promised last.
    bounds: Vec<Bounds>,
    /// The first frame of each machine that is not worked in: when it was handed in, or, once the fabric has it, when
    /// the adapter begins with it.
    floors: Vec<Option<Time>>,
    /// How far the models are ahead of the machines.
    ahead: Span,
}

/// A frame that was handed in.
struct Traced {
    /// Who caused it, and when: itself, and what it answers, and so on.
    origins: Vec<(usize, Time)>,
    /// The latest promise to each machine while it was inside, as far as frames that were handed in later allow.
    promised: Vec<Time>,
}

/// The notices of each machine.
pub fn run(world: &World, config: &Config) -> Vec<Vec<Notice>> {
    let network = Network::open(config, EPOCH_NS).expect("room");
    let distances = network.distances();
    let mut run = Lockstep {
        world,
        nics: config.machines.iter().map(|machine| machine.nics).collect(),
        bounds: network.bounds(&distances),
        floors: vec![None; config.machines.len()],
        ahead: network.least_adapter_latency(),
        network,
        distances,
        machines: Machine::all(world),
        frames: BTreeMap::new(),
    };
    let mut turns = world.turns.iter().cycle();
    loop {
        let ready = run.ready();
        if ready.is_empty() {
            break;
        }
        let turn = turns.next().expect("endless").index(ready.len());
        match ready[turn] {
            Turn::Machine(machine) => run.step(machine),
            Turn::Fabric { safe_ns } => run.work(safe_ns),
        }
    }
    assert!(run.is_over(), "no machine can go on");
    run.machines.into_iter().map(|machine| machine.heard).collect()
}

#[derive(Clone, Copy)]
enum Turn {
    Machine(usize),
    Fabric { safe_ns: u64 },
}

fn ns(time: Option<Time>, round: fn(Time) -> u64) -> u64 {
    time.map_or(NEVER, round)
}

impl Lockstep<'_> {
    fn own_ns(&self, machine: usize) -> u64 {
        self.machines[machine].next_ns(self.world).unwrap_or(NEVER)
    }

    fn bound_ns(&self, machine: usize) -> u64 {
        ns(self.bounds[machine].delivery, Time::as_ns_ceil)
    }

    fn floor_ns(&self, machine: usize) -> u64 {
        ns(self.floors[machine], Time::as_ns_floor)
    }

    fn horizon_ns(&self, machine: usize) -> u64 {
        let distance = |from| self.distances.between(from, machine).as_ns_floor();
        let others = (0..self.machines.len()).filter(|&other| other != machine);
        let source = |other| {
            self.own_ns(other).min(self.floor_ns(other)).min(self.bound_ns(other)) + distance(other)
        };
        let answered = self.floor_ns(machine) + distance(machine);
        others.map(source).chain([answered, self.bound_ns(machine)]).min().expect("some")
    }

    /// Who can go on.
    fn ready(&self) -> Vec<Turn> {
        let machines = 0..self.machines.len();
        let can_go = |&machine: &usize| {
            let own_ns = self.own_ns(machine);
            own_ns < END_NS && own_ns < self.horizon_ns(machine)
        };
        let mut ready: Vec<_> = machines.clone().filter(can_go).map(Turn::Machine).collect();
        let safe = |m| self.own_ns(m).min(self.bound_ns(m)).min(self.horizon_ns(m));
        let safe_ns = machines.map(safe).min().expect("there are machines").min(END_NS);
        let next = self.network.next_event().map(|next| next.back(self.ahead));
        let handed_in = self.floors.iter().copied().flatten().min();
        if ns(next, Time::as_ns_floor).min(ns(handed_in, Time::as_ns_floor)) < safe_ns {
            ready.push(Turn::Fabric { safe_ns });
        }
        ready
    }

    fn is_over(&self) -> bool {
        ns(self.network.next_event(), Time::as_ns_floor) >= END_NS
            && (0..self.machines.len()).all(|machine| self.own_ns(machine) >= END_NS)
    }

    fn step(&mut self, machine: usize) {
        let nics = self.nics[machine];
        let step = self.machines[machine].step(self.world, machine, nics);
        let Some(Sent { at, nic, frame, cause }) = step else { return };
        let mut origins = vec![(machine, at)];
        origins
            .extend(cause.iter().flat_map(|cause| self.frames[&identity(cause)].origins.clone()));
        let promised = vec![Time::ZERO; self.machines.len()];
        // What is inside may come earlier by this one: a frame that LAN emulation holds for an address leaves when the
        // address is heard of.
        for traced in self.frames.values_mut() {
            for (to, promised) in traced.promised.iter_mut().enumerate() {
                *promised = (*promised).min(at + self.distances.between(machine, to));
            }
        }
        self.frames.insert(identity(&frame), Traced { origins, promised });
        self.network.hand_in(at, machine, nic, frame);
        // The machine says so itself.
        let floor = &mut self.floors[machine];
        *floor = Some(floor.map_or(at, |floor| floor.min(at)));
    }

    fn work(&mut self, safe_ns: u64) {
        let safe = Time::from_ns(safe_ns) + self.ahead;
        while self.network.handle_next(safe).is_some() {
            while let Some(notice) = self.network.poll_notice() {
                self.check(&notice);
                self.machines[notice.machine].hear(notice);
            }
        }
        self.bounds = self.network.bounds(&self.distances);
        self.floors = self.network.bound_by_adapters(&self.distances, &mut self.bounds);
        for traced in self.frames.values_mut() {
            for (promised, bounds) in traced.promised.iter_mut().zip(&self.bounds) {
                *promised = (*promised).max(bounds.delivery.unwrap_or(Time::MAX));
            }
        }
    }

    fn check(&self, Notice { machine, due, frame, .. }: &Notice) {
        let Some(frame) = frame else { return };
        let traced = &self.frames[&identity(frame)];
        let promised = traced.promised[*machine];
        assert!(*due >= promised, "due at {due} at machine {machine}, promised {promised}");
        for &(origin, at) in &traced.origins {
            let least = at + self.distances.between(origin, *machine);
            assert!(
                *due >= least,
                "due at {due} from machine {origin} to {machine}, not before {least}"
            );
        }
    }
}
