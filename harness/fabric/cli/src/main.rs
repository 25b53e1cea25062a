// SPDX-License-Identifier: Apache-2.0
//! The binary, with the kinds of segment that ship with Sundial.

use std::process::ExitCode;

fn main() -> ExitCode {
    sundial_fabric::run_command(&sundial_segments::kinds(), std::env::args_os()).into()
}
