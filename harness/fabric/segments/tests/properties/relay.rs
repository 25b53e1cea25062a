// SPDX-License-Identifier: Apache-2.0
//! Nothing gets from one machine to another sooner than the distance between them says, even if the
//! machines between pass it on at once.

use std::collections::BTreeMap;

use crate::atm::atm;
use crate::common::{Model, frame, hub, link, number_of, switch};
use proptest::prelude::*;
use sundial_core::{Distances, Hop, Output, Place, Scheduler, Segment, Step, Time};

const MACHINES: usize = 5;
/// Enough for several relays after another; a flood must end.
const MOST_FRAMES: usize = 200;

/// A segment, and the machine at each of its ports.
type Plugged = (Model, Vec<usize>);

fn plugged() -> impl Strategy<Value = Plugged> {
    prop_oneof![link().boxed(), hub().boxed(), switch().boxed(), atm().boxed()].prop_flat_map(
        |model| {
            let machines = prop::collection::vec(0..MACHINES, model.ports());
            (Just(model), machines)
        },
    )
}

struct Run {
    segments: Vec<Box<dyn Segment>>,
    /// `(segment, port)` by machine and nic.
    plugs: Vec<Vec<(usize, usize)>>,
    /// The machine at each port of each segment.
    machines: Vec<Vec<usize>>,
    distances: Distances,
    scheduler: Scheduler,
    /// By number of the frame: which machines handed it, or what it was made from, in, and when.
    origins: Vec<Vec<(usize, Time)>>,
}

impl Run {
    fn new(network: &[Plugged]) -> Self {
        let segments: Vec<_> = network.iter().map(|(model, _)| model.build(1)).collect();
        let mut plugs = vec![Vec::new(); MACHINES];
        let mut hops = Vec::new();
        for (index, (segment, (_, machines))) in segments.iter().zip(network).enumerate() {
            for (port, &from) in machines.iter().enumerate() {
                plugs[from].push((index, port));
                for (other, &to) in machines.iter().enumerate().filter(|(other, _)| *other != port)
                {
                    hops.push(Hop { from, to, lookahead: segment.lookahead(port, other) });
                }
            }
        }
        Self {
            segments,
            plugs,
            machines: network.iter().map(|(_, machines)| machines.clone()).collect(),
            distances: Distances::new(MACHINES, 0, hops),
            scheduler: Scheduler::new(),
            origins: Vec::new(),
        }
    }

    /// `machine` sends a frame to all on one of its interfaces.
    fn hand_in(
        &mut self,
        at: Time,
        machine: usize,
        choice: usize,
        mut origins: Vec<(usize, Time)>,
    ) {
        if self.plugs[machine].is_empty() || self.origins.len() == MOST_FRAMES {
            return;
        }
        let number = self.origins.len();
        origins.push((machine, at));
        self.origins.push(origins);
        let nic = choice % self.plugs[machine].len();
        let place = Place::Machine { machine, nic };
        self.scheduler.hand_in(at, place, frame(number, machine as u8, 255, 60));
    }

    fn run(&mut self) {
        let mut now = Time::ZERO;
        loop {
            let timeouts = self.segments.iter().map(|segment| segment.poll_timeout());
            let Some((at, step)) = self.scheduler.pop(timeouts, Time::MAX) else { return };
            assert!(at >= now, "{at} after {now}");
            now = at;
            let segment = match step {
                Step::Timeout { segment } => {
                    self.segments[segment].handle_timeout(at);
                    segment
                }
                Step::Frame { place: Place::Machine { machine, nic }, frame } => {
                    let (segment, port) = self.plugs[machine][nic];
                    self.segments[segment].handle_frame(at, port, frame);
                    segment
                }
                Step::Frame { place, .. } => unreachable!("{place:?}: there is no device"),
            };
            while let Some(output) = self.segments[segment].poll_output() {
                if let Output::Deliver { due, port, frame } = output {
                    self.deliver(due, self.machines[segment][port], number_of(&frame));
                }
            }
        }
    }

    fn deliver(&mut self, due: Time, machine: usize, number: usize) {
        let origins = self.origins[number].clone();
        for &(origin, at) in &origins {
            let least = at + self.distances.between(origin, machine);
            assert!(
                due >= least,
                "at {due} from machine {origin} to {machine}, not before {least}"
            );
        }
        self.hand_in(due, machine, number, origins);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_faster_than_the_distance(
        network in prop::collection::vec(plugged(), 1..5),
        inputs in prop::collection::btree_map((0_u64..100_000_000, 0..MACHINES), 0_usize..8, 1..10),
    ) {
        let mut run = Run::new(&network);
        let inputs: BTreeMap<(u64, usize), usize> = inputs;
        for ((ps, machine), choice) in inputs {
            run.hand_in(Time::from_ps(ps), machine, choice, Vec::new());
        }
        run.run();
    }
}
