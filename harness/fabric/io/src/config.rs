// SPDX-License-Identifier: Apache-2.0
//! `fabric.json`: what the harness resolved, checked once, here.
//!
//! Only the file is checked, never the environment: what is right on one host is right on all. The
//! fields of each kind of segment are checked by the kind.

mod devices;
mod raw;

use std::path::{Path, PathBuf};

use sundial_core::{
    BridgeParameters, Builder, Invalid, Kinds, Segment, SegmentParameters, Span, Time,
};

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
    /// When each of `done_machines` must be done.
    pub deadline: Option<Time>,
    /// Machines (by index) that say done; the run ends after the last of them.
    pub done_machines: Vec<usize>,
    /// In the order that settles ties.
    pub machines: Vec<MachineConfig>,
    /// Between segments; in the order that settles ties.
    pub devices: Vec<DeviceConfig>,
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
    /// When its power is cut, in virtual time.
    pub off: Option<Time>,
    /// From handing a frame to an adapter until that can begin to send it.
    pub adapter_latency: Span,
}

/// A device: a bridge.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// Its name.
    pub name: String,
    /// How many ports it has.
    pub ports: usize,
    /// What kind of bridge.
    pub bridge: BridgeParameters,
}

/// A segment and what is plugged into it.
#[derive(Clone, Debug)]
pub struct SegmentConfig {
    /// Its name: of its capture, in its random streams.
    pub name: String,
    /// Longest frame without FCS.
    pub max_frame_bytes: usize,
    /// What the driver does with a machine whose transmit ring is full. A device drops the frame.
    pub when_full: WhenFull,
    /// In port order.
    pub ports: Vec<PortConfig>,
    /// Builds the model.
    pub builder: Builder,
}

/// One port of a segment.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// What is plugged in.
    pub end: End,
    /// The owner's name.
    pub owner: String,
    /// What the owner calls it.
    pub interface: String,
    /// The adapter's address.
    pub mac: [u8; 6],
    /// Places in the adapter's transmit ring.
    pub ring_frames: usize,
    /// As of the machine; a device's adapter has none.
    pub adapter_latency: Span,
    /// The fabric's and the machine's socket (a machine's port, real clock).
    pub sockets: Option<(PathBuf, PathBuf)>,
}

/// What is plugged into a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// A machine's interface.
    Machine {
        /// Index into [`Config::machines`].
        machine: usize,
        /// Which of its interfaces.
        nic: usize,
    },
    /// A device's port.
    Device {
        /// Index into [`Config::devices`].
        device: usize,
        /// Which of its ports.
        port: usize,
    },
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

    /// Room for a frame that comes in: for more than the longest of any segment, so that a longer one, which
    /// is cut off, is refused and counted.
    pub fn frame_buffer_bytes(&self) -> usize {
        const MORE: usize = 256;
        let longest = self.segments.iter().map(|segment| segment.max_frame_bytes).max();
        longest.expect("checked: there is a segment") + MORE
    }

    /// The broadcast domain of each segment, by a number: devices join segments to one.
    pub fn domains(&self) -> Vec<usize> {
        let mut domains: Vec<usize> = (0..self.segments.len()).collect();
        for number in 0..self.devices.len() {
            let is_plugged_in = |segment: &SegmentConfig| {
                let mut ends = segment.ports.iter().map(|port| port.end);
                ends.any(|end| matches!(end, End::Device { device, .. } if device == number))
            };
            let joined = self.segments.iter().zip(&domains).filter(|(it, _)| is_plugged_in(it));
            let joined: Vec<usize> = joined.map(|(_, &domain)| domain).collect();
            for domain in domains.iter_mut().filter(|domain| joined.contains(domain)) {
                *domain = joined[0];
            }
        }
        domains
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
            relays: self.ports.iter().map(|port| matches!(port.end, End::Device { .. })).collect(),
            rings: self.ports.iter().map(|port| port.ring_frames).collect(),
            adapter_latency: self.ports.iter().map(|port| port.adapter_latency).collect(),
            max_frame_bytes: self.max_frame_bytes,
        })
    }

    /// `OWNER:INTERFACE`.
    pub fn port_name(&self, port: usize) -> String {
        let port = &self.ports[port];
        format!("{}:{}", port.owner, port.interface)
    }
}

#[cfg(test)]
mod tests;
