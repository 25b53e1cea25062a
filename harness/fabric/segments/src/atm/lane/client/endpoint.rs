// SPDX-License-Identifier: Apache-2.0
//! What every part of a client uses: who it is, its channels, and the actions that it wants done.

use std::collections::VecDeque;

use sundial_core::{Frame, Refusal};
use sundial_wire::atm::lane::{AtmAddress, ControlFrame, LanDestination, Message, Opcode};
use sundial_wire::ethernet::Address;

use super::channels::Channels;
use crate::atm::lane::{
    Action, ClientSettings, LaneSettings, MULTICAST_SEND, Sdu, client_address, data_direct,
};

/// Which VC a frame takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// Multicast send: the broadcast and unknown server sends a copy to every client.
    Bus,
    /// The data direct VC with the client at this port.
    Direct(usize),
}

impl Path {
    pub(super) fn vci(self) -> u16 {
        match self {
            Self::Bus => MULTICAST_SEND,
            Self::Direct(peer) => data_direct(peer),
        }
    }
}

/// One client's side of the emulated LAN.
#[derive(Debug)]
pub(super) struct Endpoint {
    settings: ClientSettings,
    address: AtmAddress,
    /// C14; 0 before it has joined.
    pub(super) lec_id: u16,
    /// C19.
    pub(super) topology_changes: bool,
    pub(super) channels: Channels,
    pub(super) actions: VecDeque<Action>,
    last_transaction: u32,
}

impl Endpoint {
    pub(super) fn new(settings: ClientSettings) -> Self {
        Self {
            address: client_address(settings.macs[settings.port]),
            lec_id: 0,
            topology_changes: false,
            channels: Channels::new(&settings),
            actions: VecDeque::new(),
            last_transaction: 0,
            settings,
        }
    }

    pub(super) fn settings(&self) -> &ClientSettings {
        &self.settings
    }

    pub(super) fn lane(&self) -> &LaneSettings {
        &self.settings.lane
    }

    pub(super) fn address(&self) -> AtmAddress {
        self.address
    }

    pub(super) fn mac(&self) -> Address {
        self.settings.macs[self.settings.port]
    }

    /// The port belongs to a device, so addresses are behind it that are not registered.
    pub(super) fn is_proxy(&self) -> bool {
        self.settings.relays[self.settings.port]
    }

    /// Where frames to `address` go if every client knows every port from the start. An address of no
    /// port is behind a device: with just one other, it is there.
    pub(super) fn static_path(&self, address: Address) -> Path {
        let ClientSettings { port, macs, relays, .. } = &self.settings;
        let is_other = |peer: &usize| peer != port;
        let mut devices = (0..macs.len()).filter(is_other).filter(|&peer| relays[peer]);
        let at = (0..macs.len()).filter(is_other).find(|&peer| macs[peer] == address);
        let peer = at.or_else(|| devices.next().filter(|_| devices.next().is_none()));
        peer.map_or(Path::Bus, Path::Direct)
    }

    /// The address of the client at `peer`, as the network knows it.
    pub(super) fn address_of(&self, peer: usize) -> AtmAddress {
        client_address(self.settings.macs[peer])
    }

    /// The port of the other client with `address`.
    pub(super) fn peer_with(&self, address: AtmAddress) -> Option<usize> {
        let peers = 0..self.settings.macs.len();
        peers
            .filter(|&peer| peer != self.settings.port)
            .find(|&peer| self.address_of(peer) == address)
    }

    /// A request with a new transaction and what every request has in common.
    pub(super) fn request(&mut self, opcode: Opcode) -> ControlFrame {
        self.last_transaction = self.last_transaction.wrapping_add(1);
        let transaction = self.last_transaction;
        ControlFrame {
            requester: self.lec_id,
            source: LanDestination::Mac(self.mac()),
            ..ControlFrame::request(opcode, transaction, self.address)
        }
    }

    pub(super) fn send(&mut self, vci: u16, message: &Message) {
        self.actions.push_back(Action::Send { vci, sdu: message.into() });
    }

    /// Sends `frame` and returns its transaction.
    pub(super) fn send_request(&mut self, vci: u16, frame: ControlFrame) -> u32 {
        let transaction = frame.transaction;
        self.send(vci, &Message::Frame(Box::new(frame)));
        transaction
    }

    pub(super) fn send_data(&mut self, path: Path, frame: Frame) {
        let sdu = Sdu::Data { lec_id: self.lec_id, frame };
        self.actions.push_back(Action::Send { vci: path.vci(), sdu });
    }

    /// Drops a frame of the machine.
    pub(super) fn drop(&mut self, frame: Frame, refusal: Refusal) {
        self.actions.push_back(Action::Drop { frame, refusal });
    }

    /// Calls the client at `peer`, unless there is a channel or a call already.
    pub(super) fn connect(&mut self, peer: usize) {
        if self.channels.call(peer) {
            self.actions.push_back(Action::Connect { peer });
        }
    }
}
