// SPDX-License-Identifier: Apache-2.0
//! Wire models of the Sundial fabric: pure state machines of (time, event) to events.
//!
//! Nothing here reads a clock, opens anything or draws from an unseeded generator. To add a kind of
//! segment, write a parameter type and a [`Segment`], and let `sundial-io` build it from the
//! configuration.

#![forbid(unsafe_code)]

mod adapter;
mod frame;
mod hub;
mod link;
mod netem;
mod random;
mod segment;
mod switch;
mod time;

pub use adapter::{MAX_FRAME_BYTES, MIN_FRAME_BYTES, SegmentParameters, wire_bits};
pub use frame::Frame;
pub use hub::{Hub, HubParameters};
pub use link::{Link, LinkParameters};
pub use netem::{Distribution, Gemodel, ImpairmentError, Impairments};
pub use segment::{Direction, Output, PortCounters, RECORD_LAG, Segment, SegmentCounters};
pub use switch::{Switch, SwitchParameters};
pub use time::{Span, Time};
