// SPDX-License-Identifier: Apache-2.0
//! One program: each file of tests/ would be linked with all of proptest.

mod distances;
mod scheduler;
