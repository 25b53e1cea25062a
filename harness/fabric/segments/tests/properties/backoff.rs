// SPDX-License-Identifier: Apache-2.0
//! Who gets a hub after a collision, checked against the draws of the standard's backoff.
//!
//! All stations have a frame to send at all times. After a collision of all of them, station i draws r_i
//! below 2^min(attempts, 10), independently (802.3, 4.2.3.2.5): those with the least r send next, and
//! collide again if they are more than one. The expected table follows from that sentence alone; the seeds
//! are fixed, so the outcome is too.

use std::collections::BTreeMap;

use sundial_core::{Direction, Fate, Frame, Output, Segment, SegmentParameters, Span, Time};
use sundial_segments::hub::{Hub, HubParameters};

const SLOT_BITS: u64 = 512;
/// More than the time between the first and the last station that notice one collision (at most twice the way
/// and carrier sense), less than jam and gap, which lie between two collisions.
const SAME_COLLISION_BITS: u64 = 120;
const FRAME_BYTES: usize = 1514;

/// A hub as the topologies have it: 5 m of cable a port, the repeater as slow as its class may be.
fn hub(rate_bps: u64, stations: usize, seed: u64) -> Hub {
    let common = SegmentParameters {
        seed,
        ports: (0..stations).map(|port| port.to_string()).collect(),
        ..SegmentParameters::of_machines(stations, 64)
    };
    let repeater = if rate_bps == 10_000_000 { 800 } else { 460 };
    let parameters = HubParameters {
        rate_bps,
        cable_delay: vec![Span::from_ns(25); stations],
        repeater_delay: Span::from_ns(repeater),
    };
    Hub::new(&common, parameters)
}

/// What is seen on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    Sends { station: usize },
    Collides { station: usize, attempts: u32 },
}

/// All transmissions and collisions of `stations` that never stop sending, for `span`, in order of time.
fn saturated(rate_bps: u64, stations: usize, seed: u64, span: Span) -> Vec<(Time, Seen)> {
    let mut hub = hub(rate_bps, stations, seed);
    let frame = Frame::from(vec![0; FRAME_BYTES]);
    for station in 0..stations {
        hub.handle_frame(Time::ZERO, station, frame.clone());
        hub.handle_frame(Time::ZERO, station, frame.clone());
    }
    let mut seen = Vec::new();
    while let Some(now) = hub.poll_timeout().filter(|&now| now <= Time::ZERO + span) {
        hub.handle_timeout(now);
        let mut finished = Vec::new();
        while let Some(output) = hub.poll_output() {
            match output {
                Output::TxDone { port, .. } => finished.push(port),
                Output::Record { at, interface, direction: Direction::Outbound, .. } => {
                    seen.push((at, Seen::Sends { station: interface }));
                }
                Output::Record { at, fate: Some(fate), .. } => {
                    if let Fate::Collision { adapter, attempt: attempts, .. } = *fate {
                        let station = adapter.parse().expect("ports are named by number");
                        seen.push((at, Seen::Collides { station, attempts }));
                    }
                }
                _ => {}
            }
        }
        for station in finished {
            hub.handle_frame(now, station, frame.clone());
        }
    }
    seen.sort();
    seen
}

/// One transmission or collision: when it was first seen, and whose it was with how many attempts.
struct Turn {
    at: Time,
    last: Time,
    stations: BTreeMap<usize, u32>,
}

fn turns(seen: &[(Time, Seen)], bit: Span) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for &(at, seen) in seen {
        let (station, attempts) = match seen {
            Seen::Sends { station } => (station, 0),
            Seen::Collides { station, attempts } => (station, attempts),
        };
        match turns.last_mut() {
            Some(turn) if attempts > 0 && at < turn.last + bit * SAME_COLLISION_BITS => {
                turn.last = at;
                let before = turn.stations.insert(station, attempts);
                assert_eq!(before, None, "a station collides once at a time");
            }
            _ => turns.push(Turn { at, last: at, stations: [(station, attempts)].into() }),
        }
    }
    turns
}

/// Who drew least, as a set of bits, and whether that was slot 0.
type Outcome = (u32, bool);

/// What came of each collision of all stations, by their attempts.
fn outcomes(
    turns: &[Turn],
    stations: usize,
    bit: Span,
) -> BTreeMap<Vec<u32>, BTreeMap<Outcome, f64>> {
    let mut table: BTreeMap<Vec<u32>, BTreeMap<Outcome, f64>> = BTreeMap::new();
    for pair in turns.windows(2) {
        let attempts: Vec<u32> = pair[0].stations.values().copied().collect();
        // Who has given up starts afresh, without a draw.
        if attempts.len() < stations
            || attempts.iter().any(|&attempts| attempts == 0 || attempts == 16)
        {
            continue;
        }
        let slots = pair[1].at.since(pair[0].at).as_ps() / (bit * SLOT_BITS).as_ps();
        let least = pair[1].stations.keys().fold(0, |set, station| set | 1 << station);
        *table.entry(attempts).or_default().entry((least, slots == 0)).or_default() += 1.0;
    }
    table
}

