// SPDX-License-Identifier: Apache-2.0
//! The driver of a run in virtual time: a member of the graph of promises, beside the machines.
//!
//! One round: take what the machines have handed in and publish what is known (under the lock), then work on
//! everything before the safe time, in the scheduler's order. See `harness/clock/README.md`.

use std::collections::VecDeque;
use std::path::PathBuf;

use sundial_core::{Distances, Frame, Output, RunEnd, Scheduler, Step, Time};
use sundial_wire::control::ControlFrame;

use crate::shm::{Broken, NEVER, NICS, Promise, SharedRun};
use crate::{CaptureError, Config, FRAME_BUFFER_BYTES, Network, WhenFull};

/// Why a virtual run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum VirtualError {
    /// The run was ended for all.
    #[error("{}", whose(by.as_ref(), "QEMU ended the run"))]
    Aborted {
        /// The machine that did; `None`: this process.
        by: Option<String>,
    },
    /// A machine broke the rules of the shared memory, or keeps all others from it.
    #[error("{}", whose(machine.as_ref(), what))]
    Offence {
        /// Its name; `None`: it cannot be told.
        machine: Option<String>,
        /// What it did.
        what: String,
    },
    /// A capture could not be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The shared memory could not be made.
    #[error("cannot make the shared memory {}", path.display())]
    Shm {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

fn whose(machine: Option<&String>, what: &str) -> String {
    machine.map_or_else(|| what.to_owned(), |name| format!("{name}: {what}"))
}

/// What a driver reports to, and asks, between two rounds of work.
pub trait Observer {
    /// A machine said that its job is done.
    fn done(&mut self, machine: usize, status: u8, at: Time);
    /// May look at `network`; `true`: end the run now.
    fn look(&mut self, network: &Network, reached: Time) -> bool;
}

/// What the fabric holds for one machine between two rounds.
#[derive(Default)]
struct Machine {
    /// Outputs that did not fit into the ring, in order: (due, nic, frame or finished transmission).
    overflow: VecDeque<(u64, usize, Option<Frame>)>,
    pushed_ns: u64,
    pushed_done_ns: u64,
}

/// A run in virtual time.
pub struct VirtualRun {
    shm: SharedRun,
    network: Network,
    names: Vec<String>,
    machines: Vec<Machine>,
    scheduler: Scheduler,
    /// Taken so far.
    frames: u64,
    run_end: RunEnd,
    end_ns: u64,
    reached_ns: u64,
}

enum Round {
    Work(u64),
    Sleep,
    Finished,
}

impl VirtualRun {
    /// Makes the shared memory of `config`. `spins`: pauses before a wait goes to sleep.
    pub fn new(config: &Config, network: Network, spins: u32) -> Result<Self, VirtualError> {
        let path = config.shm.clone().expect("checked: a virtual run has shm");
        let mut adapters: Vec<Vec<u32>> =
            config.machines.iter().map(|machine| vec![0; machine.nics]).collect();
        for segment in config.segments.iter().filter(|s| s.when_full == WhenFull::Stop) {
            for port in &segment.ports {
                adapters[port.machine][port.nic] = segment.ring_frames as u32;
            }
        }
        let distances = Distances::new(config.machines.len(), network.hops());
        let nics: Vec<usize> = config.machines.iter().map(|machine| machine.nics).collect();
        let mut shm = SharedRun::create(&path, &nics, FRAME_BUFFER_BYTES, spins)
            .map_err(|source| VirtualError::Shm { path, source })?;
        shm.set_constants(&distances.as_ns(), &adapters);
        let machines = config
            .machines
            .iter()
            .map(|_| Machine { pushed_ns: NEVER, pushed_done_ns: NEVER, ..Machine::default() })
            .collect();
        let linger = config.linger.max(distances.least_linger());
        Ok(Self {
            shm,
            network,
            names: config.machines.iter().map(|machine| machine.name.clone()).collect(),
            machines,
            scheduler: Scheduler::new(),
            frames: 0,
            run_end: RunEnd::new(config.done_machines.iter().copied(), linger),
            end_ns: NEVER,
            reached_ns: 0,
        })
    }

    /// Runs until every machine has reached the end; returns the end. After an error the run has ended for every
    /// machine, too.
    pub fn run(&mut self, observer: &mut impl Observer) -> Result<Time, VirtualError> {
        let outcome = self.rounds(observer);
        if outcome.is_err() {
            self.shm.abort();
        }
        outcome
    }

    fn rounds(&mut self, observer: &mut impl Observer) -> Result<Time, VirtualError> {
        let mut asleep = false;
        loop {
            if observer.look(&self.network, Time::from_ns(self.reached_ns)) {
                return Err(VirtualError::Aborted { by: None });
            }
            self.network.flush_when_due()?;
            if asleep {
                // Looks again after a while though nobody let it go: who does that, or keeps the lock, may
                // not do what it should.
                self.shm.nap().map_err(|broken| self.named(broken))?;
            }
            asleep = false;
            match self.publish().map_err(|broken| self.named(broken))? {
                Round::Work(safe_ns) => self.work(safe_ns, observer)?,
                Round::Sleep => asleep = true,
                Round::Finished => {
                    self.work(NEVER, observer)?;
                    return Ok(Time::from_ns(self.end_ns));
                }
            }
        }
    }

    /// The same with names instead of numbers.
    fn named(&self, broken: Broken) -> VirtualError {
        let name = |machine: usize| self.names[machine].clone();
        let what = broken.to_string();
        match broken {
            Broken::Aborted { by } => VirtualError::Aborted { by: by.map(name) },
            Broken::Offence { machine, .. } => {
                VirtualError::Offence { machine: Some(name(machine)), what }
            }
            Broken::Locked { machine } => {
                VirtualError::Offence { machine: machine.map(name), what }
            }
        }
    }

    /// Ends the captures: at the end of the run, or where it had got to when it was cut short.
    pub fn finish(self) -> Result<Time, CaptureError> {
        let end = Time::from_ns(if self.end_ns == NEVER { self.reached_ns } else { self.end_ns });
        self.network.finish(end)?;
        Ok(end)
    }

    /// Takes and publishes under the lock, and says what to do next.
    fn publish(&mut self) -> Result<Round, Broken> {
        let promises: Vec<Promise> = (0..self.machines.len()).map(|m| self.promise(m)).collect();
        let models_ns = self.network.timeouts().flatten().min().map_or(NEVER, Time::as_ns_floor);
        let overflowing = self.machines.iter().any(|machine| !machine.overflow.is_empty());
        for machine in &mut self.machines {
            machine.pushed_ns = NEVER;
            machine.pushed_done_ns = NEVER;
        }
        let Self { shm, scheduler, machines, frames, end_ns, reached_ns, .. } = self;
        shm.locked(|shared| {
            for m in 0..machines.len() {
                shared.take(m, *reached_ns, |sent| {
                    let at = Time::from_ns(sent.time_ns);
                    scheduler.hand_in(at, m, sent.nic, Frame::new(sent.frame));
                    *frames += 1;
                })?;
            }
            let floors = scheduler.earliest_by_machine(machines.len());
            for (m, (mut promise, floor)) in promises.into_iter().zip(floors).enumerate() {
                promise.tx_floor_ns = floor.map_or(NEVER, Time::as_ns_floor);
                shared.promise(m, promise);
            }
            // What happens at or after the end does not happen.
            shared.set_next(if models_ns < *end_ns { models_ns } else { NEVER }, *frames);
            shared.set_end(*end_ns);
            if shared.all_finished() {
                return Ok(Round::Finished);
            }
            let safe_ns = shared.safe_ns();
            let work = shared.work_ns() < safe_ns || overflowing;
            shared.wait(!work);
            Ok(if work { Round::Work(safe_ns) } else { Round::Sleep })
        })
    }

    fn promise(&self, m: usize) -> Promise {
        let machine = &self.machines[m];
        let mut bound = NEVER;
        let mut done = NEVER;
        for nic in 0..NICS {
            let Some((segment, port)) = self.network.plug(m, nic) else { continue };
            let model = &self.network.segments[segment].model;
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
        self.work_until(safe_ns, observer).map_err(|broken| self.named(broken))?;
        for segment in &mut self.network.segments {
            segment.advance(Time::from_ns(self.reached_ns))?;
        }
        Ok(())
    }

    fn work_until(&mut self, safe_ns: u64, observer: &mut impl Observer) -> Result<(), Broken> {
        for m in 0..self.machines.len() {
            self.push_overflow(m)?;
        }
        loop {
            // A frame may bring the end forward.
            let limit = Time::from_ns(safe_ns.min(self.end_ns));
            let Some((at, step)) = self.scheduler.pop(self.network.timeouts(), limit) else {
                break;
            };
            let done = match step {
                Step::Timeout { segment } => {
                    self.network.segments[segment].model.handle_timeout(at);
                    self.collect(segment)
                }
                Step::Frame { machine, nic, frame } => {
                    self.hand_in(at, machine, nic, frame, observer)
                }
            };
            if done.is_err() {
                // The captures end here.
                self.reached_ns = at.as_ns_ceil();
                return done;
            }
        }
        // Frames that were handed in at or after the end are no part of the run.
        if safe_ns > self.end_ns {
            self.scheduler.clear();
        }
        self.reached_ns = safe_ns.min(self.end_ns);
        Ok(())
    }

    fn hand_in(
        &mut self,
        time: Time,
        m: usize,
        nic: usize,
        frame: Frame,
        observer: &mut impl Observer,
    ) -> Result<(), Broken> {
        match (ControlFrame::parse(&frame), self.network.plug(m, nic)) {
            (None, Some((segment, port))) => {
                self.network.segments[segment].model.handle_frame(time, port, frame);
                self.collect(segment)
            }
            (Some(ControlFrame::Done { status }), _) => {
                observer.done(m, status, time);
                self.run_end.done(m, time);
                self.end_ns = self.run_end.at().map_or(NEVER, Time::as_ns_floor);
                self.finished_at_once(m, nic, time)
            }
            // Control frames for others, and an interface that is plugged in nowhere.
            _ => self.finished_at_once(m, nic, time),
        }
    }

    /// The adapter is through with a frame that goes to no model.
    fn finished_at_once(&mut self, m: usize, nic: usize, time: Time) -> Result<(), Broken> {
        self.emit(m, time.as_ns_ceil(), nic, None)
    }

    /// Passes on what a segment has decided.
    fn collect(&mut self, segment: usize) -> Result<(), Broken> {
        while let Some(output) = self.network.segments[segment].poll_output() {
            let (port, due, frame) = match output {
                Output::Deliver { due, port, frame } => (port, due, Some(frame)),
                Output::TxDone { due, port } => (port, due, None),
                Output::Record { .. } | Output::Train { .. } => {
                    unreachable!("records go to the captures")
                }
            };
            let plug = &self.network.segments[segment].config.ports[port];
            self.emit(plug.machine, due.as_ns_ceil(), plug.nic, frame)?;
        }
        Ok(())
    }

    fn emit(
        &mut self,
        m: usize,
        due_ns: u64,
        nic: usize,
        frame: Option<Frame>,
    ) -> Result<(), Broken> {
        self.machines[m].overflow.push_back((due_ns, nic, frame));
        self.push_overflow(m)
    }

    /// Moves what waits for machine `m` into its ring, as far as there is room.
    fn push_overflow(&mut self, m: usize) -> Result<(), Broken> {
        let machine = &mut self.machines[m];
        while let Some((due_ns, nic, frame)) = machine.overflow.front() {
            let (pushed, earliest) = match frame {
                Some(frame) => (self.shm.deliver(m, *nic, *due_ns, frame)?, &mut machine.pushed_ns),
                None => (self.shm.tx_done(m, *nic, *due_ns)?, &mut machine.pushed_done_ns),
            };
            if !pushed {
                return Ok(());
            }
            *earliest = (*earliest).min(*due_ns);
            machine.overflow.pop_front();
        }
        Ok(())
    }
}
