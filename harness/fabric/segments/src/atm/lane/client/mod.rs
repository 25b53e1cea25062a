// SPDX-License-Identifier: Apache-2.0
//! A LAN emulation client (LEC): what arrives, and which part of it that concerns.
//!
//! `join` makes it a member. `entry` holds the frames to one unicast address and chooses their path, from
//! what `resolve` (LE_ARP), `channels` (data direct VCs) and `flush` (order) say. `proxy` knows what is
//! behind a device. `endpoint` is what they share.

mod channels;
mod endpoint;
mod entry;
mod flush;
mod join;
mod proxy;
mod request;
mod resolve;

use std::collections::BTreeMap;

use sundial_core::{Frame, Refusal, Rule, Time};
use sundial_wire::atm::lane::{ControlFrame, Flags, LanDestination, Message, Opcode};
use sundial_wire::ethernet::{Address, Header};

use super::{
    Action, CONFIGURATION_DIRECT, CONTROL_DIRECT, CONTROL_DISTRIBUTE, ClientSettings,
    MULTICAST_FORWARD, Resolution, Role, Sdu, data_direct, peer_of,
};
use channels::Due;
use endpoint::{Endpoint, Path};
use entry::Entry;
use join::Join;
use proxy::Reachable;

/// The client at one port.
#[derive(Debug)]
pub(in crate::atm) struct Client {
    endpoint: Endpoint,
    join: Join,
    entries: BTreeMap<Address, Entry>,
    reachable: Reachable,
    ignored_sdus: u64,
    /// At or before everything that is due. Frames on a path that stands only move that back, so it
    /// is not looked for after them.
    deadline: Option<Time>,
}

impl Client {
    /// The client at `settings.port`. It begins to join by itself.
    pub(in crate::atm) fn new(settings: ClientSettings) -> Self {
        let join = Join::new(&settings);
        let mut endpoint = Endpoint::new(settings);
        if endpoint.lane().resolution == Resolution::Static {
            endpoint.lec_id = u16::try_from(endpoint.settings().port + 1)
                .expect("a segment has fewer ports than LEC ids");
        }
        let deadline = join.deadline();
        Self {
            endpoint,
            join,
            entries: BTreeMap::new(),
            reachable: Reachable::default(),
            ignored_sdus: 0,
            deadline,
        }
    }

    /// The machine's `frame` reaches the adapter, which has refused it if it holds no header.
    pub(in crate::atm) fn handle_frame(&mut self, now: Time, frame: Frame) {
        self.catch_up(now);
        let (header, _) = Header::parse(&frame).expect("shorter frames are refused by the adapter");
        let target = header.destination;
        if !self.join.is_member() {
            self.endpoint.drop(frame, Refusal::by(Rule::NotJoined));
        } else if target.is_group() {
            self.endpoint.send_data(Path::Bus, frame);
        } else if self.endpoint.lane().resolution == Resolution::Static {
            let path = self.endpoint.static_path(target);
            self.endpoint.send_data(path, frame);
        } else {
            let entry = self.entries.entry(target).or_insert_with(|| Entry::new(target));
            if !entry.handle_frame(now, frame, &mut self.endpoint) {
                self.settle();
            }
        }
    }

    /// The machine would get the data frame `sdu`: it is not the client's own, come back from the BUS,
    /// and it is for this machine. A device sees to that itself, so it gets all.
    pub(in crate::atm) fn accepts(&self, sdu: &Sdu) -> bool {
        let Sdu::Data { lec_id, frame } = sdu else { return false };
        let is_for_us = || {
            Header::parse(frame).is_some_and(|(header, _)| {
                header.destination.is_group() || header.destination == self.endpoint.mac()
            })
        };
        *lec_id != self.endpoint.lec_id && (self.endpoint.is_proxy() || is_for_us())
    }

    /// The data frame `sdu` arrives on `vci` at `at`, which may be later than now. `true`: the machine
    /// gets it.
    pub(in crate::atm) fn receive(&mut self, at: Time, vci: u16, sdu: &Sdu) -> bool {
        if let Some(peer) = peer_of(vci)
            && self.endpoint.channels.note_received(at, peer)
        {
            self.settle();
        }
        self.accepts(sdu)
    }