/// The probability of each outcome: those of the set draw r, all others more, summed over r.
fn expected(attempts: &[u32]) -> BTreeMap<Outcome, f64> {
    let ranges: Vec<u32> = attempts.iter().map(|&attempts| 1 << attempts.min(10)).collect();
    let mut table: BTreeMap<Outcome, f64> = BTreeMap::new();
    for slot in 0..*ranges.iter().min().expect("stations") {
        for set in 1_u32..1 << ranges.len() {
            let draws = ranges.iter().enumerate().map(|(station, &range)| {
                let ways = if set >> station & 1 == 1 { 1 } else { range - 1 - slot };
                f64::from(ways) / f64::from(range)
            });
            *table.entry((set, slot == 0)).or_default() += draws.product::<f64>();
        }
    }
    table.retain(|_, probability| *probability > 0.0);
    let sum: f64 = table.values().sum();
    assert!((sum - 1.0).abs() < 1e-9, "{attempts:?}: {sum}");
    table
}

/// Chi square and its degrees of freedom; outcomes that are expected fewer than five times count as one.
fn chi_square(seen: &BTreeMap<Outcome, f64>, attempts: &[u32]) -> (f64, u32) {
    let total: f64 = seen.values().sum();
    let (mut chi_square, mut cells) = (0.0, 0_u32);
    let (mut rare_seen, mut rare_expected) = (0.0, 0.0);
    let expected = expected(attempts);
    for outcome in seen.keys() {
        assert!(expected.contains_key(outcome), "{attempts:?}: {outcome:?} cannot be");
    }
    for (outcome, probability) in expected {
        let (count, expected) = (seen.get(&outcome).copied().unwrap_or(0.0), total * probability);
        if expected < 5.0 {
            rare_seen += count;
            rare_expected += expected;
        } else {
            chi_square += (count - expected) * (count - expected) / expected;
            cells += 1;
        }
    }
    if rare_expected >= 5.0 {
        chi_square += (rare_seen - rare_expected) * (rare_seen - rare_expected) / rare_expected;
        cells += 1;
    }
    (chi_square, cells.saturating_sub(1))
}

/// The value that chi square exceeds once in a thousand times (Wilson and Hilferty's approximation).
fn limit(freedom: u32) -> f64 {
    let ninth = 2.0 / (9.0 * f64::from(freedom));
    f64::from(freedom) * (1.0 - ninth + 3.090 * ninth.sqrt()).powi(3)
}

/// Runs `seeds` for `slots` each, and holds all that was seen against what the draws make likely.
fn check(rate_bps: u64, stations: usize, seeds: u64, slots: u64, least_collisions: f64) {
    let bit = Span::of_bits(1, rate_bps);
    let span = bit * SLOT_BITS * slots;
    let mut table: BTreeMap<Vec<u32>, BTreeMap<Outcome, f64>> = BTreeMap::new();
    for seed in 1..=seeds {
        let turns = turns(&saturated(rate_bps, stations, seed, span), bit);
        for (attempts, outcomes) in outcomes(&turns, stations, bit) {
            for (outcome, count) in outcomes {
                *table.entry(attempts.clone()).or_default().entry(outcome).or_default() += count;
            }
        }
    }
    let collisions: f64 = table.values().flat_map(BTreeMap::values).sum();
    println!("{stations} stations: {collisions} collisions");
    assert!(collisions >= least_collisions, "{collisions} collisions say too little");
    // All attempts together, and each on its own: a fault of one must not drown in the rest.
    let (mut sum, mut freedom) = (0.0, 0);
    for (attempts, seen) in &table {
        let (chi_square, own) = chi_square(seen, attempts);
        sum += chi_square;
        freedom += own;
        let bound = limit(own.max(1)) * 1.5;
        assert!(chi_square < bound, "{attempts:?}: chi square {chi_square:.1}, df {own}: {seen:?}");
    }
    println!("chi square {sum:.1}, df {freedom}");
    assert!(sum < limit(freedom), "chi square {sum:.1}, df {freedom}");
}

#[test]
fn two_stations_at_10_mbps_share_the_hub_as_they_draw() {
    check(10_000_000, 2, 8, 800_000, 20_000.0);
}

#[test]
fn two_stations_at_100_mbps_share_the_hub_as_they_draw() {
    check(100_000_000, 2, 8, 800_000, 20_000.0);
}

// The more stations, the more combinations of attempts: many short runs, so that the first ones are common.

#[test]
fn three_stations_at_10_mbps_share_the_hub_as_they_draw() {
    check(10_000_000, 3, 2_000, 200, 5_000.0);
}

#[test]
fn three_stations_at_100_mbps_share_the_hub_as_they_draw() {
    check(100_000_000, 3, 2_000, 200, 5_000.0);
}

#[test]
fn five_stations_share_the_hub_as_they_draw() {
    check(10_000_000, 5, 2_000, 200, 5_000.0);
    check(100_000_000, 5, 2_000, 200, 5_000.0);
}
