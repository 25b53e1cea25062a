// SPDX-License-Identifier: Apache-2.0
//! Whatever segments bridges join: machines that go ahead as far as the fabric's promises let them get the
//! same notices as if each event were handled after the one before, and nothing is faster than the distances.

mod lockstep;
mod machines;
mod reference;
mod world;

use proptest::prelude::*;
use sundial_io::Notice;
use world::{identity, world};

/// The first notice that differs, without its bytes.
fn difference(seen: &[Notice], expected: &[Notice]) -> Option<String> {
    let index = (0..seen.len().max(expected.len())).find(|&it| seen.get(it) != expected.get(it))?;
    let shown = |notice: Option<&Notice>| {
        notice.map(|Notice { due, nic, frame, .. }| (*due, *nic, frame.as_ref().map(identity)))
    };
    let (seen, expected) = (shown(seen.get(index)), shown(expected.get(index)));
    Some(format!("notice {index}: {seen:?} instead of {expected:?}"))
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn promises_hold_and_change_nothing(world in world()) {
        let directory = tempfile::tempdir().expect("a directory");
        let seen = lockstep::run(&world, &world.config(directory.path()));
        let expected = reference::run(&world, world.config(directory.path()));
        for (machine, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
            prop_assert_eq!(difference(seen, expected), None, "machine {}", machine);
        }
    }
}
