// SPDX-License-Identifier: Apache-2.0
//! The fabric's shell: what reads files and clocks, and decides nothing.

mod capture;
mod config;
mod control_frame;
mod event;
pub mod shm;
pub mod virtual_clock;
mod wires;

pub use capture::{Capture, CaptureError, EPOCH_NS};
pub use config::{
    Clock, Config, ConfigError, MachineConfig, Model, PortConfig, SegmentConfig, WhenFull,
};
pub use control_frame::{ControlFrame, RunEnd};
pub use event::Event;
pub use wires::{Wire, Wires};
