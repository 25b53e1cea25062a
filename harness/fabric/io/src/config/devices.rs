// SPDX-License-Identifier: Apache-2.0
//! Devices between segments, and that they make no loop.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use sundial_core::{BridgeParameters, Span};

use super::DeviceConfig;
use super::raw::{Checked, invalid};

/// Ports of one device; each pair of them is a way that a frame may take.
const PORTS: std::ops::RangeInclusive<usize> = 2..=16;
const DEVICES: usize = 16;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Device {
    name: String,
    kind: String,
    nics: usize,
    forwarding_latency_ns: u64,
    queue_frames: usize,
    mac_table_entries: usize,
    ageing_ns: u64,
}

/// Those of a run, and which segments they join.
pub(super) struct Devices {
    configs: Vec<DeviceConfig>,
    queue_frames: Vec<usize>,
    by_name: BTreeMap<String, usize>,
    /// A segment or device that is joined to this one, towards the one that stands for all of them.
    joined: BTreeMap<Node, Node>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Segment(usize),
    Device(usize),
}

impl Devices {
    /// `machines`: names that are taken.
    pub(super) fn check<'a>(
        devices: Vec<Device>,
        machines: impl Iterator<Item = &'a String>,
    ) -> Checked<Self> {
        if devices.len() > DEVICES {
            let message = format!("{} are too many, at most {DEVICES}", devices.len());
            return invalid("devices", message);
        }
        let machines: BTreeSet<_> = machines.collect();
        let mut checked = Self {
            configs: Vec::new(),
            queue_frames: Vec::new(),
            by_name: BTreeMap::new(),
            joined: BTreeMap::new(),
        };
        for (index, device) in devices.into_iter().enumerate() {
            let at = format!("devices[{index}]");
            let twice = machines.contains(&device.name)
                || checked.by_name.insert(device.name.clone(), index).is_some();
            if twice {
                return invalid(at + ".name", format!("{:?} is used twice", device.name));
            }
            checked.queue_frames.push(device.queue_frames);
            let config = device.check().map_err(|invalid| invalid.within(&at))?;
            checked.configs.push(config);
        }
        Ok(checked)
    }

    /// The device called `name`: its number, how many ports it has, and places in the ring of each.
    pub(super) fn find(&self, name: &str) -> Checked<(usize, usize, usize)> {
        let Some(&device) = self.by_name.get(name) else {
            return invalid("device", format!("no device {name:?}"));
        };
        Ok((device, self.configs[device].ports, self.queue_frames[device]))
    }

    /// Notes that `device` has a port on `segment`.
    pub(super) fn join(&mut self, device: usize, segment: usize) -> Checked<()> {
        let (device_root, segment_root) =
            (self.root(Node::Device(device)), self.root(Node::Segment(segment)));
        if device_root == segment_root {
            let name = &self.configs[device].name;
            let message =
                format!("{name:?} closes a loop of bridges: frames would go round for ever");
            return invalid("device", message);
        }
        self.joined.insert(device_root, segment_root);
        Ok(())
    }

    fn root(&self, mut node: Node) -> Node {
        while let Some(&next) = self.joined.get(&node) {
            node = next;
        }
        node
    }

    pub(super) fn into_configs(self) -> Vec<DeviceConfig> {
        self.configs
    }
}

impl Device {
    fn check(self) -> Checked<DeviceConfig> {
        if self.kind != "bridge" {
            return invalid("kind", format!("no kind {:?} of device, there is bridge", self.kind));
        }
        if !PORTS.contains(&self.nics) {
            let message = format!("{} is outside {} to {}", self.nics, PORTS.start(), PORTS.end());
            return invalid("nics", message);
        }
        for (field, value) in
            [("queue_frames", self.queue_frames as u64), ("ageing_ns", self.ageing_ns)]
        {
            if value == 0 {
                return invalid(field, "must be at least 1");
            }
        }
        Ok(DeviceConfig {
            name: self.name,
            ports: self.nics,
            bridge: BridgeParameters {
                forwarding_latency: Span::from_ns(self.forwarding_latency_ns),
                mac_table_entries: self.mac_table_entries,
                ageing: Span::from_ns(self.ageing_ns),
            },
        })
    }
}
