// SPDX-License-Identifier: Apache-2.0
//! The emulated LAN of a segment: its clients and servers, and what they wait for. Everything that happens to
//! them is handled here in order of time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sundial_core::{Frame, Refusal, SegmentParameters, Span, Time};
use sundial_wire::ethernet::Address;

use super::channels::Channels;
use super::lane::{
    self, Action, Client, ClientSettings, Destination, Role, Sdu, ServiceAction, Services,
};
use super::parameters::LaneParameters;

/// What the clients and servers of a segment want its adapters to do.
#[derive(Debug)]
pub(super) enum Order {
    /// Send `sdu` on `vci`; `to` tells apart channels of one number.
    Send { from: usize, vci: u16, to: Option<usize>, sdu: Sdu },
    /// A frame of the machine at `port` goes nowhere.
    Drop { port: usize, frame: Frame, refusal: Refusal },
}

/// Clients, one a port, and servers.
#[derive(Debug)]
pub(super) struct Lan {
    clients: Vec<Client>,
    services: Services,
    vc_setup: Span,
    /// SDUs on their way into a client or the servers, by arrival, station and order.
    arrivals: BTreeMap<(Time, usize, u64), Arrival>,
    next_sequence: u64,
    /// Data direct VCs that are being set up: when they are there, caller and called.
    set_ups: BTreeSet<(Time, usize, usize)>,
    orders: VecDeque<Order>,
}

#[derive(Debug)]
struct Arrival {
    from: usize,
    vci: u16,
    sdu: Sdu,
}

impl Lan {
    pub(super) fn new(common: &SegmentParameters, parameters: &LaneParameters) -> Self {
        let ports = common.ports.len();
        let client = |port: usize| {
            Client::new(ClientSettings {
                port,
                macs: common.macs.iter().copied().map(Address).collect(),
                relays: common.relays.clone(),
                lane: parameters.settings.clone(),
            })
        };
        Self {
            clients: (0..ports).map(client).collect(),
            services: Services::new(parameters.settings.clone(), ports),
            vc_setup: parameters.vc_setup,
            arrivals: BTreeMap::new(),
            next_sequence: 0,
            set_ups: BTreeSet::new(),
            orders: VecDeque::new(),
        }
    }

    /// The channels between `ports` clients and the servers behind them.
    pub(super) fn channels(ports: usize) -> Channels {
        let mut channels = Channels::default();
        let service = ports;
        let everybody = |vci| (0..ports).map(|port| (port, vci)).collect::<Vec<_>>();
        for port in 0..ports {
            for vci in [lane::CONFIGURATION_DIRECT, lane::CONTROL_DIRECT] {
                channels.open(port, vci, &[(service, vci)]);
                channels.open_one_of(service, vci, (port, vci));
            }
            channels.open(port, lane::MULTICAST_SEND, &[(service, lane::MULTICAST_SEND)]);
            for peer in (0..ports).filter(|&peer| peer != port) {
                let end = (peer, lane::data_direct(port));
                channels.open(port, lane::data_direct(peer), &[end]);
            }
        }
        for vci in [lane::CONTROL_DISTRIBUTE, lane::MULTICAST_FORWARD] {
            channels.open(service, vci, &everybody(vci));
        }
        channels
    }

    /// The machine at `port` hands in `frame`.
    pub(super) fn handle_frame(&mut self, now: Time, port: usize, frame: Frame) {
        self.clients[port].handle_frame(now, frame);
        self.obey(now, port);
    }

    /// `sdu` from `from` will arrive at `to`, a port or the servers, on `vci` at `at`. `true`: it is a frame that
    /// the machine at `to` gets.
    pub(super) fn expect(&mut self, at: Time, to: usize, from: usize, vci: u16, sdu: &Sdu) -> bool {
        if let (Some(client), Sdu::Data { .. }) = (self.clients.get_mut(to), sdu) {
            return client.receive(at, vci, sdu);
        }
        let arrival = Arrival { from, vci, sdu: sdu.clone() };
        self.arrivals.insert((at, to, self.next_sequence), arrival);
        self.next_sequence += 1;
        false
    }

    /// Whether the machine at `to`, or any machine behind the servers, would get a frame that arrived there.
    pub(super) fn would_deliver(&self, to: usize, sdu: &Sdu) -> bool {
        self.clients.get(to).is_none_or(|client| client.accepts(sdu))
    }

