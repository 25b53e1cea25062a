// SPDX-License-Identifier: Apache-2.0
//! The JSON as it is written, and the way from there to [`super::Config`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};
use sundial_core::{Builder, Invalid, Kinds, MAX_FRAME_BYTES, Span, Time};
use sundial_wire::ethernet::HEADER_BYTES;

use super::devices::{Device, Devices};
use super::{End, MachineConfig, PortConfig, SegmentConfig};
use crate::shm::{MACHINES, NICS};

/// Which clock drives the models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Lock-step with the guests.
    Virtual,
    /// The monotonic clock.
    Real,
}

/// What happens to a machine whose transmit ring is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenFull {
    /// It is kept from sending, as by a real adapter.
    #[default]
    Stop,
    /// Its frame is dropped.
    Drop,
}

pub(super) type Checked<T> = Result<T, Invalid>;

/// Less than what keeps machines together in time that nothing joins.
const ADAPTER_LATENCY_MOST_NS: u64 = 10_000_000;

/// What can be plugged in, and what has been.
struct Plugs {
    clock: Clock,
    machines: BTreeMap<String, Pluggable>,
    devices: Devices,
    taken: BTreeSet<End>,
}

/// A machine that ports name.
#[derive(Clone, Copy)]
struct Pluggable {
    number: usize,
    nics: usize,
    latency: Span,
}

pub(super) fn invalid<T>(field: impl Into<String>, message: impl Into<String>) -> Checked<T> {
    Err(Invalid::new(field, message))
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
    deadline_ns: Option<u64>,
    #[serde(default)]
    done_machines: Vec<String>,
    machines: Vec<Machine>,
    #[serde(default)]
    devices: Vec<Device>,
    segments: Vec<Segment>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Machine {
    name: String,
    nics: usize,
    #[serde(default)]
    adapter_latency_ns: u64,
    off_ns: Option<u64>,
}

#[derive(Deserialize)]
struct Segment {
    name: String,
    kind: String,
    max_frame_bytes: usize,
    #[serde(default)]
    adapter: Adapter,
    ports: Vec<Port>,
    /// The fields of the kind, which refuses those that it does not have.
    #[serde(flatten)]
    own: Map<String, Value>,
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
    machine: Option<String>,
    device: Option<String>,
    nic: usize,
    interface: String,
    mac: Mac,
    local: Option<PathBuf>,
    remote: Option<PathBuf>,
}

/// Written as in `02:53:44:00:00:01`.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
struct Mac([u8; 6]);

impl TryFrom<String> for Mac {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let octet = |part: &str| {
            let hexadecimal = part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
            hexadecimal.then(|| u8::from_str_radix(part, 16).expect("two hexadecimal digits"))
        };
        let octets: Option<Vec<u8>> = text.split(':').map(octet).collect();
        match octets.and_then(|octets| octets.try_into().ok()) {
            Some(octets) => Ok(Self(octets)),
            None => Err(format!("{text:?} is not a MAC address such as 02:53:44:00:00:01")),
        }
    }
}

impl Config {
    pub(super) fn check(self, kinds: &Kinds) -> Checked<super::Config> {
        if self.version != 1 {
            let message = format!("{} is not known; this fabric reads 1", self.version);
            return invalid("version", message);
        }
        if self.clock == Clock::Virtual && self.shm.is_none() {
            return invalid("shm", "needed with clock virtual");
        }
        let machines = self.check_machines()?;
        let mut done_machines = Vec::new();
        for (index, name) in self.done_machines.iter().enumerate() {
            let Some(machine) = machines.get(name) else {
                return invalid(format!("done_machines[{index}]"), format!("no machine {name:?}"));
            };
            done_machines.push(machine.number);
        }
        let devices = Devices::check(self.devices, machines.keys())?;
        if self.segments.is_empty() {
            return invalid("segments", "at least one is needed");
        }
        let mut names = BTreeSet::new();
        let mut plugs = Plugs { clock: self.clock, machines, devices, taken: BTreeSet::new() };
        let mut segments = Vec::new();
        for (index, segment) in self.segments.into_iter().enumerate() {
            let at = format!("segments[{index}]");
            if !names.insert(segment.name.clone()) {
                return invalid(at + ".name", format!("{:?} is used twice", segment.name));
            }
            let checked = segment.check(kinds, index, &mut plugs);
            segments.push(checked.map_err(|invalid| invalid.within(&at))?);
        }
        let machine = |machine: Machine| MachineConfig {
            name: machine.name,
            nics: machine.nics,
            off: machine.off_ns.map(Time::from_ns),
            adapter_latency: Span::from_ns(machine.adapter_latency_ns),
        };
        Ok(super::Config {
            clock: self.clock,
            seed: self.seed,
            capture_dir: self.capture_dir,
            control: self.control,
            shm: self.shm,
            linger: Span::from_ns(self.linger_ns),
            deadline: self.deadline_ns.map(Time::from_ns),
            done_machines,
            machines: self.machines.into_iter().map(machine).collect(),
            devices: plugs.devices.into_configs(),
            segments,
        })
    }

