// SPDX-License-Identifier: Apache-2.0
//! The addresses behind a device, for which its client, a proxy, answers.

use std::collections::BTreeMap;

use sundial_core::Time;
use sundial_wire::ethernet::Address;

/// What the device has announced of its other ports.
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
        // Only new addresses cost a look at all the others.
        self.0.retain(|_, until| *until > now);
        self.0.insert(address, until);
        true
    }

    pub(super) fn contains(&self, now: Time, address: Address) -> bool {
        self.0.get(&address).is_some_and(|&until| until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> Address {
        Address([2, 0, 0, 0, 0, number])
    }

    fn at(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    #[test]
    fn an_address_is_new_when_it_was_not_known_or_no_more() {
        let mut reachable = Reachable::default();
        assert!(reachable.note(at(0), address(1), at(10)));
        assert!(!reachable.note(at(5), address(1), at(20)));
        assert!(reachable.contains(at(19), address(1)));
        assert!(!reachable.contains(at(20), address(1)));
        assert!(reachable.note(at(20), address(1), at(30)));
        assert!(!reachable.note(at(25), address(1), at(25)));
        assert!(!reachable.contains(at(25), address(1)));
    }

    #[test]
    fn what_is_over_takes_no_place() {
        let mut reachable = Reachable::default();
        for number in 0..100 {
            reachable.note(at(number.into()), address(number), at(u64::from(number) + 10));
        }
        assert_eq!(reachable.0.len(), 10);
    }
}
