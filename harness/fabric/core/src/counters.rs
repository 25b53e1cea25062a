// SPDX-License-Identifier: Apache-2.0
//! What is counted at the ports of a segment.

use std::collections::BTreeMap;

use serde::Serialize;

/// Counters of one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SegmentCounters {
    /// In port order.
    pub ports: Vec<PortCounters>,
    /// Of a medium that carries cells on virtual channels: by input port and channel, `client:eth0 0.65`.
    pub channels: BTreeMap<String, ChannelCounters>,
}

/// Counters of one virtual channel at the switch. Every cell that came in has gone out, been dropped, or
/// still waits; a channel to several ports counts each copy that goes out or is dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChannelCounters {
    /// Cells that reached the switch.
    pub cells_in: u64,
    /// Cells that left it.
    pub cells_out: u64,
    /// Cells lost there, by cause.
    pub dropped: BTreeMap<&'static str, u64>,
}

/// Counters of one port. Every frame handed in is offered; it is then sent, dropped with a reason, or
/// still waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortCounters {
    /// Frames handed in by the machine.
    pub offered_frames: u64,
    /// Frames that left the adapter in full.
    pub tx_frames: u64,
    /// Their bytes, without preamble, padding and FCS.
    pub tx_bytes: u64,
    /// Frames delivered to the machine.
    pub rx_frames: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames handed in while the transmit ring was full, and dropped.
    pub adapter_full: u64,
    /// Frames sent by this port that did not arrive, by reason; copies of a flooded frame are counted
    /// at the port whose queue dropped them.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Frames of this port that arrived with a bit inverted.
    pub corrupted: u64,
    /// Copies that the wire made of frames of this port.
    pub duplicated: u64,
    /// Frames of this port sent ahead of earlier ones.
    pub reordered: u64,
    /// Transmissions of this port that collided.
    pub collisions: u64,
    /// Frames given up after 16 attempts.
    pub excessive_collisions: u64,
    /// Frames that waited for another port's carrier or for the gap after it.
    pub deferred: u64,
    /// Remains of collided transmissions that this port heard.
    pub fragments_seen: u64,
    /// Frames sent from this port to all others because the address was unknown or a group.
    pub flooded: u64,
    /// Frames that a switch kept back because their destination is at the port they came from.
    pub filtered: u64,
    /// Counters of one kind only, beside the others under these names.
    #[serde(flatten)]
    pub own: BTreeMap<&'static str, u64>,
}

impl PortCounters {
    /// One more frame dropped for `reason`.
    pub fn count_drop(&mut self, reason: &'static str) {
        *self.dropped.entry(reason).or_insert(0) += 1;
    }

    /// Frames dropped, for any reason.
    pub fn dropped_frames(&self) -> u64 {
        self.dropped.values().sum()
    }
}
