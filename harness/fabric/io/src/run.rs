// SPDX-License-Identifier: Apache-2.0
//! One run from its configuration to its last file, on either clock.

use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use sundial_core::Time;

use crate::commands::{Commands, Request};
use crate::real_clock::{RealError, RealRun};
use crate::virtual_clock::{Observer, VirtualError, VirtualRun};
use crate::{CaptureError, Clock, Config, EPOCH_NS, Event, Wires};

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file of the capture could not be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The control socket or the signals could not be set up.
    #[error("cannot listen on {}: {source}", path.display())]
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
    let end = match config.clock {
        Clock::Virtual => run_virtual(config, spins)?,
        Clock::Real => run_real(config)?,
    };
    say(&Event::Finished { virtual_ns: end.as_ns_ceil() });
    Ok(())
}

/// Has this process asked to stop (SIGTERM) when the thread that started it has died, so that no
/// fabric outlives its harness.
pub fn die_with_parent() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    Ok(())
}

fn run_virtual(config: &Config, spins: u32) -> Result<Time, RunError> {
    let wires = Wires::open(config, EPOCH_NS)?;
    let mut run = VirtualRun::new(config, wires, spins)?;
    let mut desk = Desk::open(config, || {})?;
    say(&Event::Listening);
    let outcome = run.run(&mut desk);
    // What was recorded before a fault is worth keeping.
    let end = run.finish()?;
    match outcome {
        Ok(end) => Ok(end),
        Err(VirtualError::Aborted(_)) if desk.stopped => Ok(end),
        Err(error) => Err(error.into()),
    }
}

fn run_real(config: &Config) -> Result<Time, RunError> {
    let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch_ns = u64::try_from(epoch.as_nanos()).unwrap_or(u64::MAX);
    let wires = Wires::open(config, epoch_ns)?;
    let mut run = RealRun::new(config, wires)?;
    let mut desk = Desk::open(config, run.waker())?;
    say(&Event::Listening);
    let outcome = run.run(&mut desk);
    let end = outcome.as_ref().copied().unwrap_or(run.now());
    run.finish(end)?;
    outcome.map_err(RunError::from)
}

/// Where requests come in and news go out.
struct Desk<'a> {
    config: &'a Config,
    commands: Commands,
    stopped: bool,
}

impl<'a> Desk<'a> {
    fn open(config: &'a Config, wake: impl Fn() + Send + Sync + 'static) -> Result<Self, RunError> {
        let commands = Commands::listen(config.control.as_deref(), wake).map_err(|source| {
            let path = config.control.clone().unwrap_or_default();
            RunError::Control { path, source }
        })?;
        Ok(Self { config, commands, stopped: false })
    }
}

impl Observer for Desk<'_> {
    fn done(&mut self, machine: usize, status: u8, at: Time) {
        let machine = &self.config.machines[machine].name;
        say(&Event::Done { machine, status, at_ns: at.as_ns_ceil() });
    }

    fn look(&mut self, wires: &Wires, reached: Time) -> bool {
        while let Some(request) = self.commands.poll() {
            match request {
                Request::Counters(reply) => reply.send(&wires.counters(reached)),
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

/// If nobody reads the events any more, the run is still worth finishing.
fn say(event: &Event) {
    let _nobody = event.emit();
}
