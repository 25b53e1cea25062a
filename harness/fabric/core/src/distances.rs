// SPDX-License-Identifier: Apache-2.0
//! How long it takes at least until what one machine does can reach another.

use crate::Span;

/// Machines that no segment joins are kept this close in time all the same, so that the end of a run is
/// the end for all.
const UNCONNECTED: Span = Span::from_ns(100_000_000);

/// A way across one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The sending machine.
    pub from: usize,
    /// The receiving machine.
    pub to: usize,
    /// As [`crate::Segment::lookahead`] says.
    pub lookahead: Span,
}

/// Shortest sums of lookaheads from machine to machine, in whole nanoseconds, at least one segment long:
/// the distance of a machine to itself is the shortest way out and back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distances(Vec<Vec<Span>>);

impl Distances {
    /// Of `machines` machines that `hops` join (Floyd and Warshall).
    pub fn new(machines: usize, hops: impl IntoIterator<Item = Hop>) -> Self {
        let mut distance = vec![vec![Span::MAX; machines]; machines];
        for Hop { from, to, lookahead } in hops {
            // The clocks exchange whole nanoseconds, and a horizon that never moves would stop them.
            let whole = Span::from_ns(lookahead.as_ns_floor().max(1));
            distance[from][to] = distance[from][to].min(whole);
        }
        for via in 0..machines {
            for from in 0..machines {
                for to in 0..machines {
                    let detour = distance[from][via] + distance[via][to];
                    distance[from][to] = distance[from][to].min(detour);
                }
            }
        }
        for entry in distance.iter_mut().flatten() {
            *entry = (*entry).min(UNCONNECTED);
        }
        Self(distance)
    }

    /// From machine `from` to machine `to`.
    pub fn between(&self, from: usize, to: usize) -> Span {
        self.0[from][to]
    }

    /// In nanoseconds, by sending and receiving machine.
    pub fn as_ns(&self) -> Vec<Vec<u64>> {
        let row = |row: &Vec<Span>| row.iter().map(|span| span.as_ns_floor()).collect();
        self.0.iter().map(row).collect()
    }

    /// A run has to go on this long after the event that ends it: no machine has passed the end then
    /// when it becomes known.
    pub fn least_linger(&self) -> Span {
        self.0.iter().flatten().copied().max().unwrap_or(Span::ZERO) * 2
    }
}
