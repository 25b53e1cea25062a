// SPDX-License-Identifier: Apache-2.0
//! Codecs of the Sundial fabric: the Ethernet header, the frame check sequence, control frames,
//! pcapng blocks.
//!
//! Pure functions between bytes and types. Parsing checks the length once; what it returns is total.

#![forbid(unsafe_code)]

pub mod atm;
pub mod control;
pub mod ethernet;
pub mod pcapng;
