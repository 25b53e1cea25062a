// SPDX-License-Identifier: Apache-2.0
//! Distances are shortest ways. That no frame is faster is tested with models, in `sundial-segments`.

use proptest::prelude::*;
use sundial_core::{Distances, Hop, Span};

const MACHINES: usize = 6;
/// What machines that nothing joins are apart.
const FARTHEST_NS: u64 = 100_000_000;

fn hops() -> impl Strategy<Value = Vec<Hop>> {
    let lookahead = prop_oneof![0_u64..5_000_000, 0_u64..40_000_000_000, Just(u64::MAX),];
    let hop = (0..MACHINES, 0..MACHINES, lookahead).prop_map(|(from, to, ps)| Hop {
        from,
        to,
        lookahead: Span::from_ps(ps),
    });
    prop::collection::vec(hop, 0..20)
}

/// The lookahead that clocks can use: whole nanoseconds, at least one.
fn whole_ns(hop: &Hop) -> u64 {
    hop.lookahead.as_ns_floor().max(1)
}

/// The shortest ways from `start` by relaxing every hop as often as a way can be long (Bellman and Ford).
fn from(start: usize, hops: &[Hop]) -> Vec<u64> {
    let mut best = vec![u64::MAX; MACHINES];
    for hop in hops.iter().filter(|hop| hop.from == start) {
        best[hop.to] = best[hop.to].min(whole_ns(hop));
    }
    for _ in 0..MACHINES {
        for hop in hops {
            best[hop.to] = best[hop.to].min(best[hop.from].saturating_add(whole_ns(hop)));
        }
    }
    best.into_iter().map(|ns| ns.min(FARTHEST_NS)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn distances_are_the_shortest_ways(hops in hops()) {
        let expected: Vec<_> = (0..MACHINES).map(|start| from(start, &hops)).collect();
        prop_assert_eq!(Distances::new(MACHINES, 0, hops).as_ns(), expected);
    }

    #[test]
    fn distances_are_a_fixed_point(hops in hops()) {
        let distances = Distances::new(MACHINES, 0, hops.iter().copied());
        for hop in &hops {
            let between = distances.between(hop.from, hop.to);
            prop_assert!(between <= Span::from_ns(whole_ns(hop)));
        }
        for a in 0..MACHINES {
            for b in 0..MACHINES {
                prop_assert!(distances.between(a, b) >= Span::from_ns(1));
                prop_assert!(distances.between(a, b) <= Span::from_ns(FARTHEST_NS));
                for via in 0..MACHINES {
                    let detour = distances.between(a, via) + distances.between(via, b);
                    prop_assert!(distances.between(a, b) <= detour);
                }
            }
        }
        // Its own distances, taken for hops, are what they were.
        let ways = (0..MACHINES).flat_map(|from| (0..MACHINES).map(move |to| (from, to)));
        let again = ways.map(|(from, to)| Hop { from, to, lookahead: distances.between(from, to) });
        prop_assert_eq!(Distances::new(MACHINES, 0, again), distances.clone());
    }

    #[test]
    fn ways_over_devices_count_and_machines_have_the_lowest_numbers(
        hops in hops(),
        machines in 0..=MACHINES,
    ) {
        let all = Distances::new(MACHINES, 0, hops.iter().copied());
        let some = Distances::new(machines, MACHINES - machines, hops);
        for from in 0..MACHINES {
            for to in 0..machines {
                prop_assert_eq!(some.between(from, to), all.between(from, to));
            }
        }
        let between: Vec<_> =
            all.as_ns().iter().take(machines).map(|row| row[..machines].to_vec()).collect();
        prop_assert_eq!(some.as_ns(), between);
    }

    #[test]
    fn the_order_of_hops_does_not_matter(hops in hops()) {
        let reversed = hops.iter().rev().copied();
        prop_assert_eq!(
            Distances::new(MACHINES, 0, reversed),
            Distances::new(MACHINES, 0, hops.iter().copied())
        );
    }

    #[test]
    fn a_run_lingers_for_the_longest_way_there_and_back(hops in hops()) {
        let distances = Distances::new(MACHINES, 0, hops);
        let farthest = distances.as_ns().into_iter().flatten().max().expect("there are machines");
        prop_assert_eq!(distances.least_linger(), Span::from_ns(2 * farthest));
    }
}
