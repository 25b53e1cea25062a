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

/// What is unlike, without the bytes.
fn shown(unlike: Option<(usize, (Option<&Notice>, Option<&Notice>))>) -> String {
    let Some((index, (told, expected))) = unlike else { return String::new() };
    let shown = |notice: Option<&Notice>| {
        notice.map(|it| {
            (it.due, it.nic, it.frame.as_ref().map(|frame| (identity(frame), frame.len())))
        })
    };
    format!("notice {index}: {:?} instead of {:?}", shown(told), shown(expected))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn promises_hold_and_change_nothing(world in world()) {
        let directory = tempfile::tempdir().expect("a directory");
        let told = lockstep::run(&world, &world.config(directory.path()));
        let expected = reference::run(&world, world.config(directory.path()));
        for (machine, (told, expected)) in told.iter().zip(&expected).enumerate() {
            let both = told.iter().map(Some).zip(expected.iter().map(Some));
            let unlike = both.enumerate().find(|(_, (told, expected))| told != expected);
            prop_assert!(unlike.is_none(), "machine {machine}: {}", shown(unlike));
            prop_assert_eq!(told.len(), expected.len(), "machine {}", machine);
        }
    }
}
