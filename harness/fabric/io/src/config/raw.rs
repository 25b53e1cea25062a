// SPDX-License-Identifier: Apache-2.0
//! The JSON as it is written, and the way from there to [`super::Config`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;
use sundial_core::{LinkParameters, Span};

use super::{MAX_FRAME_BYTES, MIN_FRAME_BYTES, MachineConfig, Model, PortConfig, SegmentConfig};

/// Which clock drives the models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Lock-step with the guests.
    Virtual,
    /// The monotonic clock.
    Real,
}

/// What happens to a station whose transmit ring is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenFull {
    /// It is kept from sending, as by a real adapter.
    #[default]
    Stop,
    /// Its frame is dropped.
    Drop,
}

/// A field and what is wrong with it.
pub(super) struct Invalid {
    pub(super) field: String,
    pub(super) message: String,
}

type Checked<T> = Result<T, Invalid>;

fn invalid<T>(field: impl Into<String>, message: impl Into<String>) -> Checked<T> {
    Err(Invalid { field: field.into(), message: message.into() })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    version: u64,
    clock: Clock,
    seed: u64,
    capture_dir: PathBuf,
    control: Option<PathBuf>,
    shm: Option<PathBuf>,
    #[serde(default)]
    linger_ns: u64,
    #[serde(default)]
    done_machines: Vec<String>,
    machines: Vec<Machine>,
    segments: Vec<Segment>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Machine {
    name: String,
    nics: usize,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Link,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Segment {
    name: String,
    kind: Kind,
    rate_bps: OneOrEach,
    max_frame_bytes: usize,
    #[serde(default)]
    adapter: Adapter,
    ports: Vec<Port>,
    propagation_ns: Option<OneOrEach>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Adapter {
    ring_frames: usize,
    when_full: WhenFull,
}

impl Default for Adapter {
    fn default() -> Self {
        Self { ring_frames: 64, when_full: WhenFull::Stop }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Port {
    machine: String,
    nic: usize,
    interface: String,
    local: Option<PathBuf>,
    remote: Option<PathBuf>,
}

/// A value for all ports, or one for each.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum OneOrEach {
    One(u64),
    Each(Vec<u64>),
}

impl Config {
    pub(super) fn check(self) -> Checked<super::Config> {
        if self.version != 1 {
            return invalid(
                "version",
                format!("{} is not known; this fabric reads 1", self.version),
            );
        }
        match self.clock {
            Clock::Virtual if self.shm.is_none() => {
                return invalid("shm", "needed with clock virtual");
            }
            _ => {}
        }
        let mut machines = BTreeMap::new();
        for (index, machine) in self.machines.iter().enumerate() {
            if machines.insert(machine.name.clone(), (index, machine.nics)).is_some() {
                let field = format!("machines[{index}].name");
                return invalid(field, format!("{:?} is used twice", machine.name));
            }
        }
        let mut done_machines = Vec::new();
        for (index, name) in self.done_machines.iter().enumerate() {
            let Some(&(machine, _)) = machines.get(name) else {
                return invalid(format!("done_machines[{index}]"), format!("no machine {name:?}"));
            };
            done_machines.push(machine);
        }
        if self.segments.is_empty() {
            return invalid("segments", "at least one is needed");
        }
        let mut names = BTreeSet::new();
        let mut plugged = BTreeSet::new();
        let mut segments = Vec::new();
        for (index, segment) in self.segments.into_iter().enumerate() {
            let at = format!("segments[{index}]");
            if !names.insert(segment.name.clone()) {
                return invalid(at + ".name", format!("{:?} is used twice", segment.name));
            }
            segments.push(segment.check(&at, self.clock, &machines, &mut plugged)?);
        }
        Ok(super::Config {
            clock: self.clock,
            seed: self.seed,
            capture_dir: self.capture_dir,
            control: self.control,
            shm: self.shm,
            linger: Span::from_ns(self.linger_ns),
            done_machines,
            machines: self
                .machines
                .into_iter()
                .map(|machine| MachineConfig { name: machine.name, nics: machine.nics })
                .collect(),
            segments,
        })
    }
}

impl Segment {
    fn check(
        self,
        at: &str,
        clock: Clock,
        machines: &BTreeMap<String, (usize, usize)>,
        plugged: &mut BTreeSet<(usize, usize)>,
    ) -> Checked<SegmentConfig> {
        if self.name.is_empty() || self.name.contains(['/', '\0']) || self.name.starts_with('.') {
            return invalid(format!("{at}.name"), "must be usable as a file name");
        }
        if !(MIN_FRAME_BYTES..=MAX_FRAME_BYTES).contains(&self.max_frame_bytes) {
            let message = format!(
                "{} is outside {MIN_FRAME_BYTES} to {MAX_FRAME_BYTES}",
                self.max_frame_bytes
            );
            return invalid(format!("{at}.max_frame_bytes"), message);
        }
        if self.adapter.ring_frames == 0 {
            return invalid(format!("{at}.adapter.ring_frames"), "must be at least 1");
        }
        let mut ports = Vec::new();
        for (index, port) in self.ports.iter().enumerate() {
            ports.push(port.check(&format!("{at}.ports[{index}]"), clock, machines, plugged)?);
        }
        let model = match self.kind {
            Kind::Link => self.link(at)?,
        };
        Ok(SegmentConfig {
            name: self.name,
            kind: match self.kind {
                Kind::Link => "link",
            },
            max_frame_bytes: self.max_frame_bytes,
            ring_frames: self.adapter.ring_frames,
            when_full: self.adapter.when_full,
            ports,
            model,
        })
    }

    fn link(&self, at: &str) -> Checked<Model> {
        if self.ports.len() != 2 {
            let message = format!("a link has exactly 2 ports, here are {}", self.ports.len());
            return invalid(format!("{at}.ports"), message);
        }
        let rate_bps = one(&self.rate_bps, &format!("{at}.rate_bps"))?;
        check_rate(rate_bps, &format!("{at}.rate_bps"))?;
        let propagation_ns = match &self.propagation_ns {
            Some(value) => one(value, &format!("{at}.propagation_ns"))?,
            None => 0,
        };
        Ok(Model::Link(LinkParameters { rate_bps, propagation: Span::from_ns(propagation_ns) }))
    }
}

impl Port {
    fn check(
        &self,
        at: &str,
        clock: Clock,
        machines: &BTreeMap<String, (usize, usize)>,
        plugged: &mut BTreeSet<(usize, usize)>,
    ) -> Checked<PortConfig> {
        let Some(&(machine, nics)) = machines.get(&self.machine) else {
            return invalid(format!("{at}.machine"), format!("no machine {:?}", self.machine));
        };
        if self.nic >= nics {
            let message = format!("{:?} has {nics} interfaces, counted from 0", self.machine);
            return invalid(format!("{at}.nic"), message);
        }
        if !plugged.insert((machine, self.nic)) {
            let message =
                format!("interface {} of {:?} is plugged in twice", self.nic, self.machine);
            return invalid(format!("{at}.nic"), message);
        }
        if clock == Clock::Real {
            for (field, path) in [("local", &self.local), ("remote", &self.remote)] {
                if path.is_none() {
                    return invalid(format!("{at}.{field}"), "needed with clock real");
                }
            }
        }
        Ok(PortConfig {
            machine,
            machine_name: self.machine.clone(),
            nic: self.nic,
            interface: self.interface.clone(),
            local: self.local.clone(),
            remote: self.remote.clone(),
        })
    }
}

/// 1 bit/s to 1 Tbit/s: beyond that a bit is below a picosecond.
fn check_rate(rate_bps: u64, field: &str) -> Checked<()> {
    if (1..=1_000_000_000_000).contains(&rate_bps) {
        return Ok(());
    }
    invalid(field, format!("{rate_bps} is outside 1 to 1000000000000"))
}

fn one(value: &OneOrEach, field: &str) -> Checked<u64> {
    match value {
        OneOrEach::One(value) => Ok(*value),
        OneOrEach::Each(_) => invalid(field, "must be one number here"),
    }
}
