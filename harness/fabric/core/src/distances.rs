// SPDX-License-Identifier: Apache-2.0
//! How long it takes at least until what one machine does can reach another, over devices too.

use crate::Span;

/// Machines that no segment joins are kept this close in time all the same, so that the end of a run is
/// the end for all.
const UNCONNECTED: Span = Span::from_ns(100_000_000);

/// A way across one segment, between senders: a machine, or a device at one of its ports. Machines have
/// the lowest numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Who hands a frame in.
    pub from: usize,
    /// Who may then hand one in: a machine that has received it, a device that passes it on.
    pub to: usize,
    /// The least time between, as [`crate::Segment::lookahead`] says; a device's latency included.
    pub lookahead: Span,
}

/// Shortest sums of lookaheads from sender to machine, in whole nanoseconds, at least one segment long:
/// the distance of a machine to itself is the shortest way out and back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distances {
    machines: usize,
    /// By sender, then receiving machine.
    spans: Vec<Vec<Span>>,
}

impl Distances {
    /// Of `machines` machines and `devices` ports of devices that `hops` join (Floyd and Warshall).
    pub fn new(machines: usize, devices: usize, hops: impl IntoIterator<Item = Hop>) -> Self {
        let senders = machines + devices;
        let mut distance = vec![vec![Span::MAX; senders]; senders];
        for Hop { from, to, lookahead } in hops {
            // The clocks exchange whole nanoseconds, and a horizon that never moves would stop them.
            let whole = Span::from_ns(lookahead.as_ns_floor().max(1));
            distance[from][to] = distance[from][to].min(whole);
        }
        for via in 0..senders {
            for from in 0..senders {
                for to in 0..senders {
                    let detour = distance[from][via] + distance[via][to];
                    distance[from][to] = distance[from][to].min(detour);
                }
            }
        }
        for row in &mut distance {
            row.truncate(machines);
            for entry in row {
                *entry = (*entry).min(UNCONNECTED);
            }
        }
        Self { machines, spans: distance }
    }

    /// From sender `from` to machine `to`.
    pub fn between(&self, from: usize, to: usize) -> Span {
        self.spans[from][to]
    }

    /// In nanoseconds, by sending and receiving machine.
    pub fn as_ns(&self) -> Vec<Vec<u64>> {
        let row = |row: &Vec<Span>| row.iter().map(|span| span.as_ns_floor()).collect();
        self.between_machines().map(row).collect()
    }

    fn between_machines(&self) -> impl Iterator<Item = &Vec<Span>> {
        self.spans[..self.machines].iter()
    }

    /// A run has to go on this long after the event that ends it: no machine has passed the end then
    /// when it becomes known.
    pub fn least_linger(&self) -> Span {
        self.between_machines().flatten().copied().max().unwrap_or(Span::ZERO) * 2
    }
}
