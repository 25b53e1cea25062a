// SPDX-License-Identifier: Apache-2.0
//! Which address was last seen at which port.

use std::collections::{BTreeMap, BTreeSet};

use sundial_wire::ethernet::Address;

use crate::{Span, Time};

/// A filtering database of fixed size (IEEE 802.1D clause 7.9).
#[derive(Clone, Debug)]
pub struct AddressTable {
    places: usize,
    ageing: Span,
    entries: BTreeMap<Address, (usize, Time)>,
    /// The same, oldest first.
    by_age: BTreeSet<(Time, Address)>,
}

/// What became of an address that was to be learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// It is new, or was at this port before.
    Here,
    /// It was at another port until now.
    Moved,
    /// There is no place for it.
    Full,
}

impl AddressTable {
    /// An empty table. An address is forgotten when it has not been seen for `ageing`.
    pub fn new(places: usize, ageing: Span) -> Self {
        Self { places, ageing, entries: BTreeMap::new(), by_age: BTreeSet::new() }
    }

    /// Sees `address` at `port`. A full table forgets nothing but what has aged.
    pub fn learn(&mut self, now: Time, address: Address, port: usize) -> Learned {
        while let Some(&(seen, old)) = self.by_age.first()
            && self.is_aged(now, seen)
        {
            self.by_age.pop_first();
            self.entries.remove(&old);
        }
        let places = self.places;
        let learned = if let Some((at, seen)) = self.entries.get_mut(&address) {
            let moved = *at != port;
            self.by_age.remove(&(*seen, address));
            (*at, *seen) = (port, now);
            if moved { Learned::Moved } else { Learned::Here }
        } else if self.entries.len() < places {
            self.entries.insert(address, (port, now));
            Learned::Here
        } else {
            return Learned::Full;
        };
        self.by_age.insert((now, address));
        learned
    }

    /// The port where `address` was last seen, if that is not too long ago.
    pub fn find(&self, now: Time, address: Address) -> Option<usize> {
        let &(port, seen) = self.entries.get(&address)?;
        (!self.is_aged(now, seen)).then_some(port)
    }

    fn is_aged(&self, now: Time, seen: Time) -> bool {
        now.since(seen) >= self.ageing
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
    fn an_address_is_where_it_was_seen_last() {
        let mut table = AddressTable::new(2, Span::from_ns(100));
        assert_eq!(table.learn(at(0), address(1), 3), Learned::Here);
        assert_eq!(table.learn(at(10), address(1), 4), Learned::Moved);
        assert_eq!(table.learn(at(15), address(1), 4), Learned::Here);
        assert_eq!(table.find(at(20), address(1)), Some(4));
        assert_eq!(table.find(at(20), address(2)), None);
    }

    #[test]
    fn an_address_ages_from_its_last_frame_on() {
        let mut table = AddressTable::new(2, Span::from_ns(100));
        table.learn(at(0), address(1), 0);
        table.learn(at(50), address(1), 0);
        assert_eq!(table.find(at(149), address(1)), Some(0));
        assert_eq!(table.find(at(150), address(1)), None);
    }

    #[test]
    fn a_full_table_learns_again_when_something_has_aged() {
        let mut table = AddressTable::new(1, Span::from_ns(100));
        table.learn(at(0), address(1), 0);
        assert_eq!(table.learn(at(99), address(2), 1), Learned::Full);
        assert_eq!(table.find(at(99), address(2)), None);
        assert_eq!(table.learn(at(100), address(2), 1), Learned::Here);
        assert_eq!(table.find(at(100), address(2)), Some(1));
        assert_eq!(table.find(at(100), address(1)), None);
    }
}
