// SPDX-License-Identifier: Apache-2.0
//! The servers of one emulated LAN, behind one port of the switch: configuration server (LECS), LAN
//! emulation server (LES), broadcast and unknown server (BUS).

mod server;

use std::collections::VecDeque;
use std::sync::Arc;

use sundial_core::Time;
use sundial_wire::atm::lane::{
    AtmAddress, ControlFrame, FrameSize, LanType, Message, Opcode, Status,
};
use sundial_wire::ethernet::Address;

use super::{
    CONFIGURATION_DIRECT, CONTROL_DIRECT, Destination, LaneSettings, MULTICAST_FORWARD,
    MULTICAST_SEND, Sdu, ServiceAction,
};
use server::Server;

/// End system identifier of the servers; those of machines and devices begin 02:53:44:00 and 02:53:44:01.
const IDENTIFIER: Address = Address([0x02, 0x53, 0x44, 0x02, 0x00, 0x00]);
const SERVER_SELECTOR: u8 = 1;
const BUS_SELECTOR: u8 = 2;

fn server_address() -> AtmAddress {
    AtmAddress::new(IDENTIFIER, SERVER_SELECTOR)
}

fn bus_address() -> AtmAddress {
    AtmAddress::new(IDENTIFIER, BUS_SELECTOR)
}

/// All servers of a segment. Each answer and each copy leaves `service_latency` after what it follows
/// from came in, so all leave in that order.
#[derive(Debug)]
pub(in crate::atm) struct Services {
    settings: Arc<LaneSettings>,
    server: Server,
    leaving: VecDeque<(Time, ServiceAction)>,
    /// How many of `leaving` have had their time.
    due: usize,
    /// By port of their senders.
    ignored_sdus: Vec<u64>,
}

impl Services {
    /// Servers of `ports` clients.
    pub(in crate::atm) fn new(settings: Arc<LaneSettings>, ports: usize) -> Self {
        let server = Server::new(Arc::clone(&settings), ports);
        Self { settings, server, leaving: VecDeque::new(), due: 0, ignored_sdus: vec![0; ports] }
    }

    /// `sdu` of the client at `port` arrived in full on `vci`.
    pub(in crate::atm) fn handle_sdu(&mut self, now: Time, port: usize, vci: u16, sdu: Sdu) {
        let answer = match (vci, &sdu) {
            (MULTICAST_SEND, Sdu::Data { .. }) => Some(to_every(MULTICAST_FORWARD, sdu)),
            (_, Sdu::Control(octets)) => match Message::parse(octets) {
                Some(Message::Frame(frame)) => self.control(port, vci, &frame),
                _ => None,
            },
            _ => None,
        };
        match answer {
            Some(answer) => {
                self.leaving.push_back((now + self.settings.service_latency, answer));
                self.handle_timeout(now);
            }
            None => self.ignored_sdus[port] += 1,
        }
    }

    /// The servers asked to be called at `now` ([`Services::poll_timeout`]).
    pub(in crate::atm) fn handle_timeout(&mut self, now: Time) {
        self.due = self.leaving.partition_point(|(leaves, _)| *leaves <= now);
    }

    /// When the next SDU leaves; nothing that is inside leaves before.
    pub(in crate::atm) fn poll_timeout(&self) -> Option<Time> {
        self.leaving.get(self.due).map(|(leaves, _)| *leaves)
    }

    /// What leaves now, in order, until `None`.
    pub(in crate::atm) fn poll_action(&mut self) -> Option<ServiceAction> {
        self.due = self.due.checked_sub(1)?;
        self.leaving.pop_front().map(|(_, action)| action)
    }

    /// SDUs of the client at `port` that no server understands or answers.
    pub(in crate::atm) fn ignored_sdus(&self, port: usize) -> u64 {
        self.ignored_sdus[port]
    }

    fn control(&mut self, port: usize, vci: u16, frame: &ControlFrame) -> Option<ServiceAction> {
        match (vci, frame.opcode) {
            (CONFIGURATION_DIRECT, Opcode::ConfigureRequest) => {
                let response = self.configure(frame)?;
                Some(to_one(CONFIGURATION_DIRECT, port, response))
            }
            (CONTROL_DIRECT, _) => self.server.handle(port, frame),
            // It follows the frames that it is to flush, on every VC and in every queue.
            (MULTICAST_SEND, Opcode::FlushRequest) => {
                Some(to_every(MULTICAST_FORWARD, message(frame.clone())))
            }
            _ => None,
        }
    }

    /// The configuration server knows one emulated LAN and tells its name, its size and its server.
    fn configure(&self, request: &ControlFrame) -> Option<ControlFrame> {
        let LaneSettings { frame_size, elan, .. } = &*self.settings;
        let fits =
            request.frame_size == FrameSize::Unspecified || request.frame_size == *frame_size;
        let response = request.response()?;
        if !fits {
            return Some(ControlFrame { status: Status::NoConfiguration, ..response });
        }
        Some(ControlFrame {
            lan_type: LanType::Ethernet,
            frame_size: *frame_size,
            elan: elan.clone(),
            target_address: server_address(),
            ..response
        })
    }
}

fn message(frame: ControlFrame) -> Sdu {
    (&Message::Frame(Box::new(frame))).into()
}

fn to_one(vci: u16, port: usize, frame: ControlFrame) -> ServiceAction {
    ServiceAction::Send { vci, to: Destination::One(port), sdu: message(frame) }
}

fn to_every(vci: u16, sdu: Sdu) -> ServiceAction {
    ServiceAction::Send { vci, to: Destination::Every, sdu }
}

#[cfg(test)]
mod tests;
