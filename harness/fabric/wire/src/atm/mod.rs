// SPDX-License-Identifier: Apache-2.0
//! Codecs of ATM: cells, AAL5, what AAL5 carries, LAN emulation, and the records of a capture.

pub mod aal5;
pub mod cell;
pub mod encapsulation;
pub mod erf;
pub mod lane;
