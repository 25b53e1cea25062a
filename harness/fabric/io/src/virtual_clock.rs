// SPDX-License-Identifier: Apache-2.0
//! The driver of a run in virtual time: a member of the graph of promises, beside the machines.
//!
//! One round: take what the machines have handed in and publish what is known (under the lock), then work on everything
//! before the safe time, in order of (time, models first, machine, sequence). See `harness/clock/README.md`.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use sundial_core::{Frame, MAX_FRAME_BYTES, Output, Span, Time};

use crate::shm::{Aborted, NEVER, NICS, Promise, SharedRun};
use crate::{CaptureError, Config, ControlFrame, RunEnd, WhenFull, Wires};

/// A ring's slots hold more than the longest frame, so that a longer one is seen (cut off), refused and counted.
const SLOT_FRAME_BYTES: usize = MAX_FRAME_BYTES + 256;

/// Machines that no wire joins are kept this close in time all the same, so that the end is the end for all.
const UNCONNECTED: Span = Span::from_ns(100_000_000);

/// Why a virtual run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum VirtualError {
    /// Somebody else ended the run.
    #[error(transparent)]
    Aborted(#[from] Aborted),
    /// A capture could not be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The shared memory could not be made.
    #[error("cannot make the shared memory {}: {source}", path.display())]
    Shm {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// What the driver tells the world, and is told by it, between two rounds of work.
pub trait Observer {
    /// A machine said that its job is done.
    fn done(&mut self, machine: usize, status: u8, at: Time);
    /// Looks at `wires` if somebody wants to know; `true`: end the run now.
    fn look(&mut self, wires: &Wires, reached: Time) -> bool;
}

/// What the fabric holds for one machine between two rounds.
#[derive(Default)]
struct Machine {
    /// Outputs that did not fit into the ring, in order: (due, nic, frame or finished transmission).
    overflow: VecDeque<(u64, usize, Option<Frame>)>,
    pushed_ns: u64,
    pushed_done_ns: u64,
    taken: u64,
}

/// A run in virtual time.
pub struct VirtualRun {
    shm: SharedRun,
    wires: Wires,
    /// (machine, nic) of each segment's ports.
    stations: Vec<Vec<(usize, usize)>>,
    machines: Vec<Machine>,
    /// Frames taken and not worked in: (time, machine, sequence).
    pending: BTreeMap<(u64, usize, u64), (usize, Frame)>,
    frames: u64,
    run_end: RunEnd,
    end_ns: u64,
    reached_ns: u64,
}

enum Step {
    Work(u64),
    Sleep,
    Finished,
}

impl VirtualRun {
    /// Makes the shared memory of `config`. `spins`: pauses before a wait goes to sleep.
    pub fn new(config: &Config, wires: Wires, spins: u32) -> Result<Self, VirtualError> {
        let path = config.shm.clone().expect("checked: a virtual run has shm");
        let mut adapters: Vec<Vec<u32>> =
            config.machines.iter().map(|machine| vec![0; machine.nics]).collect();
        let mut stations = Vec::new();
        for segment in &config.segments {
            for port in &segment.ports {
                if segment.when_full == WhenFull::Stop {
                    adapters[port.machine][port.nic] = segment.ring_frames as u32;
                }
            }
            stations.push(segment.ports.iter().map(|port| (port.machine, port.nic)).collect());
        }
        let distances = distances(&wires, &stations, config.machines.len());
        let farthest = distances.iter().flatten().copied().max().unwrap_or(0);
        let mut shm = SharedRun::create(&path, config.machines.len(), SLOT_FRAME_BYTES, spins)
            .map_err(|source| VirtualError::Shm { path, source })?;
        shm.set_constants(&distances, &adapters);
        let machines = config
            .machines
            .iter()
            .map(|_| Machine { pushed_ns: NEVER, pushed_done_ns: NEVER, ..Machine::default() })
            .collect();
        // Nobody may have passed the end when it becomes known.
        let linger = config.linger.max(Span::from_ns(2 * farthest));
        Ok(Self {
            shm,
            wires,
            stations,
            machines,
            pending: BTreeMap::new(),
            frames: 0,
            run_end: RunEnd::new(&Config { linger, ..config.clone() }),
            end_ns: NEVER,
            reached_ns: 0,
        })
    }

    /// Runs until every machine has reached the end; returns the end.
    pub fn run(&mut self, observer: &mut impl Observer) -> Result<Time, VirtualError> {
        let mut asleep = false;
        loop {
            if observer.look(&self.wires, Time::from_ns(self.reached_ns)) {
                self.shm.abort();
                return Err(Aborted.into());
            }
            if asleep && !self.shm.nap()? {
                continue;
            }
            asleep = false;
            match self.publish()? {
                Step::Work(safe_ns) => self.work(safe_ns, observer)?,
                Step::Sleep => asleep = true,
                Step::Finished => {
                    self.work(NEVER, observer)?;
                    return Ok(Time::from_ns(self.end_ns));
                }
            }
        }
    }

    /// Ends the captures: at the end of the run, or where it had got to when it was cut short.
    pub fn finish(self) -> Result<Time, CaptureError> {
        let end = Time::from_ns(if self.end_ns == NEVER { self.reached_ns } else { self.end_ns });
        self.wires.finish(end)?;
        Ok(end)
    }

    /// Takes and publishes under the lock, and says what to do next.
    fn publish(&mut self) -> Result<Step, VirtualError> {
        let promises: Vec<Promise> = (0..self.machines.len()).map(|m| self.promise(m)).collect();
        let models_ns = self
            .wires
            .wires
            .iter()
            .filter_map(|wire| wire.model.poll_timeout())
            .min()
            .map_or(NEVER, |time| time.as_ns_floor());
        let overflowing = self.machines.iter().any(|machine| !machine.overflow.is_empty());
        for machine in &mut self.machines {
            machine.pushed_ns = NEVER;
            machine.pushed_done_ns = NEVER;
        }
        let Self { shm, pending, machines, frames, end_ns, .. } = self;
        let step = shm.locked(|shared| {
            let mut floor = vec![NEVER; machines.len()];
            for (m, machine) in machines.iter_mut().enumerate() {
                shared.take(m, |sent| {
                    pending.insert(
                        (sent.time_ns, m, machine.taken),
                        (sent.nic, Frame::new(sent.frame)),
                    );
                    machine.taken += 1;
                    *frames += 1;
                });
            }
            for &(time_ns, m, _) in pending.keys() {
                floor[m] = floor[m].min(time_ns);
            }
            for (m, mut promise) in promises.into_iter().enumerate() {
                promise.tx_floor_ns = floor[m];
                shared.promise(m, promise);
            }
            // What happens at or after the end does not happen.
            shared.set_next(if models_ns < *end_ns { models_ns } else { NEVER }, *frames);
            shared.set_end(*end_ns);
            if shared.all_finished() {
                return Step::Finished;
            }
            let safe_ns = shared.safe_ns();
            let work = shared.work_ns() < safe_ns || overflowing;
            shared.wait(!work);
            if work { Step::Work(safe_ns) } else { Step::Sleep }
        })?;
        Ok(step)
    }

    fn promise(&self, m: usize) -> Promise {
        let machine = &self.machines[m];
        let mut bound = NEVER;
        let mut done = NEVER;
        for nic in 0..NICS {
            let Some((segment, port)) = self.wires.plug(m, nic) else { continue };
            let model = &self.wires.wires[segment].model;
            bound = bound.min(model.earliest_delivery(port).map_or(NEVER, Time::as_ns_ceil));
            done = done.min(model.earliest_tx_done(port).map_or(NEVER, Time::as_ns_ceil));
        }
        for (due_ns, _, frame) in &machine.overflow {
            let earliest = if frame.is_some() { &mut bound } else { &mut done };
            *earliest = (*earliest).min(*due_ns);
        }
        Promise {
            bound_ns: bound,
            tx_done_bound_ns: done,
            pushed_ns: machine.pushed_ns,
            pushed_done_ns: machine.pushed_done_ns,
            tx_floor_ns: NEVER, // filled in once the rings are taken
        }
    }

    /// Works on everything before `safe_ns`.
    fn work(&mut self, safe_ns: u64, observer: &mut impl Observer) -> Result<(), VirtualError> {
        for m in 0..self.machines.len() {
            self.push_overflow(m);
        }
        loop {
            let limit = Time::from_ns(safe_ns.min(self.end_ns));
            let timeout = self
                .wires
                .wires
                .iter()
                .enumerate()
                .filter_map(|(index, wire)| wire.model.poll_timeout().map(|time| (time, index)))
                .min();
            let frame_time = self.pending.first_key_value().map(|(key, _)| Time::from_ns(key.0));
            match (timeout, frame_time) {
                (Some((time, segment)), frame)
                    if time < limit && frame.is_none_or(|frame| time <= frame) =>
                {
                    self.wires.wires[segment].model.handle_timeout(time);
                    self.collect(segment);
                }
                (_, Some(time)) if time < limit => {
                    let ((_, m, _), (nic, frame)) =
                        self.pending.pop_first().expect("looked at above");
                    self.hand_in(time, m, nic, frame, observer);
                }
                _ => break,
            }
        }
        // Frames that were handed in at or after the end are no part of the run.
        if safe_ns > self.end_ns {
            self.pending.clear();
        }
        self.reached_ns = safe_ns.min(self.end_ns);
        for wire in &mut self.wires.wires {
            wire.advance(Time::from_ns(self.reached_ns))?;
        }
        Ok(())
    }

    fn hand_in(
        &mut self,
        time: Time,
        m: usize,
        nic: usize,
        frame: Frame,
        observer: &mut impl Observer,
    ) {
        match (ControlFrame::parse(&frame), self.wires.plug(m, nic)) {
            (None, Some((segment, port))) => {
                self.wires.wires[segment].model.handle_frame(time, port, frame);
                self.collect(segment);
            }
            (Some(ControlFrame::Done { status }), _) => {
                observer.done(m, status, time);
                self.run_end.done(m, time);
                self.end_ns = self.run_end.at().map_or(NEVER, Time::as_ns_floor);
                self.finished_at_once(m, nic, time);
            }
            // Control frames for others, and an interface that is plugged in nowhere.
            _ => self.finished_at_once(m, nic, time),
        }
    }

    /// The adapter is through with a frame that no model has seen.
    fn finished_at_once(&mut self, m: usize, nic: usize, time: Time) {
        self.emit(m, time.as_ns_ceil(), nic, None);
    }

    /// Passes on what a segment has decided.
    fn collect(&mut self, segment: usize) {
        while let Some(output) = self.wires.wires[segment].poll_output() {
            let (port, due, frame) = match output {
                Output::Deliver { due, port, frame } => (port, due, Some(frame)),
                Output::TxDone { due, port } => (port, due, None),
                Output::Record { .. } => unreachable!("records go to the capture"),
            };
            let (m, nic) = self.stations[segment][port];
            self.emit(m, due.as_ns_ceil(), nic, frame);
        }
    }

    fn emit(&mut self, m: usize, due_ns: u64, nic: usize, frame: Option<Frame>) {
        self.machines[m].overflow.push_back((due_ns, nic, frame));
        self.push_overflow(m);
    }

    /// Moves what waits for machine `m` into its ring, as far as there is room.
    fn push_overflow(&mut self, m: usize) {
        let machine = &mut self.machines[m];
        while let Some((due_ns, nic, frame)) = machine.overflow.front() {
            let (pushed, earliest) = match frame {
                Some(frame) => (self.shm.deliver(m, *nic, *due_ns, frame), &mut machine.pushed_ns),
                None => (self.shm.tx_done(m, *nic, *due_ns), &mut machine.pushed_done_ns),
            };
            if !pushed {
                return;
            }
            *earliest = (*earliest).min(*due_ns);
            machine.overflow.pop_front();
        }
    }
}

/// Shortest sums of lookaheads from machine to machine, ns, at least one wire long (Floyd and Warshall).
fn distances(wires: &Wires, stations: &[Vec<(usize, usize)>], machines: usize) -> Vec<Vec<u64>> {
    let mut distance = vec![vec![NEVER; machines]; machines];
    for (wire, stations) in wires.wires.iter().zip(stations) {
        for (from, &(a, _)) in stations.iter().enumerate() {
            for (to, &(b, _)) in stations.iter().enumerate().filter(|&(to, _)| to != from) {
                let lookahead = wire.model.lookahead(from, to).as_ns_floor().clamp(1, NEVER);
                distance[a][b] = distance[a][b].min(lookahead);
            }
        }
    }
    for via in 0..machines {
        for from in 0..machines {
            for to in 0..machines {
                distance[from][to] =
                    distance[from][to].min(distance[from][via].saturating_add(distance[via][to]));
            }
        }
    }
    for row in &mut distance {
        for entry in row.iter_mut() {
            *entry = (*entry).min(UNCONNECTED.as_ns_floor());
        }
    }
    distance
}
