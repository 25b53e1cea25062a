// SPDX-License-Identifier: Apache-2.0
//! The order of events is total and does not depend on when each became known.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use sundial_core::{Frame, Place, Scheduler, Step, Time};

/// When something happens to the frames at each place.
type Streams = BTreeMap<Place, Vec<Time>>;
/// When each segment's model asks to be called.
type Timeouts = Vec<VecDeque<Time>>;

/// Few instants, so that many events share one.
fn times() -> impl Strategy<Value = Vec<Time>> {
    prop::collection::vec(0_u64..3, 0..8).prop_map(|pauses| {
        let mut ps = 0;
        let after = |pause| {
            ps += pause;
            Time::from_ps(ps)
        };
        pauses.into_iter().map(after).collect()
    })
}

fn streams() -> impl Strategy<Value = Streams> {
    let place = (0..3, 0_usize..4, 0_usize..3).prop_map(|(kind, owner, number)| match kind {
        0 => Place::DeviceReceives { device: owner, port: number },
        1 => Place::DeviceSends { device: owner, port: number },
        _ => Place::Machine { machine: owner, nic: number },
    });
    prop::collection::btree_map(place, times(), 0..8)
}

fn timeouts() -> impl Strategy<Value = Timeouts> {
    prop::collection::vec(times().prop_map(VecDeque::from), 0..4)
}

/// The frame that is number `index` at its place.
fn frame(index: usize) -> Frame {
    Frame::new(&[index as u8])
}

/// Hands in all frames; `choices` says whose turn it is, as long as it lasts.
fn scheduler(streams: &Streams, choices: &[usize]) -> Scheduler {
    let mut scheduler = Scheduler::new();
    let mut left: Vec<_> =
        streams.iter().map(|(&place, times)| (place, times.iter().enumerate())).collect();
    let mut choices = choices.iter();
    while !left.is_empty() {
        let turn = choices.next().unwrap_or(&0) % left.len();
        let (place, times) = &mut left[turn];
        match times.next() {
            Some((index, &at)) => scheduler.hand_in(at, *place, frame(index)),
            None => drop(left.remove(turn)),
        }
    }
    scheduler
}

/// Pops everything before `before`.
fn pop_all(scheduler: &mut Scheduler, timeouts: &mut Timeouts, before: Time) -> Vec<(Time, Step)> {
    let mut steps = Vec::new();
    loop {
        let asked: Vec<_> = timeouts.iter().map(|queue| queue.front().copied()).collect();
        let Some((at, step)) = scheduler.pop(asked, before) else { return steps };
        if let Step::Timeout { segment } = step {
            assert_eq!(timeouts[segment].pop_front(), Some(at));
        }
        steps.push((at, step));
    }
}

/// The law, written down once more.
fn rank((at, step): &(Time, Step)) -> (Time, u8, usize, usize, u8) {
    match step {
        Step::Timeout { segment } => (*at, 0, *segment, 0, 0),
        Step::Frame { place, frame } => {
            let (kind, owner, number) = match *place {
                Place::DeviceReceives { device, port } => (1, device, port),
                Place::DeviceSends { device, port } => (2, device, port),
                Place::Machine { machine, nic } => (3, machine, nic),
            };
            (*at, kind, owner, number, frame[0])
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_come_in_the_order_of_the_law_and_none_is_lost(
        streams in streams(), choices in prop::collection::vec(0_usize..8, 0..64), timeouts in timeouts()
    ) {
        let count = streams.values().map(Vec::len).sum::<usize>()
            + timeouts.iter().map(VecDeque::len).sum::<usize>();
        let steps = pop_all(&mut scheduler(&streams, &choices), &mut timeouts.clone(), Time::MAX);
        prop_assert_eq!(steps.len(), count);
        for pair in steps.windows(2) {
            let (first, second) = (rank(&pair[0]), rank(&pair[1]));
            // A model may ask twice for the same instant.
            let again = first == second && matches!(pair[0].1, Step::Timeout { .. });
            prop_assert!(first < second || again, "{:?}", pair);
        }
    }

    #[test]
    fn the_order_does_not_depend_on_the_order_of_insertion(
        streams in streams(),
        one in prop::collection::vec(0_usize..8, 0..64),
        other in prop::collection::vec(0_usize..8, 0..64),
        timeouts in timeouts(),
    ) {
        prop_assert_eq!(
            pop_all(&mut scheduler(&streams, &one), &mut timeouts.clone(), Time::MAX),
            pop_all(&mut scheduler(&streams, &other), &mut timeouts.clone(), Time::MAX)
        );
    }

    #[test]
    fn rounds_of_work_change_nothing_and_nothing_passes_their_limit(
        streams in streams(), mut timeouts in timeouts(), lengths in prop::collection::vec(0_u64..5, 0..8)
    ) {
        let whole = pop_all(&mut scheduler(&streams, &[]), &mut timeouts.clone(), Time::MAX);
        let mut rounds = scheduler(&streams, &[]);
        let (mut steps, mut limit) = (Vec::new(), 0);
        for length in lengths {
            limit += length;
            let before = Time::from_ps(limit);
            let round = pop_all(&mut rounds, &mut timeouts, before);
            prop_assert!(round.iter().all(|(at, _)| *at < before));
            steps.extend(round);
            let left = rounds.earliest_by_machine(4);
            prop_assert!(left.into_iter().flatten().all(|at| at >= before));
        }
        steps.extend(pop_all(&mut rounds, &mut timeouts, Time::MAX));
        prop_assert_eq!(steps, whole);
    }

    #[test]
    fn the_earliest_frame_of_each_machine_is_known(streams in streams()) {
        let mut earliest = vec![None; 4];
        for (&place, times) in &streams {
            let Place::Machine { machine, .. } = place else { continue };
            for &at in times {
                let known: &mut Option<Time> = &mut earliest[machine];
                *known = Some(known.map_or(at, |known| known.min(at)));
            }
        }
        let mut scheduler = scheduler(&streams, &[]);
        prop_assert_eq!(scheduler.earliest_by_machine(4), earliest);
        scheduler.clear();
        prop_assert_eq!(scheduler.earliest_by_machine(4), vec![None; 4]);
    }
}
