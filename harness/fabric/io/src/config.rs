// SPDX-License-Identifier: Apache-2.0
//! `fabric.json`: what the harness resolved, checked once here, so that nothing behind has to.
//!
//! Checking form only, never the environment: a file that is right here is right everywhere.

mod raw;

use std::path::{Path, PathBuf};

use sundial_core::{
    Hub, HubParameters, Link, LinkParameters, MAX_FRAME_BYTES, MIN_FRAME_BYTES, Segment,
    SegmentParameters, Span, Switch, SwitchParameters,
};

pub use raw::{Clock, WhenFull};

/// Why a configuration is refused; its text is one line.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not the JSON that is expected; the text names line and column.
    #[error("{}: {source}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A value does not make sense.
    #[error("{}: {field}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// As in `segments[0].ports[1].nic`.
        field: String,
        /// What is wrong and what is allowed.
        message: String,
    },
}

/// A checked configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which driver runs the models.
    pub clock: Clock,
    /// The run's seed.
    pub seed: u64,
    /// Where captures and `counters.json` go.
    pub capture_dir: PathBuf,
    /// The control socket.
    pub control: Option<PathBuf>,
    /// The shared memory of a virtual run.
    pub shm: Option<PathBuf>,
    /// How long the run goes on after the last machine is done.
    pub linger: Span,
    /// Machines (by index) that say done; the run ends after the last of them.
    pub done_machines: Vec<usize>,
    /// In the order that settles ties.
    pub machines: Vec<MachineConfig>,
    /// In file order.
    pub segments: Vec<SegmentConfig>,
}

/// A machine.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// Its name.
    pub name: String,
    /// How many network interfaces it has.
    pub nics: usize,
}

/// A segment and what is plugged into it.
#[derive(Clone, Debug)]
pub struct SegmentConfig {
    /// Its name: of its capture, in its random streams.
    pub name: String,
    /// `link`, `hub` or `switch`.
    pub kind: &'static str,
    /// Longest frame without FCS.
    pub max_frame_bytes: usize,
    /// Places in each adapter's transmit ring.
    pub ring_frames: usize,
    /// What the driver does with a station whose ring is full.
    pub when_full: WhenFull,
    /// In port order.
    pub ports: Vec<PortConfig>,
    /// The kind's own parameters.
    pub model: Model,
}

/// One port of a segment.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// Index into [`Config::machines`].
    pub machine: usize,
    /// The machine's name.
    pub machine_name: String,
    /// Which of the machine's interfaces.
    pub nic: usize,
    /// What the machine calls it.
    pub interface: String,
    /// The fabric's socket (real clock).
    pub local: Option<PathBuf>,
    /// The machine's socket (real clock).
    pub remote: Option<PathBuf>,
}

/// Parameters by kind of segment.
#[derive(Clone, Debug)]
pub enum Model {
    /// Full duplex wire.
    Link(LinkParameters),
    /// Half duplex repeater.
    Hub(HubParameters),
    /// Store and forward.
    Switch(SwitchParameters),
}

impl Config {
    /// Reads and checks `path`.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::parse(path, &text)
    }

    /// Checks `text`; `path` is for messages only.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, ConfigError> {
        let raw: raw::Config = serde_json::from_slice(text)
            .map_err(|source| ConfigError::Parse { path: path.to_owned(), source })?;
        raw.check().map_err(|raw::Invalid { field, message }| ConfigError::Invalid {
            path: path.to_owned(),
            field,
            message,
        })
    }
}

impl SegmentConfig {
    /// A new model of this segment. `seed` is the run's.
    pub fn build(&self, seed: u64) -> Box<dyn Segment + Send> {
        let common = SegmentParameters {
            name: self.name.clone(),
            seed,
            ports: (0..self.ports.len()).map(|port| self.port_name(port)).collect(),
            max_frame_bytes: self.max_frame_bytes,
            ring_frames: self.ring_frames,
        };
        match &self.model {
            Model::Link(parameters) => Box::new(Link::new(&common, parameters.clone())),
            Model::Hub(parameters) => Box::new(Hub::new(&common, parameters.clone())),
            Model::Switch(parameters) => Box::new(Switch::new(&common, parameters.clone())),
        }
    }

    /// `MACHINE:INTERFACE`.
    pub fn port_name(&self, port: usize) -> String {
        let port = &self.ports[port];
        format!("{}:{}", port.machine_name, port.interface)
    }

    /// Bits per second of the adapter at `port`.
    pub fn port_rate_bps(&self, port: usize) -> u64 {
        match &self.model {
            Model::Link(parameters) => parameters.rate_bps,
            Model::Hub(parameters) => parameters.rate_bps,
            Model::Switch(parameters) => parameters.rate_bps[port],
        }
    }
}

#[cfg(test)]
mod tests;