    /// The device at `port` knows `address` until `until`.
    pub(super) fn note_reachable(&mut self, now: Time, port: usize, address: Address, until: Time) {
        self.clients[port].note_reachable(now, address, until);
        self.obey(now, port);
    }

    /// When something happens next.
    pub(super) fn next_event(&self) -> Option<Time> {
        let clients = self.clients.iter().filter_map(Client::poll_timeout);
        let arrival = self.arrivals.first_key_value().map(|(&(at, _, _), _)| at);
        let set_up = self.set_ups.first().map(|&(at, _, _)| at);
        clients.chain(self.services.poll_timeout()).chain(arrival).chain(set_up).min()
    }

    /// When something that is inside the servers may leave them; `arrival`: nothing else gets there before.
    pub(super) fn next_service(&self, arrival: Option<Time>) -> Option<Time> {
        let mut arrivals = self.arrivals.keys();
        let known = arrivals.find(|&&(_, to, _)| to == self.clients.len()).map(|&(at, _, _)| at);
        known.into_iter().chain(arrival).chain(self.services.poll_timeout()).min()
    }

    /// A frame that the machine at `port` may get is held by a client; which ones.
    pub(super) fn waiting_for(&self, port: usize) -> impl Iterator<Item = usize> {
        let clients = self.clients.iter().enumerate();
        clients.filter(move |(_, client)| client.waits_for(port)).map(|(number, _)| number)
    }

    /// Control frames that were not understood, at `port` or from there at the servers.
    pub(super) fn ignored_sdus(&self, port: usize) -> u64 {
        self.clients[port].ignored_sdus() + self.services.ignored_sdus(port)
    }

    /// Everything that happens at `now`, the time of [`Lan::next_event`]: servers, clients by port, new VCs,
    /// SDUs by station.
    pub(super) fn handle_events(&mut self, now: Time) {
        if self.services.poll_timeout().is_some_and(|at| at <= now) {
            self.services.handle_timeout(now);
            self.obey_services();
        }
        for port in 0..self.clients.len() {
            if self.clients[port].poll_timeout().is_some_and(|at| at <= now) {
                self.clients[port].handle_timeout(now);
                self.obey(now, port);
            }
        }
        while let Some(&(at, caller, called)) = self.set_ups.first()
            && at <= now
        {
            self.set_ups.pop_first();
            self.clients[caller].handle_connected(now, called, Role::Caller);
            self.clients[called].handle_connected(now, caller, Role::Called);
            self.obey(now, caller);
            self.obey(now, called);
        }
        while let Some(entry) = self.arrivals.first_entry()
            && entry.key().0 <= now
        {
            let ((_, to, _), Arrival { from, vci, sdu }) = entry.remove_entry();
            match (self.clients.get_mut(to), &sdu) {
                (Some(client), Sdu::Control(octets)) => {
                    client.handle_control(now, vci, octets);
                    self.obey(now, to);
                }
                _ => {
                    self.services.handle_sdu(now, from, vci, sdu);
                    self.obey_services();
                }
            }
        }
    }

    /// What is to be done, in order, until `None`.
    pub(super) fn poll_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    fn obey(&mut self, now: Time, port: usize) {
        while let Some(action) = self.clients[port].poll_action() {
            match action {
                Action::Send { vci, sdu } => {
                    self.orders.push_back(Order::Send { from: port, vci, to: None, sdu });
                }
                Action::Drop { frame, refusal } => {
                    self.orders.push_back(Order::Drop { port, frame, refusal });
                }
                Action::Connect { peer } => {
                    self.set_ups.insert((now + self.vc_setup, port, peer));
                }
                Action::Release { peer } => {
                    self.clients[port].handle_released(now, peer);
                    self.clients[peer].handle_released(now, port);
                    self.obey(now, peer);
                }
            }
        }
    }

    fn obey_services(&mut self) {
        let from = self.clients.len();
        while let Some(ServiceAction::Send { vci, to, sdu }) = self.services.poll_action() {
            let to = match to {
                Destination::One(port) => Some(port),
                Destination::Every => None,
            };
            self.orders.push_back(Order::Send { from, vci, to, sdu });
        }
    }
}
