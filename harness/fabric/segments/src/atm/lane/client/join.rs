// SPDX-License-Identifier: Apache-2.0
//! How a client becomes a member: configuration, join, address of the BUS.

use sundial_core::{Span, Time};
use sundial_wire::atm::lane::{
    ControlFrame, ElanName, Flags, LanDestination, LanType, Message, Opcode,
};
use sundial_wire::ethernet::Address;

use super::endpoint::Endpoint;
use super::request::Request;
use crate::atm::lane::{CONFIGURATION_DIRECT, CONTROL_DIRECT, ClientSettings, Resolution};

/// Client k begins k microseconds after the first, so that no two requests come in at one instant.
const STAGGER: Span = Span::from_ns(1_000);

/// The way into the emulated LAN.
#[derive(Debug)]
pub(super) struct Join {
    state: State,
    /// As the configuration server said.
    elan: ElanName,
}

#[derive(Debug)]
enum State {
    /// Begins then.
    Off(Time),
    Asking(Step, Request),
    Member,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Configure,
    Join,
    /// LE_ARP of the broadcast address, which is the BUS's.
    FindBus,
}

impl Join {
    pub(super) fn new(settings: &ClientSettings) -> Self {
        let state = match settings.lane.resolution {
            Resolution::LeArp => State::Off(Time::ZERO + STAGGER * settings.port as u64),
            Resolution::Static => State::Member,
        };
        Self { state, elan: ElanName::default() }
    }

    pub(super) fn is_member(&self) -> bool {
        matches!(self.state, State::Member)
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        match &self.state {
            State::Off(begin) => Some(*begin),
            State::Asking(_, request) => Some(request.deadline),
            State::Member => None,
        }
    }

    /// An answer; `false`: not one that is waited for.
    pub(super) fn handle_response(
        &mut self,
        now: Time,
        frame: &ControlFrame,
        endpoint: &mut Endpoint,
    ) -> bool {
        let State::Asking(step, request) = &self.state else { return false };
        if !request.is_answered_by(frame) {
            return false;
        }
        let retries = endpoint.lane().retries;
        match (step, frame.opcode) {
            (Step::Configure, Opcode::ConfigureResponse) => {
                self.elan = frame.elan.clone();
                self.ask(now, Step::Join, retries, endpoint);
            }
            (Step::Join, Opcode::JoinResponse) => {
                endpoint.lec_id = frame.requester;
                self.ask(now, Step::FindBus, retries, endpoint);
            }
            (Step::FindBus, Opcode::ArpResponse) => self.state = State::Member,
            _ => return false,
        }
        true
    }

    pub(super) fn handle_timeout(&mut self, now: Time, endpoint: &mut Endpoint) {
        if self.deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        match &self.state {
            State::Asking(step, request) if let Some(left) = request.repeat() => {
                self.ask(now, *step, left, endpoint);
            }
            // No answer: from the start.
            _ => self.ask(now, Step::Configure, endpoint.lane().retries, endpoint),
        }
    }

    fn ask(&mut self, now: Time, step: Step, repetitions_left: u32, endpoint: &mut Endpoint) {
        let lane = endpoint.lane();
        let (frame_size, control_time_out) = (lane.frame_size, lane.control_time_out);
        let (vci, frame, patience) = match step {
            Step::Configure => {
                endpoint.lec_id = 0;
                let frame = ControlFrame {
                    lan_type: LanType::Ethernet,
                    frame_size,
                    ..endpoint.request(Opcode::ConfigureRequest)
                };
                (CONFIGURATION_DIRECT, frame, control_time_out)
            }
            Step::Join => {
                let flags = if endpoint.is_proxy() { Flags::PROXY } else { Flags::default() };
                let frame = ControlFrame {
                    flags,
                    lan_type: LanType::Ethernet,
                    frame_size,
                    elan: self.elan.clone(),
                    ..endpoint.request(Opcode::JoinRequest)
                };
                (CONTROL_DIRECT, frame, control_time_out)
            }
            Step::FindBus => {
                let target = LanDestination::Mac(Address::BROADCAST);
                let frame = ControlFrame { target, ..endpoint.request(Opcode::ArpRequest) };
                (CONTROL_DIRECT, frame, endpoint.lane().le_arp_response_time)
            }
        };
        let request = Request::new(now, frame.transaction, patience, repetitions_left);
        endpoint.send(vci, &Message::Frame(Box::new(frame)));
        self.state = State::Asking(step, request);
    }
}
