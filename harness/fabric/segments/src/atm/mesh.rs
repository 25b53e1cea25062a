// SPDX-License-Identifier: Apache-2.0
//! Permanent virtual channels from every port to every other (RFC 2684): bridged, or classical IP, where the
//! adapters answer ARP in place of an ATMARP server (RFC 2225).

use std::net::Ipv4Addr;

use sundial_core::{Frame, Refusal, Rule, SegmentParameters, Why};
use sundial_wire::atm::encapsulation::Encapsulation;
use sundial_wire::ethernet::{Address, HEADER_BYTES, Header};

use super::channels::Channels;

const FIRST_PVC: u16 = 100;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_ARP: u16 = 0x0806;
/// Ethernet, IPv4, 6 and 4 octets, request (RFC 826).
const ARP_REQUEST: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 1];
const ARP_REPLY: u8 = 2;
const ARP_BYTES: usize = 28;
const IPV4_HEADER_BYTES: usize = 20;

/// Which frames go where.
#[derive(Debug)]
pub(super) struct Mesh {
    macs: Vec<Address>,
    /// The addresses behind each port, if packets travel without their Ethernet headers.
    routes: Option<Vec<Vec<Ipv4Addr>>>,
    pub(super) encapsulation: Encapsulation,
}

/// What an adapter does with a frame of its machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It goes to this port.
    One(usize),
    /// It goes to every other port.
    Flood,
    /// The adapter answers as the machine at `port` would.
    Answer { port: usize, reply: Frame },
    /// It goes nowhere.
    Drop(Refusal),
}

/// The VCI, at one port, of its permanent channel with `peer`.
fn pvc(peer: usize) -> u16 {
    FIRST_PVC + u16::try_from(peer).expect("a segment has fewer ports than VCIs")
}

impl Mesh {
    /// A mesh that bridges.
    pub(super) fn bridged(common: &SegmentParameters, encapsulation: Encapsulation) -> Self {
        let macs = common.macs.iter().copied().map(Address).collect();
        Self { macs, routes: None, encapsulation }
    }

    /// A mesh that carries IP packets; `routes` are the addresses behind each port.
    pub(super) fn routed(common: &SegmentParameters, routes: Vec<Vec<Ipv4Addr>>) -> Self {
        let bridged = Self::bridged(common, Encapsulation::Routed);
        Self { routes: Some(routes), ..bridged }
    }

    /// The channels between `ports` ports.
    pub(super) fn channels(ports: usize) -> Channels {
        let mut channels = Channels::default();
        for port in 0..ports {
            for peer in (0..ports).filter(|&peer| peer != port) {
                channels.open(port, pvc(peer), &[(peer, pvc(port))]);
            }
        }
        channels
    }

    /// The VCI, at a sender, of the channel to `to`.
    pub(super) fn vci(to: usize) -> u16 {
        pvc(to)
    }

    /// What the adapter of `port` does with `frame`.
    pub(super) fn decide(&self, port: usize, frame: &Frame) -> Decision {
        let (header, payload) = Header::parse(frame).expect("shorter frames are refused");
        match &self.routes {
            None => self.owner(port, header.destination).map_or(Decision::Flood, Decision::One),
            Some(routes) => match header.ethertype {
                ETHERTYPE_IPV4 => self.route(port, header.destination, payload),
                ETHERTYPE_ARP => self.answer(routes, port, payload),
                _ => not_ip(),
            },
        }
    }

    /// The port of the machine with an address, another than `port`.
    fn owner(&self, port: usize, address: Address) -> Option<usize> {
        self.macs.iter().position(|&mac| mac == address).filter(|&owner| owner != port)
    }

    /// The way of an IP packet: the channel of its next hop (RFC 2225, section 7), which ARP has named by its MAC address.
    /// The packet's own destination may be behind that hop.
    fn route(&self, port: usize, next_hop: Address, packet: &[u8]) -> Decision {
        if packet.len() < IPV4_HEADER_BYTES || packet[0] >> 4 != 4 {
            return not_ip();
        }
        let unknown = || no_vc(address(&packet[16..20]));
        self.owner(port, next_hop).map_or_else(unknown, Decision::One)
    }

    /// The answer to an ARP request about a machine at another port.
    fn answer(&self, routes: &[Vec<Ipv4Addr>], port: usize, request: &[u8]) -> Decision {
        if request.len() < ARP_BYTES || request[..8] != ARP_REQUEST {
            return not_ip();
        }
        let target = &request[24..28];
        let to = match find(routes, port, address(target)) {
            Ok(to) => to,
            Err(decision) => return decision,
        };
        let asker = &request[8..18];
        let mut reply = Vec::with_capacity(HEADER_BYTES + ARP_BYTES);
        reply.extend_from_slice(&asker[..6]);
        reply.extend_from_slice(&self.macs[to].0);
        reply.extend_from_slice(&ETHERTYPE_ARP.to_be_bytes());
        reply.extend_from_slice(&ARP_REQUEST[..7]);
        reply.push(ARP_REPLY);
        reply.extend_from_slice(&self.macs[to].0);
        reply.extend_from_slice(target);
        reply.extend_from_slice(asker);
        Decision::Answer { port: to, reply: reply.into() }
    }

