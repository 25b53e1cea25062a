// SPDX-License-Identifier: Apache-2.0
//! The driver of a run in virtual time: a member of the graph of promises, beside the machines.
//!
//! One round: take what the machines have handed in and publish what is known (under the lock), then work on everything
//! before the safe time, in order of (time, models first, machine, sequence). See `harness/clock/README.md`.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use sundial_core::{Frame, MAX_FRAME_BYTES, Output, Segment, Span, Time};

use crate::capture::{Capture, CaptureError};
use crate::config::{Config, ConfigError, WhenFull};
use crate::control_frame::{Control, parse_control};
use crate::shm::{Aborted, NEVER, Promise, SharedRun};

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
    #[error("cannot make the shared memory {path}: {source}")]
    Shm {
        /// Its path.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The linger is too short for the wires.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// What a driver tells the world while it runs.
pub trait Observer {
    /// A machine said that its job is done.
    fn done(&mut self, machine: usize, status: u8, at: Time);
    /// Called now and then between two pieces of work; `true`: end the run now.
    fn stop(&mut self, segments: &[Attached]) -> bool;
}

/// A segment, what is plugged into it, and its capture.
pub struct Attached {
    /// The wire model.
    pub model: Box<dyn Segment + Send>,
    /// (machine, nic) of each port.
    pub stations: Vec<(usize, usize)>,
    capture: Capture,
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
    segments: Vec<Attached>,
    /// (segment, port) of each machine's interfaces.
    plugs: Vec<Vec<Option<(usize, usize)>>>,
    machines: Vec<Machine>,
    /// Frames taken and not worked in: (time, machine, sequence).
    pending: BTreeMap<(u64, usize, u64), (usize, Frame)>,
    frames: u64,
    waiting_for: Vec<bool>,
    linger_ns: u64,
    end_ns: u64,
}

enum Step {
    Work(u64),
    Sleep,
    Finished,
}

impl VirtualRun {
    /// Makes the shared memory, the models and the captures. `spins`: pauses before a wait goes to sleep.
    pub fn new(config: &Config, shm_path: &Path, epoch_ns: u64, spins: u32) -> Result<Self, VirtualError> {
        let mut plugs: Vec<Vec<Option<(usize, usize)>>> =
            config.machines.iter().map(|machine| vec![None; machine.nics]).collect();
        let mut adapters: Vec<Vec<u32>> = config.machines.iter().map(|machine| vec![0; machine.nics]).collect();
        let mut segments = Vec::new();
        for (index, segment) in config.segments.iter().enumerate() {
            let mut stations = Vec::new();
            for (port, plug) in segment.ports.iter().enumerate() {
                plugs[plug.machine][plug.nic] = Some((index, port));
                stations.push((plug.machine, plug.nic));
                if segment.when_full == WhenFull::Stop {
                    adapters[plug.machine][plug.nic] = segment.ring_frames as u32;
                }
            }
            let capture = Capture::create(&config.capture_dir, segment, epoch_ns)?;
            segments.push(Attached { model: segment.build(config.seed), stations, capture });
        }
        let distances = distances(&segments, config.machines.len());
        let farthest = distances.iter().flatten().copied().max().unwrap_or(0);
        let mut waiting_for = vec![false; config.machines.len()];
        for &machine in &config.done_machines {
            waiting_for[machine] = true;
        }
        let mut shm = SharedRun::create(shm_path, config.machines.len(), SLOT_FRAME_BYTES, spins)
            .map_err(|source| VirtualError::Shm { path: shm_path.display().to_string(), source })?;
        shm.set_constants(&distances, &adapters);
        Ok(Self {
            shm,
            segments,
            plugs,
            machines: config
                .machines
                .iter()
                .map(|_| Machine { pushed_ns: NEVER, pushed_done_ns: NEVER, ..Machine::default() })
                .collect(),
            pending: BTreeMap::new(),
            frames: 0,
            waiting_for,
            // Nobody may have passed the end when it becomes known.
            linger_ns: config.linger.as_ns_floor().max(2 * farthest),
            end_ns: NEVER,
        })
    }

    /// Runs until every machine has reached the end; returns the end in ns since zero.
    pub fn run(&mut self, observer: &mut impl Observer) -> Result<u64, VirtualError> {
        loop {
            if observer.stop(&self.segments) {
                self.shm.abort();
                return Err(Aborted.into());
            }
            match self.publish()? {
                Step::Work(safe_ns) => self.work(safe_ns, observer)?,
                Step::Sleep => self.shm.sleep()?,
                Step::Finished => {
                    self.work(NEVER, observer)?;
                    return Ok(self.end_ns);
                }
            }
        }
    }

    /// Ends the captures at `end_ns`.
    pub fn finish(self, end_ns: u64) -> Result<Vec<Attached>, VirtualError> {
        let mut closed = Vec::new();
        for mut segment in self.segments {
            segment.capture.close(Time::from_ns(end_ns))?;
            closed.push(segment);
        }
        Ok(closed)
    }

    /// Takes and publishes under the lock, and says what to do next.
    fn publish(&mut self) -> Result<Step, VirtualError> {
        let promises: Vec<Promise> = (0..self.machines.len()).map(|m| self.promise(m)).collect();
        let models_ns = self
            .segments
            .iter()
            .filter_map(|segment| segment.model.poll_timeout())
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
                    pending.insert((sent.time_ns, m, machine.taken), (sent.nic, Frame::new(sent.frame)));
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
        for &(segment, port) in self.plugs[m].iter().flatten() {
            let model = &self.segments[segment].model;
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
                .segments
                .iter()
                .enumerate()
                .filter_map(|(index, segment)| segment.model.poll_timeout().map(|time| (time, index)))
                .min();
            let frame_time = self.pending.first_key_value().map(|(key, _)| Time::from_ns(key.0));
            match (timeout, frame_time) {
                (Some((time, segment)), frame) if time < limit && frame.is_none_or(|frame| time <= frame) => {
                    self.segments[segment].model.handle_timeout(time);
                    self.collect(segment);
                }
                (_, Some(time)) if time < limit => {
                    let ((_, m, _), (nic, frame)) = self.pending.pop_first().expect("looked at above");
                    self.hand_in(time, m, nic, frame, observer);
                }
                _ => break,
            }
        }
        // Frames that were handed in at or after the end are no part of the run.
        if safe_ns > self.end_ns {
            self.pending.clear();
        }
        let reached = Time::from_ns(safe_ns.min(self.end_ns));
        for segment in &mut self.segments {
            segment.capture.advance(reached)?;
        }
        Ok(())
    }

    fn hand_in(&mut self, time: Time, m: usize, nic: usize, frame: Frame, observer: &mut impl Observer) {
        let segment = self.plugs[m][nic];
        match parse_control(&frame) {
            Some(Control::Done { status }) => {
                observer.done(m, status, time);
                self.waiting_for[m] = false;
                if self.end_ns == NEVER && self.waiting_for.iter().all(|waiting| !waiting) {
                    self.end_ns = time.as_ns_floor() + self.linger_ns;
                }
                self.finished_at_once(m, nic, time);
            }
            Some(Control::Other) => self.finished_at_once(m, nic, time),
            None => match segment {
                Some((segment, port)) => {
                    self.segments[segment].model.handle_frame(time, port, frame);
                    self.collect(segment);
                }
                None => self.finished_at_once(m, nic, time), // an interface that is plugged in nowhere
            },
        }
    }

    /// The adapter is through with a frame that no model has seen.
    fn finished_at_once(&mut self, m: usize, nic: usize, time: Time) {
        self.emit(m, time.as_ns_ceil(), nic, None);
    }

    /// Passes on what a segment has decided.
    fn collect(&mut self, index: usize) {
        while let Some(output) = self.segments[index].model.poll_output() {
            match output {
                Output::Deliver { due, port, frame } => {
                    let (m, nic) = self.segments[index].stations[port];
                    self.emit(m, due.as_ns_ceil(), nic, Some(frame));
                }
                Output::TxDone { due, port } => {
                    let (m, nic) = self.segments[index].stations[port];
                    self.emit(m, due.as_ns_ceil(), nic, None);
                }
                Output::Record { at, interface, direction, frame, comment } => {
                    self.segments[index].capture.record(at, interface, direction, frame, comment);
                }
            }
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
fn distances(segments: &[Attached], machines: usize) -> Vec<Vec<u64>> {
    let mut distance = vec![vec![NEVER; machines]; machines];
    for segment in segments {
        for (from, &(a, _)) in segment.stations.iter().enumerate() {
            for (to, &(b, _)) in segment.stations.iter().enumerate() {
                if from != to {
                    let lookahead = segment.model.lookahead(from, to).as_ns_floor().clamp(1, NEVER);
                    distance[a][b] = distance[a][b].min(lookahead);
                }
            }
        }
    }
    for via in 0..machines {
        for from in 0..machines {
            for to in 0..machines {
                distance[from][to] = distance[from][to].min(distance[from][via].saturating_add(distance[via][to]));
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
