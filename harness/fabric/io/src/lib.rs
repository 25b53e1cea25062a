// SPDX-License-Identifier: Apache-2.0
//! The fabric's shell: reads files, clocks, sockets and shared memory, and writes captures. What happens
//! to a frame, and in which order, is decided in `sundial-core` and by the models.

mod capture;
mod commands;
mod config;
mod event;
mod network;
mod real_clock;
mod run;
pub mod shm;
pub mod virtual_clock;

pub use capture::{CaptureError, Captures, EPOCH_NS};
pub use commands::{Commands, Reply, Request};
pub use config::{
    Clock, Config, ConfigError, DeviceConfig, End, MachineConfig, PortConfig, SegmentConfig,
    WhenFull,
};
pub use event::Event;
pub use network::{Bounds, Handled, Network, Notice, OutOfTime, RecordedSegment};
pub use real_clock::{RealError, RealRun};
pub use run::{RunError, die_with_parent, run};
pub use virtual_clock::{Observer, VirtualError};
