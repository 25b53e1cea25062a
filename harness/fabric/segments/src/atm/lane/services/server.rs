// SPDX-License-Identifier: Apache-2.0
//! The LAN emulation server: members, registered addresses, LE_ARP.

use std::collections::BTreeMap;
use std::sync::Arc;

use sundial_wire::atm::lane::{
    AtmAddress, ControlFrame, Flags, FrameSize, LanDestination, LanType, Opcode, Status,
};
use sundial_wire::ethernet::Address;

use super::{bus_address, message, to_every, to_one};
use crate::atm::lane::{CONTROL_DIRECT, CONTROL_DISTRIBUTE, LaneSettings, ServiceAction};

#[derive(Debug)]
pub(super) struct Server {
    settings: Arc<LaneSettings>,
    /// By port.
    members: Vec<Option<Member>>,
    /// LEC ids are given from 1, and not given again.
    last_lec_id: u16,
    registered: BTreeMap<Address, Registration>,
}

#[derive(Clone, Debug)]
struct Member {
    lec_id: u16,
    is_proxy: bool,
}

#[derive(Debug)]
struct Registration {
    port: usize,
    at: AtmAddress,
}

impl Server {
    pub(super) fn new(settings: Arc<LaneSettings>, ports: usize) -> Self {
        Self { settings, members: vec![None; ports], last_lec_id: 0, registered: BTreeMap::new() }
    }

    /// What follows from `frame` of the client at `port`; `None`: nothing.
    pub(super) fn handle(&mut self, port: usize, frame: &ControlFrame) -> Option<ServiceAction> {
        if frame.opcode == Opcode::JoinRequest {
            return self.answer(port, frame, Self::join);
        }
        // Everything else is for members under their own id, but for answers, which bear the requester's.
        let is_own = self.members[port].as_ref()?.lec_id == frame.requester;
        match frame.opcode {
            Opcode::ArpResponse | Opcode::FlushResponse => {
                let requester = self.port_of(frame.requester)?;
                Some(to_one(CONTROL_DIRECT, requester, frame.clone()))
            }
            _ if !is_own => self.answer(port, frame, |_, _, _| Err(Status::InvalidRequesterId)),
            Opcode::RegisterRequest => self.answer(port, frame, Self::register),
            Opcode::UnregisterRequest => self.answer(port, frame, Self::unregister),
            Opcode::ArpRequest => self.resolve(port, frame),
            Opcode::NarpRequest | Opcode::TopologyRequest => Some(distribute(frame)),
            _ => None,
        }
    }

    /// The response to `request`, which `act` completes or refuses.
    fn answer(
        &mut self,
        port: usize,
        request: &ControlFrame,
        act: impl FnOnce(&mut Self, usize, &mut ControlFrame) -> Result<(), Status>,
    ) -> Option<ServiceAction> {
        let mut response = request.response()?;
        if let Err(status) = act(self, port, &mut response) {
            response.status = status;
        }
        Some(to_one(CONTROL_DIRECT, port, response))
    }

    /// A client that asks again, because it did not hear the answer, gets the same one.
    fn join(&mut self, port: usize, response: &mut ControlFrame) -> Result<(), Status> {
        let LaneSettings { frame_size, elan, .. } = &*self.settings;
        let fits = [FrameSize::Unspecified, *frame_size].contains(&response.frame_size);
        if !fits || response.elan != *elan {
            return Err(Status::InvalidParameters);
        }
        (response.lan_type, response.frame_size) = (LanType::Ethernet, *frame_size);
        self.register(port, response)?;
        let member = self.members[port].get_or_insert_with(|| {
            self.last_lec_id += 1;
            Member { lec_id: self.last_lec_id, is_proxy: response.flags.has(Flags::PROXY) }
        });
        response.requester = member.lec_id;
        Ok(())
    }

    /// The addresses are the requester's own, which the response repeats.
    fn register(&mut self, port: usize, response: &mut ControlFrame) -> Result<(), Status> {
        let address = unicast(response.source)?;
        let at = response.source_address;
        if self.registered.get(&address).is_some_and(|other| other.port != port) {
            return Err(Status::DuplicateLanDestination);
        }
        if self.registered.values().any(|other| other.at == at && other.port != port) {
            return Err(Status::DuplicateAtmAddress);
        }
        self.registered.insert(address, Registration { port, at });
        Ok(())
    }

    fn unregister(&mut self, port: usize, response: &mut ControlFrame) -> Result<(), Status> {
        let address = unicast(response.source)?;
        if self.registered.get(&address).is_none_or(|registration| registration.port != port) {
            return Err(Status::InvalidLanDestination);
        }
        self.registered.remove(&address);
        Ok(())
    }

    /// Answers for registered addresses and for the broadcast address; asks the proxies about others.
    fn resolve(&mut self, port: usize, request: &ControlFrame) -> Option<ServiceAction> {
        let LanDestination::Mac(address) = request.target else { return None };
        let at = if address == Address::BROADCAST {
            Some(bus_address())
        } else {
            self.registered.get(&address).map(|registration| registration.at)
        };
        if let Some(target_address) = at {
            let response = ControlFrame { target_address, ..request.response()? };
            return Some(to_one(CONTROL_DIRECT, port, response));
        }
        let others = self.members.iter().enumerate().filter(|(other, _)| *other != port);
        let mut members = others.filter_map(|(_, member)| member.as_ref());
        members.any(|member| member.is_proxy).then(|| distribute(request))
    }

    fn port_of(&self, lec_id: u16) -> Option<usize> {
        let is_member =
            |member: &Option<Member>| member.as_ref().is_some_and(|m| m.lec_id == lec_id);
        self.members.iter().position(is_member)
    }
}

fn unicast(source: LanDestination) -> Result<Address, Status> {
    match source {
        LanDestination::Mac(address) if !address.is_group() => Ok(address),
        _ => Err(Status::InvalidLanDestination),
    }
}

fn distribute(frame: &ControlFrame) -> ServiceAction {
    to_every(CONTROL_DISTRIBUTE, message(frame.clone()))
}
