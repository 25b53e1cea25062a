// SPDX-License-Identifier: Apache-2.0
//! What decides in the fabric, whatever kinds of segment there are: the interface of models and what
//! they share, the devices between segments, the order of events, the distances between machines, the
//! end of the run.
//!
//! Nothing here reads a clock, opens anything or draws from an unseeded generator. No kind of segment
//! is named here; `sundial-segments` has those.

#![forbid(unsafe_code)]

mod address_table;
mod board;
mod bridge;
mod counters;
mod distances;
mod fate;
mod frame;
mod kind;
mod line;
mod random;
mod run_end;
mod scheduler;
mod segment;
mod time;
mod timeline;

pub use address_table::{AddressTable, Learned};
pub use board::{Board, Ring};
pub use bridge::{Bridge, BridgeCounters, BridgeOutput, BridgeParameters};
pub use counters::{ChannelCounters, PortCounters, SegmentCounters};
pub use distances::{Distances, Hop};
pub use fate::{Dropped, End, Fate, Gap, Refusal, Rule, Way, Why};
pub use frame::{Frame, MAX_FRAME_BYTES};
pub use kind::{Builder, Invalid, Kind, Kinds, OneOrEach, SegmentKind, check_rate};
pub use line::Line;
pub use random::Stream;
pub use run_end::RunEnd;
pub use scheduler::{Place, Scheduler, Step};
pub use segment::{Direction, FurtherCapture, Output, Segment, SegmentParameters, Train};
pub use sundial_wire::pcapng::LinkType;
pub use time::{Span, Time};
pub use timeline::{Blocks, Change, NoImpairments, change_instant, check_order, read_change};
