// SPDX-License-Identifier: Apache-2.0
//! The kinds of segment that ship with Sundial, one folder each: the fields of its configuration, their
//! checks, and the model.

#![forbid(unsafe_code)]

pub mod atm;
mod ethernet;
pub mod hub;
pub mod link;
pub mod switch;
pub mod vmmc;

use sundial_core::{Kind, Kinds};

pub use ethernet::{GAP_BITS, wire_bits};

/// A registry of the kinds whose modules are named.
macro_rules! kinds {
    [$($kind:ident),+ $(,)?] => { Kinds::new([$(Kind::of::<$kind::Config>()),+]) };
}

/// Every kind that ships with Sundial.
pub fn kinds() -> Kinds {
    kinds![link, hub, switch, atm, vmmc]
}
