// SPDX-License-Identifier: Apache-2.0
//! The interface of every model, and what a model decides.

use std::fmt::Debug;
use std::sync::Arc;

use serde_json::Value;
use sundial_wire::pcapng::LinkType;

use crate::{Fate, Frame, Invalid, Ring, SegmentCounters, Span, Time};

/// What every model is built from, whatever its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentParameters {
    /// Seeds the segment's random streams, together with the run's seed.
    pub name: String,
    /// The run's seed.
    pub seed: u64,
    /// `OWNER:INTERFACE` of each port, for records; the owner is a machine or a device.
    pub ports: Vec<String>,
    /// The address of the adapter at each port.
    pub macs: Vec<[u8; 6]>,
    /// Whether the port belongs to a device that passes on the frames of others.
    pub relays: Vec<bool>,
    /// Places in the transmit ring of the adapter at each port.
    pub rings: Vec<usize>,
    /// How long before the model has a frame it was handed to the adapter at each port. The caller of the
    /// model adds this; only [`SegmentParameters::ring`] needs to know.
    pub adapter_latency: Vec<Span>,
    /// Longer frames are refused. At most [`crate::MAX_FRAME_BYTES`].
    pub max_frame_bytes: usize,
}

impl SegmentParameters {
    /// Machines m0, m1, ... with one interface each, for trying a model out.
    pub fn of_machines(machines: usize, ring_frames: usize) -> Self {
        Self {
            name: "lan".into(),
            seed: 1,
            ports: (0..machines).map(|machine| format!("m{machine}:eth0")).collect(),
            macs: (0..machines).map(|machine| [2, 0, 0, 0, 0, machine as u8]).collect(),
            relays: vec![false; machines],
            rings: vec![ring_frames; machines],
            adapter_latency: vec![Span::ZERO; machines],
            max_frame_bytes: 1514,
        }
    }

    /// The transmit ring of the adapter at `port`.
    pub fn ring(&self, port: usize) -> Ring {
        Ring::new(self.rings[port], self.adapter_latency[port])
    }
}

/// A capture that a model writes beside the main one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FurtherCapture {
    /// Below the folder of captures, without the extension: `atm/elan.pdus`.
    pub path: String,
    /// What the bytes of its records begin with.
    pub link_type: LinkType,
    /// How long before the call that emits it the first record of an [`Output::Train`] may be stamped.
    pub record_lag: Span,
    /// After so many records the capture ends, and the last one says so.
    pub records_most: Option<u64>,
}

/// Records of one interface of a further capture, in order of time, whose bytes are made when they are
/// written. The first is stamped [`Output::Train::at`].
pub trait Train: Debug + Send + Sync {
    /// The stamp of the record after `index`, not before its own; `None`: `index` is the last.
    fn after(&self, _index: usize) -> Option<Time> {
        None
    }

    /// Appends the bytes of record `index`, which is stamped `stamp_ns` (ns since 1970).
    fn put(&self, index: usize, stamp_ns: u64, out: &mut Vec<u8>);

    /// Of record `index`, where it is on the fate interface.
    fn fate(&self, _index: usize) -> Option<&Fate> {
        None
    }
}

/// The same train, wherever it is held.
impl PartialEq for dyn Train {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl Eq for dyn Train {}

/// A model of a segment: a state machine that takes events and says what follows from them.
///
/// It never reads a clock, opens anything or draws from an unseeded generator. Calls come in order of
/// time; at one instant timeouts come first, then frames in the caller's fixed order. After each call
/// take the outputs with [`Segment::poll_output`] until `None`.
///
/// Four groups: `handle_*` something happened, `poll_*` something to do, the rest only look.
pub trait Segment: Send {
    /// The adapter at `port` can begin with a frame at `now`: its latency after the machine or device handed it in.
    /// Timeouts that are due by `now` are handled first, so that a caller cannot get the order wrong.
    fn handle_frame(&mut self, now: Time, port: usize, frame: Frame);

