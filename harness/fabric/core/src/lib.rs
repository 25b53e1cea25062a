// SPDX-License-Identifier: Apache-2.0
//! Wire models of the Sundial fabric: pure state machines of (time, event) to events.
//!
//! Nothing here reads a clock, opens anything or draws from an unseeded generator. To add a kind of
//! segment, write a parameter type and a [`Segment`], and let `sundial-io` build it from the
//! configuration.

#![forbid(unsafe_code)]

mod adapter;
mod frame;
mod link;
mod segment;
mod time;

pub use adapter::{MAX_FRAME_BYTES, MIN_FRAME_BYTES, SegmentParameters, wire_bits};
pub use frame::Frame;
pub use link::{Link, LinkParameters};
pub use segment::{Direction, Output, PortCounters, RECORD_LAG, Segment, SegmentCounters};
pub use time::{Span, Time};
