// SPDX-License-Identifier: Apache-2.0
//! One run from its configuration to its last file, on either clock.

use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use sundial_core::Time;

use crate::commands::{Commands, Request};
use crate::real_clock::{RealError, RealRun};
use crate::virtual_clock::{Observer, StopAt, VirtualError, VirtualRun};
use crate::{CaptureError, Clock, Config, EPOCH_NS, Event, Network};

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file of the capture could not be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The control socket or the signals could not be set up.
    #[error("cannot listen on {}", path.display())]
    Control {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// In virtual time.
    #[error(transparent)]
    Virtual(VirtualError),
    /// In real time.
    #[error(transparent)]
    Real(RealError),
}

impl From<VirtualError> for RunError {
    fn from(error: VirtualError) -> Self {
        match error {
            VirtualError::Capture(error) => Self::Capture(error),
            error => Self::Virtual(error),
        }
    }
}

impl From<RealError> for RunError {
    fn from(error: RealError) -> Self {
        match error {
            RealError::Capture(error) => Self::Capture(error),
            error => Self::Real(error),
        }
    }
}

/// Carries the frames of `config` until the run ends. `spins`: how long the virtual clock's waits spin
/// before they sleep.
pub fn run(config: &Config, spins: u32) -> Result<(), RunError> {
    let (end, late) = match config.clock {
        Clock::Virtual => run_virtual(config, spins)?,
        Clock::Real => run_real(config)?,
    };
    let late = late.into_iter().map(|machine| config.machines[machine].name.as_str()).collect();
    report(&Event::Finished { virtual_ns: end.as_ns_ceil(), late });
    Ok(())
}

/// Has this process asked to stop (SIGTERM) when the thread that started it has died, so that no
/// fabric outlives its harness.
pub fn die_with_parent() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    Ok(())
}

/// The run's end, and the machines that were not done at its deadline.
type Ended = (Time, Vec<usize>);

fn run_virtual(config: &Config, spins: u32) -> Result<Ended, RunError> {
    let network = Network::open(config, EPOCH_NS)?;
    let mut run = VirtualRun::new(config, network, spins)?;
    let mut attendant = Attendant::open(config, || {})?;
    report(&Event::Listening);
    let outcome = run.run(&mut attendant);
    let late = run.waiting();
    // What was recorded before a fault is worth keeping.
    let end = run.finish()?;
    match outcome {
        Ok(end) => Ok((end, late)),
        Err(VirtualError::Aborted { .. }) if attendant.stopped => Ok((end, vec![])),
        Err(error) => Err(error.into()),
    }
}

fn run_real(config: &Config) -> Result<Ended, RunError> {
    let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch_ns = u64::try_from(epoch.as_nanos()).unwrap_or(u64::MAX);
    let network = Network::open(config, epoch_ns)?;
    let mut run = RealRun::new(config, network)?;
    let mut attendant = Attendant::open(config, run.waker())?;
    report(&Event::Listening);
    let outcome = run.run(&mut attendant);
    let end = outcome.as_ref().copied().unwrap_or(run.now());
    let late = if attendant.stopped { vec![] } else { run.waiting() };
    run.finish(end)?;
    Ok((outcome?, late))
}

/// Answers requests and reports events while a run is on.
struct Attendant<'a> {
    config: &'a Config,
    commands: Commands,
    stopped: bool,
}

impl<'a> Attendant<'a> {
    fn open(config: &'a Config, wake: impl Fn() + Send + Sync + 'static) -> Result<Self, RunError> {
        let commands = Commands::listen(config.control.as_deref(), wake).map_err(|source| {
            let path = config.control.clone().unwrap_or_default();
            RunError::Control { path, source }
        })?;
        Ok(Self { config, commands, stopped: false })
    }
}

impl Observer for Attendant<'_> {
    fn done(&mut self, machine: usize, status: u8, at: Time) {
        let machine = &self.config.machines[machine].name;
        report(&Event::Done { machine, status, at_ns: at.as_ns_ceil() });
    }

    fn stands(&mut self, at: Time) {
        report(&Event::Stands { at_ns: at.as_ns_ceil() });
    }

    fn look(&mut self, network: &mut Network, reached: Time, mut stop: Option<StopAt<'_>>) -> bool {
        while let Some(request) = self.commands.poll() {
            match request {
                Request::Counters(reply) => reply.send(&network.counters(reached)),
                Request::Change { segment, change, reply } => {
                    reply.send(&match network.change(&segment, reached, change) {
                        Ok(at) => json!({ "at_ns": at.as_ns_ceil() }),
                        Err(invalid) => {
                            json!({ "error": invalid.message, "field": invalid.field })
                        }
                    });
                }
                Request::Until { at_ns, reply } => {
                    let moved = stop
                        .as_mut()
                        .map_or(Err("only machines under virtual time stand"), |stop| {
                            stop.move_to(at_ns)
                        });
                    reply.send(&match moved {
                        Ok(()) => json!({ "until_ns": at_ns }),
                        Err(why) => json!({ "error": why }),
                    });
                }
                Request::Stop(reply) => {
                    self.stopped = true;
                    if let Some(reply) = reply {
                        reply.send(&json!({ "stopping": true }));
                    }
                }
            }
        }
        self.stopped
    }
}

/// A run is worth finishing even when no process reads its events.
fn report(event: &Event) {
    let _unread = event.emit();
}
