// SPDX-License-Identifier: Apache-2.0
//! The one interface of every wire model, and what a model tells the world.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Frame, Span, Time};

/// A wire model: a state machine that is told of events and says what follows from them.
///
/// It never reads a clock, opens anything or draws from an unseeded generator. Calls come in order of
/// time; at one instant timeouts come first, then frames in the caller's fixed order. After each call
/// take the outputs with [`Segment::poll_output`] until `None`.
///
/// Four groups: `handle_*` something happened, `poll_*` something to do, the rest only look.
pub trait Segment {
    /// A station hands a frame to its adapter at `now`. Timeouts that are due by `now` are handled
    /// first, so that a caller cannot get the order wrong.
    fn handle_frame(&mut self, now: Time, port: usize, frame: Frame);

    /// The model asked to be called at `now` ([`Segment::poll_timeout`]). Everything due by `now` is
    /// handled at its own time, so a late call changes nothing but when the outcome is known.
    fn handle_timeout(&mut self, now: Time);

    /// When to call [`Segment::handle_timeout`] next; `None`: nothing inside wants time.
    fn poll_timeout(&self) -> Option<Time>;

    /// What has been decided since the last call, in order, until `None`.
    fn poll_output(&mut self) -> Option<Output>;

    /// Least time from a frame handed in at `from` to any delivery at `to`, for an empty segment.
    /// [`Span::MAX`]: never.
    fn lookahead(&self, from: usize, to: usize) -> Span;

    /// No delivery that is still inside and not yet polled will be due at `port` before this;
    /// `None`: nothing is inside for it.
    fn earliest_delivery(&self, port: usize) -> Option<Time>;

    /// The same for the adapter of `port` finishing a frame: a place in its transmit ring falls free.
    fn earliest_tx_done(&self, port: usize) -> Option<Time>;

    /// What has been counted so far.
    fn counters(&self) -> SegmentCounters;
}

/// A [`Output::Record`] may be stamped before the call that emits it, for a hub knows only after the
/// collision window that a transmission succeeded; but never more than this before it: two slots at
/// 10 Mb/s.
pub const RECORD_LAG: Span = Span::from_ns(102_400);

/// What a model has decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The last bit of `frame` reaches the station at `port` at `due` (>= the time of the call).
    Deliver {
        /// End of the last bit.
        due: Time,
        /// The receiving port.
        port: usize,
        /// What arrives.
        frame: Frame,
    },
    /// The adapter of `port` is through with a frame. Exactly one per frame handed in, also for
    /// refused and dropped ones.
    TxDone {
        /// When the place in the ring falls free.
        due: Time,
        /// The sending port.
        port: usize,
    },
    /// A line of the capture.
    Record {
        /// Stamp, at most [`RECORD_LAG`] before the call.
        at: Time,
        /// A port, or the number of ports for the segment's fate interface.
        interface: usize,
        /// As the machine at the port sees it.
        direction: Direction,
        /// The bytes recorded.
        frame: Frame,
        /// The packet comment: why a frame is on the fate interface.
        comment: Option<String>,
    },
}

/// Direction of a recorded frame, as the machine at the port sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Towards the machine.
    Inbound,
    /// From the machine.
    Outbound,
    /// Neither: frames on the fate interface.
    Unknown,
}

/// Counters of one segment, by port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SegmentCounters {
    /// In port order.
    pub ports: Vec<PortCounters>,
}

/// Counters of one port. Every frame handed in is offered; it is then sent, dropped with a reason, or
/// still waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortCounters {
    /// Frames handed in by the station.
    pub offered_frames: u64,
    /// Frames that left the adapter in full.
    pub tx_frames: u64,
    /// Their bytes, without preamble, padding and FCS.
    pub tx_bytes: u64,
    /// Frames delivered to the station.
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
    /// Frames that waited for another station's carrier or for the gap after it.
    pub deferred: u64,
    /// Remains of collided transmissions that this port heard.
    pub fragments_seen: u64,
    /// Frames sent from this port to all others because the address was unknown or a group.
    pub flooded: u64,
    /// Frames that a switch kept back because their destination is at the port they came from.
    pub filtered: u64,
}

impl PortCounters {
    pub(crate) fn count_drop(&mut self, reason: &'static str) {
        *self.dropped.entry(reason).or_insert(0) += 1;
    }

    /// Frames dropped, for any reason.
    pub fn dropped_frames(&self) -> u64 {
        self.dropped.values().sum()
    }
}
