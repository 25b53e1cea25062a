// SPDX-License-Identifier: Apache-2.0
//! How soon what is inside, or is not there yet, can reach a machine.
//!
//! Senders are the machines and, after them, the ports of devices: [`Distances`] says how long it takes at
//! least from what a sender hands in to what arrives at a machine.

use sundial_core::{Distances, Hop, Place, Span, Time};

use super::{Network, Plug, RecordedSegment};
use crate::End;

/// What is not announced yet cannot happen at a machine before these; `None`: nothing inside leads to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// A delivery.
    pub delivery: Option<Time>,
    /// A finished transmission.
    pub tx_done: Option<Time>,
}

impl Network {
    /// Distances between machines, and from the ports of devices to them.
    pub fn distances(&self) -> Distances {
        let ports = self.devices.iter().map(|device| device.plugs.len()).sum();
        Distances::new(self.plugs.len(), ports, self.hops())
    }

    fn hops(&self) -> Vec<Hop> {
        let mut hops = Vec::new();
        for segment in &self.segments {
            for (from_port, from) in segment.config.ports.iter().enumerate() {
                let (from, latency) = match from.end {
                    End::Machine { machine, .. } => (machine, self.latencies[machine]),
                    End::Device { device, port } => {
                        (self.devices[device].first_sender + port, Span::ZERO)
                    }
                };
                for (to_port, to) in segment.config.ports.iter().enumerate() {
                    let lookahead = latency + segment.least_way(from_port, to_port);
                    match to.end {
                        End::Machine { machine: to, .. } => hops.push(Hop { from, to, lookahead }),
                        End::Device { device, port } => {
                            let device = &self.devices[device];
                            let lookahead = lookahead + device.bridge.forwarding_latency();
                            hops.extend(device.others(port).map(|port| Hop {
                                from,
                                to: device.first_sender + port,
                                lookahead,
                            }));
                        }
                    }
                }
            }
        }
        hops
    }

    /// What is to be promised to each machine of what is in segments and devices; of what waits in its adapters,
    /// [`Network::bound_by_adapters`] says the rest. `distances`: as [`Network::distances`] has them.
    pub fn bounds(&self, distances: &Distances) -> Vec<Bounds> {
        let sends = self.earliest_sends();
        let bounds = |(machine, plugs): (usize, &Vec<Option<Plug>>)| {
            let mut bounds = Bounds::default();
            for &(segment, port) in plugs.iter().flatten() {
                let model = &self.segments[segment].model;
                bounds.delivery = earlier(bounds.delivery, model.earliest_delivery(port));
                bounds.tx_done = earlier(bounds.tx_done, model.earliest_tx_done(port));
            }
            let relayed = sends.iter().map(|&(from, at)| at + distances.between(from, machine));
            bounds.delivery = earlier(bounds.delivery, relayed.min());
            bounds
        };
        self.plugs.iter().enumerate().map(bounds).collect()
    }

    /// Lowers `bounds` to what the frames allow that adapters have and cannot begin with yet. Returns when the first
    /// one of each machine begins.
    pub fn bound_by_adapters(
        &self,
        distances: &Distances,
        bounds: &mut [Bounds],
    ) -> Vec<Option<Time>> {
        let begins = self.scheduler.earliest_by_machine(self.plugs.len());
        for (from, (begins, &latency)) in begins.iter().zip(&self.latencies).enumerate() {
            let &Some(begins) = begins else { continue };
            let handed_in = begins.back(latency);
            // Its place falls free strictly after it has left; a refused frame leaves at once.
            let tx_done = begins + Span::from_ns(1);
            bounds[from].tx_done = earlier(bounds[from].tx_done, Some(tx_done));
            for (to, bounds) in bounds.iter_mut().enumerate() {
                let earliest = handed_in + distances.between(from, to);
                bounds.delivery = earlier(bounds.delivery, Some(earliest));
            }
        }
        begins
    }

    /// What machines hand in from an instant on begins so much later at least.
    pub fn least_adapter_latency(&self) -> Span {
        self.latencies.iter().copied().min().unwrap_or(Span::ZERO)
    }

    /// What is inside is handed in by no device before this: numbers of senders, and times.
    fn earliest_sends(&self) -> Vec<(usize, Time)> {
        if self.devices.is_empty() {
            return Vec::new();
        }
        let earliest_delivery = |plug: &Option<Plug>| {
            let (segment, port) = (*plug)?;
            self.segments[segment].model.earliest_delivery(port)
        };
        let mut received: Vec<Vec<Option<Time>>> = self
            .devices
            .iter()
            .map(|device| device.plugs.iter().map(earliest_delivery).collect())
            .collect();
        let mut sent: Vec<_> =
            self.devices.iter().map(|device| vec![None; device.plugs.len()]).collect();
        for (at, place) in self.scheduler.waiting() {
            let earliest = match place {
                Place::DeviceReceives { device, port } => &mut received[device][port],
                Place::DeviceSends { device, port } => &mut sent[device][port],
                Place::Machine { .. } => continue,
            };
            *earliest = earlier(*earliest, Some(at));
        }
        let mut sends = Vec::new();
        for ((device, received), sent) in self.devices.iter().zip(received).zip(sent) {
            for (port, sent) in sent.into_iter().enumerate() {
                let relayed = device.others(port).filter_map(|from| received[from]).min();
                let relayed = relayed.map(|at| at + device.bridge.forwarding_latency());
                let earliest = earlier(sent, relayed).filter(|_| device.plugs[port].is_some());
                sends.extend(earliest.map(|at| (device.first_sender + port, at)));
            }
        }
        sends
    }
}

impl RecordedSegment {
    /// The least time from a frame that the adapter at `from` can begin with to what it leads to at `to`. At `from` itself
    /// that is what the adapter of a machine answers in its place, without the latency that a frame of the machine has.
    fn least_way(&self, from: usize, to: usize) -> Span {
        if from != to {
            return self.model.lookahead(from, to);
        }
        let answers = self.config.ports.iter().enumerate().filter_map(|(other, port)| {
            let answers = other != from && matches!(port.end, End::Machine { .. });
            answers.then(|| self.model.lookahead(from, other) + self.model.lookahead(other, from))
        });
        answers.min().unwrap_or(Span::MAX)
    }
}

/// The earlier of two times, where there are any.
pub(super) fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    [one, other].into_iter().flatten().min()
}
