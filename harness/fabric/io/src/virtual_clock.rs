// SPDX-License-Identifier: Apache-2.0
//! The driver of a run in virtual time: a member of the graph of promises, beside the machines.
//!
//! One round: take what the machines have handed in and publish what is known (under the lock), then work on
//! everything before the safe time, in the scheduler's order. See `harness/clock/README.md`; with adapters that have a
//! latency, "Adapters" in `harness/fabric/README.md`.

use std::collections::VecDeque;
use std::path::PathBuf;

use sundial_core::{Distances, Frame, RunEnd, Span, Time};

use crate::shm::{Broken, NEVER, Promise, SharedRun};
use crate::{Bounds, CaptureError, Config, End, Handled, Network, Notice, OutOfTime, WhenFull};

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
        /// Its name; `None`: unknown.
        machine: Option<String>,
        /// What it did.
        what: String,
    },
    /// A capture could not be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A model cannot go on.
    #[error(transparent)]
    OutOfTime(OutOfTime),
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
    /// Every machine stands at `at`, and the captures are flushed.
    fn stands(&mut self, at: Time);
    /// May look at `network`, have a segment change from `reached` on, and move the instant at which the machines
    /// stand (`None`: they cannot); `true`: end the run now.
    fn look(&mut self, network: &mut Network, reached: Time, stop: Option<StopAt>) -> bool;
}

/// Where all machines of a run in virtual time stand.
pub struct StopAt<'a> {
    shm: &'a mut SharedRun,
    stop: &'a mut Stop,
}

struct Stop {
    at_ns: u64,
    /// All machines stand there, and the observer knows.
    reached: bool,
}

impl StopAt<'_> {
    /// To another instant, which holds when this returns; `None`: the run goes on to its end.
    pub fn move_to(&mut self, at_ns: Option<u64>) -> Result<(), &'static str> {
        let at_ns = at_ns.map_or(NEVER, |at_ns| at_ns.min(NEVER));
        if self.stop.reached && at_ns <= self.stop.at_ns {
            return Err("the machines stand at that instant, or after it");
        }
        let reached = self.stop.reached;
        let moved = self.shm.locked(|shared| {
            let may = reached || !shared.has_begun();
            if may {
                shared.set_stop(at_ns);
            }
            Ok(may)
        });
        match moved {
            Ok(true) => {
                *self.stop = Stop { at_ns, reached: false };
                Ok(())
            }
            Ok(false) => Err("the machines run: an instant is set before, or while they stand"),
            Err(_) => Err("the run has ended"),
        }
    }
}

/// What the fabric holds for one machine between two rounds.
#[derive(Default)]
struct Machine {
    /// Outputs that did not fit into the ring, in order: (due, nic, frame or finished transmission).
    overflow: VecDeque<(u64, usize, Option<Frame>)>,
    pushed_ns: u64,
    pushed_done_ns: u64,
}

impl Machine {
    /// What is known of it. `begins`: when an adapter begins with the first frame that is not worked in.
    fn promise(&self, bounds: Bounds, begins: Option<Time>) -> Promise {
        let mut bound_ns = bounds.delivery.map_or(NEVER, Time::as_ns_ceil);
        let mut done_ns = bounds.tx_done.map_or(NEVER, Time::as_ns_ceil);
        for (due_ns, _, frame) in &self.overflow {
            let earliest = if frame.is_some() { &mut bound_ns } else { &mut done_ns };
            *earliest = (*earliest).min(*due_ns);
        }
        Promise {
            bound_ns,
            tx_done_bound_ns: done_ns,
            pushed_ns: self.pushed_ns,
            pushed_done_ns: self.pushed_done_ns,
            tx_floor_ns: begins.map_or(NEVER, Time::as_ns_floor),
        }
    }
}

/// A run in virtual time.
pub struct VirtualRun {
    shm: SharedRun,
    network: Network,
    distances: Distances,
    names: Vec<String>,
    machines: Vec<Machine>,
    /// Taken so far.
    frames: u64,
    run_end: RunEnd,
    end_ns: u64,
    /// All that begins before this is worked in.
    reached_ns: u64,
    /// What is handed in from an instant on begins so much later at least: so far the models are ahead.
    ahead: Span,
    stop: Stop,
}

