// SPDX-License-Identifier: Apache-2.0
//! The fabric's shell: what reads files and clocks, and decides nothing.

mod capture;
mod config;
pub mod shm;

pub use capture::{Capture, CaptureError, EPOCH_NS};
pub use config::{
    Clock, Config, ConfigError, MachineConfig, Model, PortConfig, SegmentConfig, WhenFull,
};
