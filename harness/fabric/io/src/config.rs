// SPDX-License-Identifier: Apache-2.0
//! `fabric.json`: what the harness resolved, checked once, here.
//!
//! Only the file is checked, never the environment: what is right on one host is right on all. The
//! fields of each kind of segment are checked by the kind.

mod raw;

use std::path::{Path, PathBuf};

use sundial_core::{Builder, Invalid, Kinds, Segment, SegmentParameters, Span};

pub use raw::{Clock, WhenFull};

/// Why a configuration is refused; its text is one line.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not JSON; the text names line and column.
    #[error("{}", path.display())]
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
    /// Longest frame without FCS.
    pub max_frame_bytes: usize,
    /// Places in each adapter's transmit ring.
    pub ring_frames: usize,
    /// What the driver does with a machine whose ring is full.
    pub when_full: WhenFull,
    /// In port order.
    pub ports: Vec<PortConfig>,
    /// Builds the model.
    pub builder: Builder,
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
    /// The adapter's address.
    pub mac: [u8; 6],
    /// The fabric's socket (real clock).
    pub local: Option<PathBuf>,
    /// The machine's socket (real clock).
    pub remote: Option<PathBuf>,
}

impl Config {
    /// Reads and checks `path`, whose segments are of `kinds`.
    pub fn load(path: &Path, kinds: &Kinds) -> Result<Self, ConfigError> {
        let text = std::fs::read(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::parse(path, &text, kinds)
    }

    /// Checks `text`; `path` is for messages only.
    pub fn parse(path: &Path, text: &[u8], kinds: &Kinds) -> Result<Self, ConfigError> {
        let located = |Invalid { field, message }| {
            let path = path.to_owned();
            ConfigError::Invalid { path, field, message }
        };
        let mut reader = serde_json::Deserializer::from_slice(text);
        let raw: raw::Config = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let field = error.path().to_string();
            let source = error.into_inner();
            if source.is_data() && field != "." {
                located(Invalid::new(field, source.to_string()))
            } else {
                ConfigError::Parse { path: path.to_owned(), source }
            }
        })?;
        reader.end().map_err(|source| ConfigError::Parse { path: path.to_owned(), source })?;
        raw.check(kinds).map_err(located)
    }
}

impl SegmentConfig {
    /// The name of its kind.
    pub fn kind(&self) -> &'static str {
        self.builder.kind()
    }

    /// A new model of this segment. `seed` is the run's.
    pub fn build(&self, seed: u64) -> Box<dyn Segment> {
        self.builder.build(&SegmentParameters {
            name: self.name.clone(),
            seed,
            ports: (0..self.ports.len()).map(|port| self.port_name(port)).collect(),
            macs: self.ports.iter().map(|port| port.mac).collect(),
            relays: vec![false; self.ports.len()],
            rings: vec![self.ring_frames; self.ports.len()],
            max_frame_bytes: self.max_frame_bytes,
        })
    }

    /// `MACHINE:INTERFACE`.
    pub fn port_name(&self, port: usize) -> String {
        let port = &self.ports[port];
        format!("{}:{}", port.machine_name, port.interface)
    }
}

#[cfg(test)]
mod tests;
