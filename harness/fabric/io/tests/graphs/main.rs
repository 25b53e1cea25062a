// SPDX-License-Identifier: Apache-2.0
//! Whatever segments bridges join: machines that go ahead as far as the fabric's promises let them are told
//! the same as by somebody who works on one event after the other, and nothing is faster than the distances.

mod lockstep;
mod machines;
mod reference;
mod world;

use proptest::prelude::*;
use sundial_io::Notice;
use world::{identity, world};

/// The first thing that a machine was told otherwise, without its bytes.
fn difference(told: &[Notice], expected: &[Notice]) -> Option<String> {
    let index = (0..told.len().max(expected.len())).find(|&it| told.get(it) != expected.get(it))?;
    let shown = |notice: Option<&Notice>| {
        notice.map(|Notice { due, nic, frame, .. }| (*due, *nic, frame.as_ref().map(identity)))
    };
    let (told, expected) = (shown(told.get(index)), shown(expected.get(index)));
    Some(format!("notice {index}: {told:?} instead of {expected:?}"))
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn promises_hold_and_change_nothing(world in world()) {
        let directory = tempfile::tempdir().expect("a directory");
        let told = lockstep::run(&world, &world.config(directory.path()));
        let expected = reference::run(&world, world.config(directory.path()));
        for (machine, (told, expected)) in told.iter().zip(&expected).enumerate() {
            prop_assert_eq!(difference(told, expected), None, "machine {}", machine);
        }
    }
}