    /// The model asked to be called at `now` ([`Segment::poll_timeout`]). Everything due by `now` is
    /// handled at its own time, so a late call changes nothing but when the outcome is known.
    fn handle_timeout(&mut self, now: Time);

    /// When to call [`Segment::handle_timeout`] next; `None`: nothing inside wants time.
    fn poll_timeout(&self) -> Option<Time>;

    /// What has been decided since the last call, in order, until `None`.
    fn poll_output(&mut self) -> Option<Output>;

    /// Least time from a frame handed in at `from` to any delivery at `to`, for an empty segment.
    /// [`Span::MAX`]: never. What a segment itself answers to a frame, in place of the machine at another port, it delivers
    /// no sooner than the way there and back.
    fn lookahead(&self, from: usize, to: usize) -> Span;

    /// No delivery that is still inside and not yet polled will be due at `port` before this;
    /// `None`: nothing is inside for it. A frame handed in later may free one that waits inside, but what it
    /// frees is then not due sooner than its own [`Segment::lookahead`] after it.
    fn earliest_delivery(&self, port: usize) -> Option<Time>;

    /// The same for the adapter of `port` finishing a frame: a place in its transmit ring falls free.
    fn earliest_tx_done(&self, port: usize) -> Option<Time>;

    /// What has been counted so far.
    fn counters(&self) -> SegmentCounters;

    /// Bits per second of the adapter at `port`, as the capture states it.
    fn rate_bps(&self, port: usize) -> u64;

    /// What the bytes of a [`Output::Record`] begin with. Models that record frames as the machines
    /// hand them in keep the default.
    fn link_type(&self) -> LinkType {
        LinkType::ETHERNET
    }

    /// How long before the call that emits it a [`Output::Record`] may be stamped, if calls come when
    /// [`Segment::poll_timeout`] asks for them. Nothing, for models that decide a frame's start when it
    /// is handed in.
    fn record_lag(&self) -> Span {
        Span::ZERO
    }

    /// Captures beside the main one, in the order of the numbers in [`Output::Train`].
    fn further_captures(&self) -> Vec<FurtherCapture> {
        Vec::new()
    }

    /// The last instant at which the model can be called, and what keeps it from going on; `None`: there is none
    /// before [`Time::MAX`].
    fn last_instant(&self) -> Option<(Time, &'static str)> {
        None
    }

    /// The device at `port` knows `address` behind another of its ports until `until`. `until` <= `now`:
    /// not any more.
    fn note_reachable(&mut self, _now: Time, _port: usize, _address: [u8; 6], _until: Time) {}

    /// A change by hand, in the form of an entry of the kind's `timeline`; its `at_ns` does not count. Returns its instant:
    /// from `now` on, the first at which no frame that the model has can begin any more.
    fn change_by_hand(&mut self, _now: Time, _change: Value) -> Result<Time, Invalid> {
        Err(Invalid::new("", "a segment of this kind does not change"))
    }
}

/// What a model has decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The last bit of `frame` reaches the machine at `port` at `due` (>= the time of the call).
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
        /// Stamp, at most [`Segment::record_lag`] before the call.
        at: Time,
        /// A port, or the number of ports for the segment's fate interface.
        interface: usize,
        /// As the machine at the port sees it.
        direction: Direction,
        /// The bytes recorded.
        frame: Frame,
        /// Why a frame is on the fate interface.
        fate: Option<Box<Fate>>,
    },
    /// A comment of the capture that belongs to no frame.
    Note {
        /// As in [`Output::Record`].
        at: Time,
        /// What it says.
        text: String,
    },
    /// Lines of a further capture.
    Train {
        /// Index into [`Segment::further_captures`].
        capture: usize,
        /// Stamp of the first, at most [`FurtherCapture::record_lag`] before the call.
        at: Time,
        /// As in [`Output::Record`].
        interface: usize,
        /// As the machine at the port sees it.
        direction: Direction,
        /// The lines.
        train: Arc<dyn Train>,
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