    fn check_machines(&self) -> Checked<BTreeMap<String, Pluggable>> {
        if self.machines.len() > MACHINES {
            let message = format!("{} are too many, at most {MACHINES}", self.machines.len());
            return invalid("machines", message);
        }
        let mut machines = BTreeMap::new();
        for (index, machine) in self.machines.iter().enumerate() {
            if machine.nics > NICS {
                let message = format!("{} are too many, at most {NICS}", machine.nics);
                return invalid(format!("machines[{index}].nics"), message);
            }
            if machine.adapter_latency_ns > ADAPTER_LATENCY_MOST_NS {
                let message = format!(
                    "{} is outside 0 to {ADAPTER_LATENCY_MOST_NS}",
                    machine.adapter_latency_ns
                );
                return invalid(format!("machines[{index}].adapter_latency_ns"), message);
            }
            if machine.off_ns.is_some() && self.clock != Clock::Virtual {
                return invalid(format!("machines[{index}].off_ns"), "needs clock virtual");
            }
            let latency = Span::from_ns(machine.adapter_latency_ns);
            let pluggable = Pluggable { number: index, nics: machine.nics, latency };
            if machines.insert(machine.name.clone(), pluggable).is_some() {
                let field = format!("machines[{index}].name");
                return invalid(field, format!("{:?} is used twice", machine.name));
            }
        }
        Ok(machines)
    }
}

impl Segment {
    fn check(self, kinds: &Kinds, number: usize, plugs: &mut Plugs) -> Checked<SegmentConfig> {
        if self.name.is_empty() || self.name.contains(['/', '\0']) || self.name.starts_with('.') {
            return invalid("name", "must be usable as a file name");
        }
        if !(HEADER_BYTES..=MAX_FRAME_BYTES).contains(&self.max_frame_bytes) {
            let bytes = self.max_frame_bytes;
            let message = format!("{bytes} is outside {HEADER_BYTES} to {MAX_FRAME_BYTES}");
            return invalid("max_frame_bytes", message);
        }
        if self.adapter.ring_frames == 0 {
            return invalid("adapter.ring_frames", "must be at least 1");
        }
        let mut ports = Vec::new();
        for (index, port) in self.ports.into_iter().enumerate() {
            let checked = port.check(number, self.adapter.ring_frames, plugs);
            let at = format!("ports[{index}]");
            ports.push(checked.map_err(|invalid| invalid.within(&at))?);
        }
        Ok(SegmentConfig {
            builder: check_kind(kinds, &self.kind, self.own, ports.len())?,
            name: self.name,
            max_frame_bytes: self.max_frame_bytes,
            when_full: self.adapter.when_full,
            ports,
        })
    }
}

fn check_kind(
    kinds: &Kinds,
    name: &str,
    fields: Map<String, Value>,
    ports: usize,
) -> Checked<Builder> {
    match kinds.find(name) {
        Some(kind) => kind.check(fields, ports),
        None => {
            let names: Vec<_> = kinds.names().collect();
            invalid("kind", format!("no kind {name:?}, there are {}", names.join(", ")))
        }
    }
}

impl Port {
    fn check(self, segment: usize, ring_frames: usize, plugs: &mut Plugs) -> Checked<PortConfig> {
        let (owner, end, ports, ring_frames, adapter_latency) = match (self.machine, self.device) {
            (Some(name), None) => {
                let Some(&Pluggable { number, nics, latency }) = plugs.machines.get(&name) else {
                    return invalid("machine", format!("no machine {name:?}"));
                };
                (name, End::Machine { machine: number, nic: self.nic }, nics, ring_frames, latency)
            }
            (None, Some(name)) => {
                let (device, ports, queue_frames) = plugs.devices.find(&name)?;
                let end = End::Device { device, port: self.nic };
                (name, end, ports, queue_frames, Span::ZERO)
            }
            _ => return invalid("", "names a machine or a device"),
        };
        if self.nic >= ports {
            let message = format!("{owner:?} has {ports} interfaces, counted from 0");
            return invalid("nic", message);
        }
        if !plugs.taken.insert(end) {
            let message = format!("interface {} of {owner:?} is plugged in twice", self.nic);
            return invalid("nic", message);
        }
        let sockets = match end {
            End::Device { device, .. } => {
                plugs.devices.join(device, segment)?;
                for (field, path) in [("local", &self.local), ("remote", &self.remote)] {
                    if path.is_some() {
                        return invalid(field, "a device has no sockets");
                    }
                }
                None
            }
            End::Machine { .. } if plugs.clock == Clock::Real => match (self.local, self.remote) {
                (Some(local), Some(remote)) => Some((local, remote)),
                (None, _) => return invalid("local", "needed with clock real"),
                (_, None) => return invalid("remote", "needed with clock real"),
            },
            End::Machine { .. } => None,
        };
        let Self { interface, mac: Mac(mac), .. } = self;
        Ok(PortConfig { end, owner, interface, mac, ring_frames, adapter_latency, sockets })
    }
}
