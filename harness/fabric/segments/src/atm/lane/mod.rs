// SPDX-License-Identifier: Apache-2.0
//! LAN emulation 1.0 (af-lane-0021): the clients in the adapters, and the services behind the switch.
//!
//! State machines over whole SDUs. The segment carries the SDUs and calls in order of time; after each
//! call it takes what follows with `poll_action` until `None`. `README.md` tells what is simplified.

mod client;
mod services;

use std::sync::Arc;

use sundial_core::{Frame, Refusal, Span};
use sundial_wire::atm::lane::{self, AtmAddress, ElanName, FrameSize, Message};
use sundial_wire::ethernet::Address;

pub(super) use client::Client;
pub(super) use services::Services;

/// Configuration direct: a client and the configuration server (well known).
pub(super) const CONFIGURATION_DIRECT: u16 = 17;
/// Control direct: a client and the LAN emulation server.
pub(super) const CONTROL_DIRECT: u16 = 33;
/// Control distribute: from the LAN emulation server to every client.
pub(super) const CONTROL_DISTRIBUTE: u16 = 34;
/// Multicast send: from a client to the broadcast and unknown server.
pub(super) const MULTICAST_SEND: u16 = 35;
/// Multicast forward: from the broadcast and unknown server to every client.
pub(super) const MULTICAST_FORWARD: u16 = 36;
const FIRST_DATA_DIRECT: u16 = 64;

/// The VCI, at one client's interface, of its data direct VC with the client at `peer`.
pub(super) fn data_direct(peer: usize) -> u16 {
    FIRST_DATA_DIRECT + u16::try_from(peer).expect("a segment has fewer ports than VCIs")
}

/// The port at the other end of the data direct VC `vci`.
fn peer_of(vci: u16) -> Option<usize> {
    vci.checked_sub(FIRST_DATA_DIRECT).map(usize::from)
}

/// What travels on a VC: an SDU of AAL5. Cloning shares its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sdu {
    /// An Ethernet frame behind the LEC id of the client that sent it.
    Data {
        /// Of the sender.
        lec_id: u16,
        /// As the machine handed it in; padding is added by [`Sdu::put`] and exists only there.
        frame: Frame,
    },
    /// A control frame.
    Control(Arc<[u8]>),
}

impl Sdu {
    /// Its length on the VC.
    pub(super) fn octets(&self) -> usize {
        match self {
            Self::Data { frame, .. } => lane::data_octets(frame.len()),
            Self::Control(octets) => octets.len(),
        }
    }

    /// Appends its octets to `out`.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Data { lec_id, frame } => lane::put_data(*lec_id, frame, out),
            Self::Control(octets) => out.extend_from_slice(octets),
        }
    }
}

impl From<&Message> for Sdu {
    fn from(message: &Message) -> Self {
        Self::Control(message.to_octets().into())
    }
}

/// How a client finds the VC for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolution {
    /// Clients join, ask with LE_ARP, and connect when they need a VC.
    LeArp,
    /// Every client knows every other from the start and has a VC with it; no control frame is sent.
    Static,
}

/// The variables of an emulated LAN, by their numbers in af-lane-0021 where they have one.
#[derive(Clone, Debug)]
pub(super) struct LaneSettings {
    /// How clients find each other.
    pub(super) resolution: Resolution,
    /// C3, S3: the longest data frame.
    pub(super) frame_size: FrameSize,
    /// C5: the name of the emulated LAN.
    pub(super) elan: ElanName,
    /// C7: how long a client waits for the answer to a control frame.
    pub(super) control_time_out: Span,
    /// C10: frames to an unknown address that may go by the BUS within C11.
    pub(super) unknown_frames: usize,
    /// C11.
    pub(super) unknown_frame_time: Span,
    /// C12: a data direct VC not used for so long is released.
    pub(super) vcc_time_out: Span,
    /// C13: how often a request is repeated.
    pub(super) retries: u32,
    /// C17: how long an answer to LE_ARP is believed.
    pub(super) ageing: Span,
    /// C18: how long one about an address behind a client is, while the topology changes.
    pub(super) forward_delay: Span,
    /// C20: how long a client waits for the answer to LE_ARP.
    pub(super) le_arp_response_time: Span,
    /// C21: how long it waits for the answer to a flush.
    pub(super) flush_time_out: Span,
    /// C22: a frame sent longer ago has arrived or is lost.
    pub(super) path_switching_delay: Span,
    /// From the last bit of an SDU at a server to the answer, or to the copy.
    pub(super) service_latency: Span,
}

/// What a client is built from.
#[derive(Clone, Debug)]
pub(super) struct ClientSettings {
    /// Its port.
    pub(super) port: usize,
    /// The MAC address of every port.
    pub(super) macs: Vec<Address>,
    /// By port: it belongs to a device that relays for others, so its client is a proxy.
    pub(super) relays: Vec<bool>,
    /// The same for every client.
    pub(super) lane: Arc<LaneSettings>,
}

/// Which end of a call a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Caller,
    Called,
}

/// What a client wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Hand `sdu` to the adapter for `vci`. With [`Sdu::Data`], a frame of the machine leaves its ring.
    Send { vci: u16, sdu: Sdu },
    /// A frame of the machine leaves its ring and goes nowhere.
    Drop { frame: Frame, refusal: Refusal },
    /// Set up a data direct VC; both ends get `handle_connected` when it is there. The other end may be
    /// calling, too.
    Connect { peer: usize },
    /// Release a data direct VC; both ends get `handle_released` before anything else is done.
    /// What was handed to it is still carried. Nothing happens if the other end has just released it.
    Release { peer: usize },
}

/// Where an SDU of a server goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// To the client at this port.
    One(usize),
    /// To every client, point to multipoint.
    Every,
}

/// What a server wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServiceAction {
    /// Hand `sdu` to the adapter of the service port.
    Send { vci: u16, to: Destination, sdu: Sdu },
}

/// The ATM address of the client at a port with address `mac`.
fn client_address(mac: Address) -> AtmAddress {
    AtmAddress::new(mac, 0)
}

#[cfg(test)]
mod tests;