    /// A control frame arrived in full on `vci`.
    pub(in crate::atm) fn handle_control(&mut self, now: Time, vci: u16, octets: &[u8]) {
        self.catch_up(now);
        let is_understood = match (Message::parse(octets), peer_of(vci)) {
            (Some(Message::Frame(frame)), _) => self.handle_control_frame(now, vci, &frame),
            (Some(Message::ReadyQuery), Some(peer)) => {
                self.endpoint.send(data_direct(peer), &Message::ReadyIndication);
                true
            }
            (Some(Message::ReadyIndication), Some(peer)) => {
                if self.endpoint.channels.make_ready(now, peer) {
                    self.advance(now, peer);
                }
                true
            }
            _ => false,
        };
        self.ignored_sdus += u64::from(!is_understood);
        self.settle();
    }

    /// The data direct VC with the client at `peer` is there: the call of this client, or the other's, is
    /// complete.
    pub(in crate::atm) fn handle_connected(&mut self, now: Time, peer: usize, role: Role) {
        self.catch_up(now);
        self.endpoint.channels.connect(now, peer, role);
        if role == Role::Caller {
            self.endpoint.send(data_direct(peer), &Message::ReadyIndication);
            self.advance(now, peer);
        }
        self.settle();
    }

    /// The data direct VC with the client at `peer` is gone.
    pub(in crate::atm) fn handle_released(&mut self, now: Time, peer: usize) {
        self.catch_up(now);
        self.endpoint.channels.release(peer);
        self.advance(now, peer);
        self.settle();
    }

    /// The device at this port knows `address` behind another of its ports until `until`; not any more,
    /// if that is over.
    pub(in crate::atm) fn note_reachable(&mut self, now: Time, address: Address, until: Time) {
        if !self.reachable.note(now, address, until) {
            return;
        }
        self.catch_up(now);
        let Some(entry) = self.entries.get_mut(&address) else { return };
        let Some(peer) = entry.peer() else { return };
        // It was behind another client: tell everybody that it is here now.
        let target_address = self.endpoint.address_of(peer);
        let target = LanDestination::Mac(address);
        let frame =
            ControlFrame { target, target_address, ..self.endpoint.request(Opcode::NarpRequest) };
        self.endpoint.send(CONTROL_DIRECT, &Message::Frame(Box::new(frame)));
        entry.handle_move(now, None, &mut self.endpoint);
        self.settle();
    }

    /// The client asked to be called at `now` ([`Client::poll_timeout`]).
    pub(in crate::atm) fn handle_timeout(&mut self, now: Time) {
        self.join.handle_timeout(now, &mut self.endpoint);
        while let Some(due) = self.endpoint.channels.poll_due(now) {
            match due {
                Due::Query(peer) => self.endpoint.send(data_direct(peer), &Message::ReadyQuery),
                Due::Release(peer) => {
                    self.endpoint.actions.push_back(Action::Release { peer });
                }
                Due::Ready(peer) => self.advance(now, peer),
            }
        }
        for entry in self.entries.values_mut() {
            if entry.deadline(&self.endpoint).is_some_and(|deadline| deadline <= now) {
                entry.handle_timeout(now, &mut self.endpoint);
            }
        }
        self.entries.retain(|_, entry| !entry.is_idle());
        self.settle();
    }

    /// When to call [`Client::handle_timeout`] next; it may find nothing to do.
    pub(in crate::atm) fn poll_timeout(&self) -> Option<Time> {
        self.deadline
    }

    /// What is to be done, in order, until `None`.
    pub(in crate::atm) fn poll_action(&mut self) -> Option<Action> {
        self.endpoint.actions.pop_front()
    }

    /// A frame is held here that the machine or the device at `port` may get.
    pub(in crate::atm) fn waits_for(&self, port: usize) -> bool {
        let settings = self.endpoint.settings();
        let may_get = |address: &Address| settings.relays[port] || settings.macs[port] == *address;
        port != settings.port
            && self.entries.iter().any(|(address, entry)| entry.is_waiting() && may_get(address))
    }