    /// The frame that the machine at `to` gets for `frame` from `from`.
    pub(super) fn restore(&self, from: usize, to: usize, frame: &Frame) -> Frame {
        let is_the_same = || frame[..6] == self.macs[to].0 && frame[6..12] == self.macs[from].0;
        if self.routes.is_none() || is_the_same() {
            return frame.clone();
        }
        let mut restored = frame.to_vec();
        restored[..6].copy_from_slice(&self.macs[to].0);
        restored[6..12].copy_from_slice(&self.macs[from].0);
        restored.into()
    }
}

/// The port behind which `address` is, another than `port`.
fn find(routes: &[Vec<Ipv4Addr>], port: usize, address: Ipv4Addr) -> Result<usize, Decision> {
    let owner = routes.iter().position(|behind| behind.contains(&address));
    owner.filter(|&owner| owner != port).ok_or_else(|| no_vc(address))
}

fn no_vc(address: Ipv4Addr) -> Decision {
    let why = Why::Address { address: address.to_string() };
    Decision::Drop(Refusal::with(Rule::NoVc, why))
}

fn not_ip() -> Decision {
    Decision::Drop(Refusal::by(Rule::NotIp))
}

fn address(bytes: &[u8]) -> Ipv4Addr {
    let bytes: [u8; 4] = bytes.try_into().expect("an address has four bytes");
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common() -> SegmentParameters {
        SegmentParameters::of_machines(3, 1)
    }

    fn routed() -> Mesh {
        let routes = (1..4).map(|host| vec![Ipv4Addr::new(10, 0, 0, host)]).collect();
        Mesh::routed(&common(), routes)
    }

    fn frame(destination: [u8; 6], ethertype: u16, payload: &[u8]) -> Frame {
        let mut frame = destination.to_vec();
        frame.extend([2, 0, 0, 0, 0, 0]);
        frame.extend(ethertype.to_be_bytes());
        frame.extend(payload);
        frame.into()
    }

    fn packet_to(host: u8) -> Vec<u8> {
        let mut packet = vec![0; 24];
        packet[0] = 0x45;
        packet[16..20].copy_from_slice(&[10, 0, 0, host]);
        packet
    }

    #[test]
    fn a_bridge_floods_what_is_for_nobody_it_knows() {
        let mesh = Mesh::bridged(&common(), Encapsulation::Bridged);
        let to = |last| frame([2, 0, 0, 0, 0, last], 0x0800, &[]);
        assert_eq!(mesh.decide(0, &to(2)), Decision::One(2));
        assert_eq!(mesh.decide(0, &to(9)), Decision::Flood);
        assert_eq!(mesh.decide(0, &frame([0xff; 6], 0x0806, &[])), Decision::Flood);
    }

    #[test]
    fn packets_go_to_their_next_hop() {
        let routed = routed();
        let by =
            |mac, host| routed.decide(0, &frame([2, 0, 0, 0, 0, mac], 0x0800, &packet_to(host)));
        assert_eq!(by(2, 3), Decision::One(2));
        assert_eq!(by(1, 77), Decision::One(1), "behind a router");
        assert_eq!(by(9, 9), no_vc(Ipv4Addr::new(10, 0, 0, 9)));
        assert_eq!(by(0, 2), no_vc(Ipv4Addr::new(10, 0, 0, 2)), "that is the sender");
        for (ethertype, payload) in [(0x86dd, &[0x60; 40][..]), (0x0800, &[0x45; 19])] {
            assert_eq!(routed.decide(0, &frame([0xff; 6], ethertype, payload)), not_ip());
        }
    }

    #[test]
    fn an_arp_request_is_answered_with_the_address_of_the_owner() {
        let mut request = ARP_REQUEST.to_vec();
        request.extend([2, 0, 0, 0, 0, 0, 10, 0, 0, 1]);
        request.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
        let mut reply = vec![0, 1, 8, 0, 6, 4, 0, 2];
        reply.extend([2, 0, 0, 0, 0, 1, 10, 0, 0, 2]);
        reply.extend([2, 0, 0, 0, 0, 0, 10, 0, 0, 1]);
        let mut expected = vec![2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 8, 6];
        expected.extend(reply);
        let decision = routed().decide(0, &frame([0xff; 6], 0x0806, &request));
        assert_eq!(decision, Decision::Answer { port: 1, reply: expected.into() });
    }

    #[test]
    fn headers_are_restored_from_the_addresses_of_the_ports() {
        let routed = routed();
        let odd = frame([0xff; 6], 0x0800, &packet_to(2));
        assert_eq!(routed.restore(0, 1, &odd), frame([2, 0, 0, 0, 0, 1], 0x0800, &packet_to(2)));
    }
}
