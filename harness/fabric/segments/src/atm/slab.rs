// SPDX-License-Identifier: Apache-2.0
//! Things by number; a number is used again when its thing is taken out.

/// What is under way.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// The number of the new `thing`.
    pub(super) fn insert(&mut self, thing: T) -> usize {
        match self.free.pop() {
            Some(number) => {
                self.places[number] = Some(thing);
                number
            }
            None => {
                self.places.push(Some(thing));
                self.places.len() - 1
            }
        }
    }

    pub(super) fn get(&self, number: usize) -> &T {
        self.places[number].as_ref().expect("a number is used until its thing is taken out")
    }

    pub(super) fn get_mut(&mut self, number: usize) -> &mut T {
        self.places[number].as_mut().expect("a number is used until its thing is taken out")
    }

    pub(super) fn remove(&mut self, number: usize) -> T {
        self.free.push(number);
        self.places[number].take().expect("a number is used until its thing is taken out")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again() {
        let mut slab = Slab::default();
        let [first, second] = ["a", "b"].map(|thing| slab.insert(thing));
        assert_eq!(slab.remove(first), "a");
        assert_eq!(slab.insert("c"), first);
        assert_eq!((*slab.get(first), *slab.get(second)), ("c", "b"));
    }
}
