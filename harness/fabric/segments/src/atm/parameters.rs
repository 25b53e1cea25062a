// SPDX-License-Identifier: Apache-2.0
//! What a segment of ATM is, checked: nothing in it can be wrong any more.

use std::net::Ipv4Addr;
use std::sync::Arc;

use serde::Deserialize;
use sundial_core::Span;
use sundial_wire::atm::encapsulation::Encapsulation;

use super::lane::LaneSettings;
use super::units::Units;

/// A segment of ATM: adapters, their lines, and a switch.
#[derive(Clone, Debug)]
pub struct AtmParameters {
    /// By port.
    pub(super) ports: Vec<PortParameters>,
    pub(super) carriage: Carriage,
    pub(super) interleave: Interleave,
    /// From the last bit of a cell at the switch to its place in the output queue.
    pub(super) cell_latency: Span,
    /// A cell takes up to so much longer.
    pub(super) cdv: Span,
    pub(super) queue: QueueParameters,
    pub(super) capture: CaptureParameters,
}

/// One port of the switch, its line, and the adapter at the other end.
#[derive(Clone, Debug)]
pub(super) struct PortParameters {
    pub(super) line: LineParameters,
    pub(super) propagation: Span,
    /// From the hand-in of a frame to its first cell.
    pub(super) tx_latency: Span,
    /// From the last bit of a frame's last cell to its delivery.
    pub(super) rx_latency: Span,
    /// Polices every VC from the adapter.
    pub(super) contract: Option<Contract>,
    /// From one cell of a VC to the next, as the adapter spaces them.
    pub(super) shaping: Option<Units>,
    /// On the line to the switch.
    pub(super) from_adapter: Impairments,
    /// On the line from it.
    pub(super) to_adapter: Impairments,
}

/// A line, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineParameters {
    pub(super) rate_bps: u64,
    /// How long one cell takes.
    pub(super) cell: Units,
}

/// How Ethernet frames travel.
#[derive(Clone, Debug)]
pub(super) enum Carriage {
    /// LAN emulation.
    Lane(LaneParameters),
    /// Bridged over a mesh of permanent VCs.
    Bridged(Encapsulation),
    /// Classical IP over a mesh of permanent VCs; the addresses behind each port.
    Routed(Vec<Vec<Ipv4Addr>>),
}

/// LAN emulation: its variables, and the port of its servers.
#[derive(Clone, Debug)]
pub(super) struct LaneParameters {
    pub(super) settings: Arc<LaneSettings>,
    /// The longest Ethernet frame that fits.
    pub(super) most_frame_bytes: usize,
    pub(super) vc_setup: Span,
    pub(super) service_line: LineParameters,
}

/// The order in which an adapter sends the cells of several PDUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Interleave {
    /// PDU after PDU.
    Pdu,
    /// A cell of each VC in turn.
    Cells,
}

/// What an output queue holds and what it discards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueParameters {
    /// Places; the cell that is being sent takes none.
    pub(super) cells: u64,
    pub(super) discard: Discard,
    /// Places of one VC.
    pub(super) vc_cells: Option<u64>,
    /// Cells with CLP 1 find no place when so many are taken.
    pub(super) clp1_above: Option<u64>,
}

/// What happens to the rest of a PDU of which a cell finds no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discard {
    /// Nothing: it is sent.
    Tail,
    /// Partial packet discard: it is dropped but for the last cell.
    Partial,
    /// The same; and a PDU that begins when `above` places are taken is dropped as a whole.
    Early { above: u64 },
}

/// What the sender of a port's cells agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contract {
    /// From one cell to the next at the contract's rate.
    pub(super) interval: Units,
    pub(super) tolerance: Units,
    pub(super) action: Action,
}

/// What happens to a cell that breaks its contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    Drop,
    /// It goes on with cell loss priority 1.
    Tag,
}

/// What happens to cells on a line; each number is a probability for one cell. The default does nothing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Impairments {
    pub(super) cell_loss: f64,
    pub(super) gemodel: Option<Gemodel>,
    /// One payload bit is wrong.
    pub(super) payload_bit: f64,
    /// A header bit is wrong; that a second one is, too, is just as likely again.
    pub(super) header_bit: f64,
}

/// Losses in bursts (Gilbert and Elliott), named as by tc-netem.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Gemodel {
    /// Probability of going from good to bad.
    pub(super) p: f64,
    /// Probability of going from bad to good; 1 - p where not given.
    pub(super) r: Option<f64>,
    /// Probability of loss in the bad state; 1 where not given.
    pub(super) one_minus_h: Option<f64>,
    /// Probability of loss in the good state; 0 where not given.
    pub(super) one_minus_k: Option<f64>,
}

/// What is recorded beside Ethernet frames and PDUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CaptureParameters {
    /// Single cells.
    pub(super) cells: bool,
    /// The capture of cells ends after so many.
    pub(super) cells_most: u64,
}
