// SPDX-License-Identifier: Apache-2.0
//! LE_ARP: which client a unicast address is at, or behind.

use sundial_core::{Span, Time};
use sundial_wire::atm::lane::{ControlFrame, Flags, LanDestination, Opcode};
use sundial_wire::ethernet::Address;

use super::endpoint::Endpoint;
use super::request::Request;
use crate::atm::lane::{CONTROL_DIRECT, LaneSettings};

/// What is known about one address, and what has been asked.
#[derive(Debug, Default)]
pub(super) struct Resolution {
    known: Option<Known>,
    inquiry: Option<Request>,
}

#[derive(Debug)]
struct Known {
    peer: usize,
    /// Not the client's own address, but behind it.
    is_remote: bool,
    verified: Time,
}

impl Known {
    /// How long it is believed.
    fn lifetime(&self, lane: &LaneSettings, topology_changes: bool) -> Span {
        if self.is_remote && topology_changes {
            lane.forward_delay.min(lane.ageing)
        } else {
            lane.ageing
        }
    }
}

impl Resolution {
    /// The port of the client that has the address.
    pub(super) fn peer(&self) -> Option<usize> {
        self.known.as_ref().map(|known| known.peer)
    }

    /// Nothing is known and nothing has been asked.
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_none() && self.inquiry.is_none()
    }

    /// A frame for the address makes it worth asking: nothing is known, or what is known would be
    /// forgotten before an answer that is asked for later.
    pub(super) fn is_worth_asking(&self, now: Time, endpoint: &Endpoint) -> bool {
        if self.inquiry.is_some() {
            return false;
        }
        let Some(known) = &self.known else { return true };
        let lane = endpoint.lane();
        let lifetime = known.lifetime(lane, endpoint.topology_changes);
        let asking = lane.le_arp_response_time * (1 + u64::from(lane.retries));
        let half = Span::from_ps(lifetime.as_ps() / 2);
        now >= known.verified + (lifetime - asking.min(half))
    }

    /// Asks the LAN emulation server where `address` is.
    pub(super) fn ask(&mut self, now: Time, address: Address, endpoint: &mut Endpoint) {
        self.send_request(now, address, endpoint.lane().retries, endpoint);
    }

    fn send_request(
        &mut self,
        now: Time,
        address: Address,
        repetitions_left: u32,
        endpoint: &mut Endpoint,
    ) {
        let target = LanDestination::Mac(address);
        let frame = ControlFrame { target, ..endpoint.request(Opcode::ArpRequest) };
        let transaction = endpoint.send_request(CONTROL_DIRECT, frame);
        let patience = endpoint.lane().le_arp_response_time;
        self.inquiry = Some(Request::new(now, transaction, patience, repetitions_left));
    }

    /// An answer about this address; `false`: the client does not wait for it, or cannot call its peer.
    pub(super) fn handle_response(
        &mut self,
        now: Time,
        frame: &ControlFrame,
        endpoint: &Endpoint,
    ) -> bool {
        let is_waited_for =
            self.inquiry.as_ref().is_some_and(|inquiry| inquiry.is_answered_by(frame));
        let Some(peer) = endpoint.peer_with(frame.target_address).filter(|_| is_waited_for) else {
            return false;
        };
        let is_remote = frame.flags.has(Flags::REMOTE);
        *self = Self { known: Some(Known { peer, is_remote, verified: now }), inquiry: None };
        true
    }

    /// The address has moved; to behind `peer`, if that is known.
    pub(super) fn handle_move(&mut self, now: Time, peer: Option<usize>) {
        let known = peer.map(|peer| Known { peer, is_remote: true, verified: now });
        *self = Self { known, inquiry: None };
    }

    pub(super) fn deadline(&self, endpoint: &Endpoint) -> Option<Time> {
        let inquiry = self.inquiry.as_ref().map(|inquiry| inquiry.deadline);
        inquiry.into_iter().chain(self.expiry(endpoint)).min()
    }

    fn expiry(&self, endpoint: &Endpoint) -> Option<Time> {
        let known = self.known.as_ref()?;
        Some(known.verified + known.lifetime(endpoint.lane(), endpoint.topology_changes))
    }

    /// Forgets what is too old, asks again. `true`: no answer came, and nothing is known.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        address: Address,
        endpoint: &mut Endpoint,
    ) -> bool {
        if self.expiry(endpoint).is_some_and(|expiry| expiry <= now) {
            self.known = None;
        }
        let Some(inquiry) = self.inquiry.take_if(|inquiry| inquiry.deadline <= now) else {
            return false;
        };
        if let Some(left) = inquiry.repeat() {
            self.send_request(now, address, left, endpoint);
            return false;
        }
        self.known.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atm::lane::tests::client_settings;

    #[test]
    fn only_addresses_behind_clients_age_faster_and_none_slower() {
        let seconds = |seconds: u64| Span::from_ns(1_000_000_000 * seconds);
        let lane = |ageing| LaneSettings { ageing, ..(*client_settings().lane).clone() };
        // C18 is 15 s.
        for (is_remote, topology_changes, ageing, lifetime) in [
            (false, false, 300, 300),
            (true, false, 300, 300),
            (false, true, 300, 300),
            (true, true, 300, 15),
            (true, true, 10, 10),
        ] {
            let known = Known { peer: 1, is_remote, verified: Time::ZERO };
            let lane = lane(seconds(ageing));
            assert_eq!(known.lifetime(&lane, topology_changes), seconds(lifetime));
        }
    }
}
