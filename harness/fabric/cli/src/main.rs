// SPDX-License-Identifier: Apache-2.0
//! `sundial-fabric`: carries the frames of one run.

fn main() {}
