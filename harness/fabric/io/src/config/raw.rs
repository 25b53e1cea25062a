// SPDX-License-Identifier: Apache-2.0
//! The JSON as it is written, and the way from there to [`super::Config`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;
use sundial_core::{HubParameters, Impairments, LinkParameters, Span, SwitchParameters};

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
    Hub,
    Switch,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Hub => "hub",
            Self::Switch => "switch",
        }
    }
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
    // Link and switch.
    propagation_ns: Option<OneOrEach>,
    // Link.
    impairments: Option<BTreeMap<String, Impairments>>,
    // Hub.
    cable_delay_ns: Option<Vec<u64>>,
    repeater_delay_ns: Option<u64>,
    // Switch.
    full_duplex: Option<bool>,
    forwarding_latency_ns: Option<u64>,
    queue_frames: Option<usize>,
    mac_table_entries: Option<usize>,
    ageing_ns: Option<u64>,
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
        self.check_fields(at)?;
        let model = match self.kind {
            Kind::Link => self.link(at)?,
            Kind::Hub => self.hub(at)?,
            Kind::Switch => self.switch(at)?,
        };
        Ok(SegmentConfig {
            name: self.name,
            kind: self.kind.name(),
            max_frame_bytes: self.max_frame_bytes,
            ring_frames: self.adapter.ring_frames,
            when_full: self.adapter.when_full,
            ports,
            model,
        })
    }

    /// A field that the kind does not know would be ignored: refused instead.
    fn check_fields(&self, at: &str) -> Checked<()> {
        use Kind::{Hub, Link, Switch};
        let fields: [(&str, bool, &[Kind]); 9] = [
            ("propagation_ns", self.propagation_ns.is_some(), &[Link, Switch]),
            ("impairments", self.impairments.is_some(), &[Link]),
            ("cable_delay_ns", self.cable_delay_ns.is_some(), &[Hub]),
            ("repeater_delay_ns", self.repeater_delay_ns.is_some(), &[Hub]),
            ("full_duplex", self.full_duplex.is_some(), &[Switch]),
            ("forwarding_latency_ns", self.forwarding_latency_ns.is_some(), &[Switch]),
            ("queue_frames", self.queue_frames.is_some(), &[Switch]),
            ("mac_table_entries", self.mac_table_entries.is_some(), &[Switch]),
            ("ageing_ns", self.ageing_ns.is_some(), &[Switch]),
        ];
        for (field, given, kinds) in fields {
            if given && !kinds.contains(&self.kind) {
                let message = format!("a {} has no such field", self.kind.name());
                return invalid(format!("{at}.{field}"), message);
            }
        }
        Ok(())
    }

    fn hub(&self, at: &str) -> Checked<Model> {
        self.check_two_ports(at)?;
        let field = format!("{at}.rate_bps");
        let rate_bps = one(&self.rate_bps, &field)?;
        if rate_bps != 10_000_000 && rate_bps != 100_000_000 {
            return invalid(field, format!("{rate_bps}: a hub runs at 10000000 or 100000000"));
        }
        let cables = required(&self.cable_delay_ns, at, "cable_delay_ns")?;
        if cables.len() != self.ports.len() {
            let message = format!("{} values for {} ports", cables.len(), self.ports.len());
            return invalid(format!("{at}.cable_delay_ns"), message);
        }
        let repeater_delay = required(&self.repeater_delay_ns, at, "repeater_delay_ns")?;
        let parameters = HubParameters {
            rate_bps,
            cable_delay: cables.into_iter().map(Span::from_ns).collect(),
            repeater_delay: Span::from_ns(repeater_delay),
        };
        let limit = HubParameters::longest_way(rate_bps);
        for from in 0..self.ports.len() {
            for to in 0..from {
                let way = parameters.way(from, to);
                if way > limit {
                    let message = format!(
                        "{} ns from port {to} to port {from}, longest is {} ns: the round trip \
                         and the jam must be within the slot",
                        way.as_ns_floor(),
                        limit.as_ns_floor()
                    );
                    return invalid(format!("{at}.cable_delay_ns"), message);
                }
            }
        }
        Ok(Model::Hub(parameters))
    }

    fn switch(&self, at: &str) -> Checked<Model> {
        self.check_two_ports(at)?;
        if self.full_duplex == Some(false) {
            return invalid(format!("{at}.full_duplex"), "a switch is full duplex; use a hub");
        }
        let rate_bps = each(&self.rate_bps, self.ports.len(), &format!("{at}.rate_bps"))?;
        for &rate_bps in &rate_bps {
            check_rate(rate_bps, &format!("{at}.rate_bps"))?;
        }
        let propagation_ns = match &self.propagation_ns {
            Some(value) => each(value, self.ports.len(), &format!("{at}.propagation_ns"))?,
            None => vec![0; self.ports.len()],
        };
        let latency = required(&self.forwarding_latency_ns, at, "forwarding_latency_ns")?;
        let ageing_ns = required(&self.ageing_ns, at, "ageing_ns")?;
        if ageing_ns == 0 {
            return invalid(format!("{at}.ageing_ns"), "must be at least 1");
        }
        Ok(Model::Switch(SwitchParameters {
            rate_bps,
            propagation: propagation_ns.into_iter().map(Span::from_ns).collect(),
            forwarding_latency: Span::from_ns(latency),
            queue_frames: required(&self.queue_frames, at, "queue_frames")?,
            mac_table_entries: required(&self.mac_table_entries, at, "mac_table_entries")?,
            ageing: Span::from_ns(ageing_ns),
        }))
    }

    fn check_two_ports(&self, at: &str) -> Checked<()> {
        if self.ports.len() >= 2 {
            return Ok(());
        }
        let message = format!("a {} has at least 2 ports", self.kind.name());
        invalid(format!("{at}.ports"), message)
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
        let mut impairments = [None, None];
        for (port, settings) in self.impairments.iter().flatten() {
            let at = format!("{at}.impairments.{port}");
            let slot = match port.as_str() {
                "0" => &mut impairments[0],
                "1" => &mut impairments[1],
                _ => return invalid(at, "keys are the sending ports \"0\" and \"1\""),
            };
            settings.check().map_err(|error| Invalid {
                field: format!("{at}.{}", error.field),
                message: error.message,
            })?;
            *slot = Some(Box::new(settings.clone()));
        }
        let propagation = Span::from_ns(propagation_ns);
        Ok(Model::Link(LinkParameters { rate_bps, propagation, impairments }))
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

fn required<T: Clone>(value: &Option<T>, at: &str, field: &str) -> Checked<T> {
    match value {
        Some(value) => Ok(value.clone()),
        None => invalid(format!("{at}.{field}"), "missing"),
    }
}

fn each(value: &OneOrEach, ports: usize, field: &str) -> Checked<Vec<u64>> {
    match value {
        OneOrEach::One(value) => Ok(vec![*value; ports]),
        OneOrEach::Each(values) if values.len() == ports => Ok(values.clone()),
        OneOrEach::Each(values) => {
            invalid(field, format!("{} values for {ports} ports", values.len()))
        }
    }
}

fn one(value: &OneOrEach, field: &str) -> Checked<u64> {
    match value {
        OneOrEach::One(value) => Ok(*value),
        OneOrEach::Each(_) => invalid(field, "must be one number here"),
    }
}
