// SPDX-License-Identifier: Apache-2.0
//! The fabric's shell: what reads files and clocks, and decides nothing.

mod capture;
mod commands;
mod config;
mod control_frame;
mod event;
mod real_clock;
mod run;
pub mod shm;
pub mod virtual_clock;
mod wires;

pub use capture::{Capture, CaptureError, EPOCH_NS};
pub use commands::{Commands, Reply, Request};
pub use config::{
    Clock, Config, ConfigError, MachineConfig, Model, PortConfig, SegmentConfig, WhenFull,
};
pub use control_frame::{ControlFrame, RunEnd};
pub use event::Event;
pub use real_clock::{RealError, RealRun};
pub use run::{RunError, die_with_parent, run};
pub use virtual_clock::Observer;
pub use wires::{Wire, Wires};
