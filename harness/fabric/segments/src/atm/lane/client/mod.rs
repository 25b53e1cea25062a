// SPDX-License-Identifier: Apache-2.0
//! A LAN emulation client.

use sundial_core::{Frame, Time};
use sundial_wire::ethernet::Address;

use super::{Action, ClientSettings, Sdu};

/// A LAN emulation client (LEC).
#[derive(Debug)]
pub(in crate::atm) struct Client {
    settings: ClientSettings,
}

impl Client {
    pub(in crate::atm) fn new(settings: ClientSettings) -> Self {
        Self { settings }
    }
    /// The machine's `frame` reaches the adapter. An address is at most 14 bytes away: adapters refuse shorter ones.
    pub(in crate::atm) fn handle_frame(&mut self, _now: Time, _frame: Frame) {}
    /// `sdu` arrived in full on `vci`.
    pub(in crate::atm) fn handle_sdu(&mut self, _now: Time, _vci: u16, _sdu: Sdu) {}
    pub(in crate::atm) fn handle_connected(&mut self, _now: Time, _peer: usize) {}
    pub(in crate::atm) fn handle_released(&mut self, _now: Time, _peer: usize) {}
    pub(in crate::atm) fn note_reachable(&mut self, _now: Time, _address: Address, _until: Time) {}
    pub(in crate::atm) fn handle_timeout(&mut self, _now: Time) {}
    pub(in crate::atm) fn poll_timeout(&self) -> Option<Time> {
        None
    }
    pub(in crate::atm) fn poll_action(&mut self) -> Option<Action> {
        None
    }
    /// A frame is held here that may go to `port`.
    pub(in crate::atm) fn waits_for(&self, _port: usize) -> bool {
        false
    }
    /// Control frames that nobody here understands, and answers that nobody waits for.
    pub(in crate::atm) fn ignored_sdus(&self) -> u64 {
        0
    }
}