enum Round {
    /// On all that begins before this.
    Work(u64),
    /// Nothing begins before this.
    Sleep {
        before_ns: u64,
        all_stand: bool,
    },
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
                if let End::Machine { machine, nic } = port.end {
                    adapters[machine][nic] = port.ring_frames as u32;
                }
            }
        }
        let distances = network.distances();
        let ahead = network.least_adapter_latency();
        let nics: Vec<usize> = config.machines.iter().map(|machine| machine.nics).collect();
        let mut shm = SharedRun::create(&path, &nics, config.frame_buffer_bytes(), spins)
            .map_err(|source| VirtualError::Shm { path, source })?;
        shm.set_constants(&distances.as_ns(), &adapters);
        let machines = config
            .machines
            .iter()
            .map(|_| Machine { pushed_ns: NEVER, pushed_done_ns: NEVER, ..Machine::default() })
            .collect();
        let linger = config.linger.max(distances.least_linger());
        let run_end = RunEnd::new(config.done_machines.iter().copied(), linger, config.deadline);
        Ok(Self {
            shm,
            network,
            distances,
            names: config.machines.iter().map(|machine| machine.name.clone()).collect(),
            machines,
            frames: 0,
            end_ns: run_end.at().map_or(NEVER, Time::as_ns_floor),
            run_end,
            reached_ns: 0,
            ahead,
            stop: Stop { at_ns: NEVER, reached: false },
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
            if observer.look(
                &mut self.network,
                Time::from_ns(self.reached_ns),
                Some(StopAt { shm: &mut self.shm, stop: &mut self.stop }),
            ) {
                return Err(VirtualError::Aborted { by: None });
            }
            self.network.flush_when_due()?;
            if asleep {
                // Looks again after a while without a wake-up: a machine that should send it, or that keeps the
                // lock, may misbehave.
                self.shm.nap().map_err(|broken| self.named(broken))?;
            }
            asleep = false;
            match self.publish().map_err(|broken| self.named(broken))? {
                Round::Work(before_ns) => self.work(before_ns, observer)?,
                Round::Sleep { before_ns, all_stand } => {
                    // No event is due before it, but records may be: a live capture has them now.
                    self.work(before_ns, observer)?;
                    if all_stand && !self.stop.reached {
                        self.stop.reached = true;
                        self.network.flush()?;
                        observer.stands(Time::from_ns(self.stop.at_ns));
                    }
                    asleep = true;
                }
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

    /// The machines that have not been done in time.
    pub fn waiting(&self) -> Vec<usize> {
        self.run_end.waiting().collect()
    }

    /// Ends the captures: at the end of the run, or where it had got to when it was cut short.
    pub fn finish(self) -> Result<Time, CaptureError> {
        let end = Time::from_ns(self.reached_ns);
        self.network.finish(end)?;
        Ok(end)
    }

    /// Takes and publishes under the lock, and says what to do next.
    fn publish(&mut self) -> Result<Round, Broken> {
        let mut bounds = self.network.bounds(&self.distances);
        let overflowing = self.machines.iter().any(|machine| !machine.overflow.is_empty());
        let Self { shm, network, distances, machines, frames, end_ns, reached_ns, ahead, .. } =
            self;
        // Stamps are the machines' time, all else here is the models'.
        let earliest_ns = reached_ns.saturating_sub(ahead.as_ns_floor());
        shm.locked(|shared| {
            for m in 0..machines.len() {
                shared.take(m, earliest_ns, |sent| {
                    let at = Time::from_ns(sent.time_ns);
                    network.hand_in(at, m, sent.nic, Frame::new(sent.frame));
                    *frames += 1;
                })?;
            }
            let begins = network.bound_by_adapters(distances, &mut bounds);
            for (m, (bounds, begins)) in bounds.into_iter().zip(begins).enumerate() {
                shared.promise(m, machines[m].promise(bounds, begins));
                machines[m].pushed_ns = NEVER;
                machines[m].pushed_done_ns = NEVER;
            }
            // What happens at or after the end does not happen.
            let next = network.next_event().filter(|next| next.as_ns_floor() < *end_ns);
            let next_ns = next.map_or(NEVER, |next| next.back(*ahead).as_ns_floor());
            shared.set_next(next_ns, *frames);
            shared.set_end(*end_ns);
            if shared.all_finished() {
                return Ok(Round::Finished);
            }
            let safe_ns = shared.safe_ns();
            let work = shared.work_ns() < safe_ns || overflowing;
            shared.wait(!work);
            let before_ns = safe_ns.saturating_add(ahead.as_ns_floor()).min(NEVER);
            let all_stand = shared.all_stand();
            Ok(if work { Round::Work(before_ns) } else { Round::Sleep { before_ns, all_stand } })
        })
    }

    /// Works on everything before `before_ns`, as far as the models go.
    fn work(&mut self, before_ns: u64, observer: &mut impl Observer) -> Result<(), VirtualError> {
        let last = self.network.out_of_time();
        let last_ns = last.as_ref().map_or(NEVER, |last| last.after.as_ns_floor());
        let last_ns = last_ns.max(self.reached_ns);
        let work = self.work_until(before_ns.min(last_ns), observer);
        work.map_err(|broken| self.named(broken))?;
        for segment in &mut self.network.segments {
            segment.advance(Time::from_ns(self.reached_ns))?;
        }
        let ends = before_ns.min(self.end_ns) > last_ns;
        last.filter(|_| ends).map_or(Ok(()), |last| Err(VirtualError::OutOfTime(last)))
    }

    fn work_until(&mut self, before_ns: u64, observer: &mut impl Observer) -> Result<(), Broken> {
        for m in 0..self.machines.len() {
            self.push_overflow(m)?;
        }
        loop {
            // A frame may bring the end forward.
            let limit = Time::from_ns(before_ns.min(self.end_ns));
            let Some(Handled { at, done }) = self.network.handle_next(limit) else { break };
            if let Some((machine, status)) = done {
                observer.done(machine, status, at);
                self.run_end.done(machine, status, at);
                self.end_ns = self.run_end.at().map_or(NEVER, Time::as_ns_floor);
            }
            while let Some(notice) = self.network.poll_notice() {
                if let Err(broken) = self.emit(notice) {
                    // The captures end here.
                    self.reached_ns = at.as_ns_ceil();
                    return Err(broken);
                }
            }
        }
        // Frames that an adapter could begin with at or after the end are no part of the run.
        if before_ns > self.end_ns {
            self.network.clear();
        }
        self.reached_ns = before_ns.min(self.end_ns);
        Ok(())
    }

    fn emit(&mut self, Notice { machine, nic, due, frame }: Notice) -> Result<(), Broken> {
        self.machines[machine].overflow.push_back((due.as_ns_ceil(), nic, frame));
        self.push_overflow(machine)
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
