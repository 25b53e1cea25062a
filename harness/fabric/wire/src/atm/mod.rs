// SPDX-License-Identifier: Apache-2.0
//! Codecs of ATM: what travels in cells.

pub mod lane;
