// SPDX-License-Identifier: Apache-2.0
//! Whatever segments bridges join: machines that go ahead as far as the fabric's promises let them are told
//! the same as by somebody who works on one event after the other, and nothing is faster than the distances.

mod lockstep;
mod machines;
mod reference;
mod world;

use proptest::prelude::*;
use world::world;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn promises_hold_and_change_nothing(world in world()) {
        let directory = tempfile::tempdir().expect("a directory");
        let told = lockstep::run(&world, &world.config(directory.path()));
        let expected = reference::run(&world, world.config(directory.path()));
        prop_assert_eq!(told, expected);
    }
}
