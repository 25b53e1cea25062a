// SPDX-License-Identifier: Apache-2.0
//! The servers of an emulated LAN.

use std::sync::Arc;

use sundial_core::Time;
use sundial_wire::ethernet::Address;

use super::{LaneSettings, Sdu, ServiceAction};

#[derive(Debug)]
pub(in crate::atm) struct Services {
    settings: Arc<LaneSettings>,
}

impl Services {
    /// Servers of the clients at ports with the addresses `macs`.
    pub(in crate::atm) fn new(settings: Arc<LaneSettings>, _macs: &[Address]) -> Self {
        Self { settings }
    }
    /// `sdu` of the client at `port` arrived on `vci`.
    pub(in crate::atm) fn handle_sdu(&mut self, _now: Time, _port: usize, _vci: u16, _sdu: Sdu) {}
    pub(in crate::atm) fn handle_timeout(&mut self, _now: Time) {}
    /// When the next SDU leaves the servers; nothing leaves sooner but what arrives later.
    pub(in crate::atm) fn poll_timeout(&self) -> Option<Time> {
        None
    }
    pub(in crate::atm) fn poll_action(&mut self) -> Option<ServiceAction> {
        None
    }
}