    /// SDUs that this client does not understand, and answers that it does not wait for.
    pub(in crate::atm) fn ignored_sdus(&self) -> u64 {
        self.ignored_sdus
    }

    /// What is due comes before anything new.
    fn catch_up(&mut self, now: Time) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.handle_timeout(now);
        }
    }

    fn settle(&mut self) {
        let entries = self.entries.values().filter_map(|entry| entry.deadline(&self.endpoint));
        let others = [self.join.deadline(), self.endpoint.channels.deadline()];
        self.deadline = entries.chain(others.into_iter().flatten()).min();
    }

    /// The channel with `peer` has changed.
    fn advance(&mut self, now: Time, peer: usize) {
        for entry in self.entries.values_mut().filter(|entry| entry.peer() == Some(peer)) {
            entry.advance(now, &mut self.endpoint);
        }
    }

    /// `false`: not understood, or not waited for.
    fn handle_control_frame(&mut self, now: Time, vci: u16, frame: &ControlFrame) -> bool {
        let endpoint = &mut self.endpoint;
        match (vci, frame.opcode, frame.target) {
            (CONFIGURATION_DIRECT, Opcode::ConfigureResponse, _)
            | (CONTROL_DIRECT, Opcode::JoinResponse, _) => {
                self.join.handle_response(now, frame, endpoint)
            }
            (CONTROL_DIRECT, Opcode::ArpResponse, LanDestination::Mac(address)) => {
                match self.entries.get_mut(&address) {
                    Some(entry) => entry.handle_arp_response(now, frame, endpoint),
                    None => self.join.handle_response(now, frame, endpoint),
                }
            }
            (CONTROL_DIRECT, Opcode::FlushResponse, _) => self
                .entries
                .values_mut()
                .any(|entry| entry.handle_flush_response(now, frame, endpoint)),
            (CONTROL_DISTRIBUTE, Opcode::ArpRequest, LanDestination::Mac(address)) => {
                self.answer_for_others(now, address, frame);
                true
            }
            (CONTROL_DISTRIBUTE, Opcode::NarpRequest, LanDestination::Mac(address)) => {
                self.handle_narp(now, address, frame);
                true
            }
            (CONTROL_DISTRIBUTE, Opcode::TopologyRequest, _) => {
                endpoint.topology_changes = frame.flags.has(Flags::TOPOLOGY_CHANGE);
                // What is older than C18 is forgotten at once.
                self.handle_timeout(now);
                true
            }
            (vci, Opcode::FlushRequest, _)
                if vci == MULTICAST_FORWARD || peer_of(vci).is_some() =>
            {
                self.answer_flush(frame);
                true
            }
            _ => false,
        }
    }

    /// A flush for this client has come the way of the frames before it, so they are all here.
    fn answer_flush(&mut self, request: &ControlFrame) {
        if request.target_address == self.endpoint.address()
            && let Some(response) = request.response()
        {
            self.endpoint.send(CONTROL_DIRECT, &Message::Frame(Box::new(response)));
        }
    }

    /// A request for an address that no client has registered.
    fn answer_for_others(&mut self, now: Time, address: Address, request: &ControlFrame) {
        if request.requester == self.endpoint.lec_id || !self.reachable.contains(now, address) {
            return;
        }
        let Some(response) = request.response() else { return };
        let target_address = self.endpoint.address();
        let response = ControlFrame { flags: Flags::REMOTE, target_address, ..response };
        self.endpoint.send(CONTROL_DIRECT, &Message::Frame(Box::new(response)));
    }

    /// An address that was behind one client is now behind another.
    fn handle_narp(&mut self, now: Time, address: Address, request: &ControlFrame) {
        let Some(entry) = self.entries.get_mut(&address) else { return };
        let was_there = |peer| self.endpoint.address_of(peer) == request.target_address;
        if entry.peer().is_some_and(was_there) {
            let peer = self.endpoint.peer_with(request.source_address);
            entry.handle_move(now, peer, &mut self.endpoint);
        }
    }
}
