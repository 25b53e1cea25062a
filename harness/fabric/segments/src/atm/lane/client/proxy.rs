// SPDX-License-Identifier: Apache-2.0
//! The addresses behind a device, for which its client, a proxy, answers.

use std::collections::BTreeMap;

use sundial_core::Time;
use sundial_wire::ethernet::Address;

/// What the device has told of its other ports.
#[derive(Debug, Default)]
pub(super) struct Reachable(BTreeMap<Address, Time>);

impl Reachable {
    /// `address` is behind the device until `until`. `true`: it was not before.
    pub(super) fn note(&mut self, now: Time, address: Address, until: Time) -> bool {
        if until <= now {
            self.0.remove(&address);
            return false;
        }
        if let Some(known_until) = self.0.get_mut(&address) {
            let is_new = *known_until <= now;
            *known_until = until;
            return is_new;
        }
        // Only addresses that nobody knew cost a look at all the others.
        self.0.retain(|_, until| *until > now);
        self.0.insert(address, until);
        true
    }

    pub(super) fn contains(&self, now: Time, address: Address) -> bool {
        self.0.get(&address).is_some_and(|&until| until > now)
    }
}
