// SPDX-License-Identifier: Apache-2.0
//! What a segment does changes at exact instants: the changes as a configuration names them, and between which ports
//! nothing passes.
//!
//! A change is first of all at its instant. A frame belongs to the instant at which its transmission begins, in whole
//! nanoseconds as the capture stamps it: one that begins before a change keeps its fate.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Invalid, Rule, Span, Time};

/// All that a segment does from an instant on, until the next change. `I`: what it does to frames by sending port.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "I: Deserialize<'de>"))]
pub struct Change<I = NoImpairments> {
    /// From when on, on the run's axis.
    pub at_ns: u64,
    /// The comment in the capture.
    pub note: String,
    /// Ports that neither send nor receive.
    #[serde(default = "Vec::new")]
    pub cut: Vec<usize>,
    /// Ports of machines that are off.
    #[serde(default = "Vec::new")]
    pub off: Vec<usize>,
    /// Groups of ports between which nothing passes; none: all are together.
    #[serde(default = "Vec::new")]
    pub partition: Vec<Vec<usize>>,
    /// By sending port.
    #[serde(default = "BTreeMap::new")]
    pub impairments: BTreeMap<String, I>,
}

/// Of segments that impair no frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum NoImpairments {}

impl<I> Change<I> {
    /// Its instant.
    pub fn at(&self) -> Time {
        Time::from_ns(self.at_ns)
    }

    /// Between which of `ports` ports nothing passes.
    pub fn blocks(&self, ports: usize) -> Result<Blocks, Invalid> {
        Blocks::new(ports, &self.cut, &self.partition)?.with_off(&self.off)
    }
}

/// A change by hand as a configuration would have it.
pub fn read_change<I: DeserializeOwned>(change: Value) -> Result<Change<I>, Invalid> {
    serde_path_to_error::deserialize(change).map_err(|error| {
        let field = error.path().to_string();
        Invalid::new(field, error.into_inner().to_string())
    })
}

/// The instant of a change by hand: from `now` on, when each of `lines` is free and after the change that was `last`, in
/// whole nanoseconds.
pub fn change_instant(
    now: Time,
    lines: impl IntoIterator<Item = Time>,
    last: Option<Time>,
) -> Time {
    let free = lines.into_iter().fold(now, Time::max);
    let after = last.map_or(Time::ZERO, |last| last + Span::from_ns(1));
    Time::from_ns(free.max(after).as_ns_ceil())
}

/// Checks that each of `changes` is later than the one before.
pub fn check_order<I>(changes: &[Change<I>]) -> Result<(), Invalid> {
    match changes.windows(2).position(|pair| pair[0].at_ns >= pair[1].at_ns) {
        None => Ok(()),
        Some(place) => {
            let field = format!("timeline[{}].at_ns", place + 1);
            Err(Invalid::new(field, "must be later than that of the change before"))
        }
    }
}

/// Between which ports of a segment nothing passes. The default lets everything pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// By port.
    cut: Vec<bool>,
    /// By port.
    off: Vec<bool>,
    /// The number of its group, by port.
    groups: Vec<usize>,
}

impl Blocks {
    /// Of `ports` ports, those of `cut` are cut off, and the groups of `partition`, if there are any, from each other.
    pub fn new(ports: usize, cut: &[usize], partition: &[Vec<usize>]) -> Result<Self, Invalid> {
        let cut = marked(ports, cut, "cut")?;
        let mut groups = vec![None; ports];
        for (number, group) in partition.iter().enumerate() {
            for (index, &port) in group.iter().enumerate() {
                let field = || format!("partition[{number}][{index}]");
                let place = groups.get_mut(port).ok_or_else(|| no_port(field(), port, ports))?;
                if place.replace(number).is_some() {
                    return Err(Invalid::new(field(), format!("port {port} is in two groups")));
                }
            }
        }
        let groups = if partition.is_empty() { vec![Some(0); ports] } else { groups };
        let groups: Option<Vec<_>> = groups.into_iter().collect();
        match groups {
            Some(groups) => Ok(Self { cut, off: vec![false; ports], groups }),
            None => Err(Invalid::new("partition", "each port must be in a group")),
        }
    }

    /// The same where the machines at the ports `off` are off.
    pub fn with_off(self, off: &[usize]) -> Result<Self, Invalid> {
        Ok(Self { off: marked(self.cut.len(), off, "off")?, ..self })
    }

    /// Whether `port` is cut off.
    pub fn is_cut(&self, port: usize) -> bool {
        self.cut.get(port).copied().unwrap_or(false)
    }

    /// Whether the machine at `port` is off.
    pub fn is_off(&self, port: usize) -> bool {
        self.off.get(port).copied().unwrap_or(false)
    }

    /// Whether two ports are in different groups.
    pub fn are_apart(&self, from: usize, to: usize) -> bool {
        self.groups.get(from) != self.groups.get(to)
    }

    /// Why no frame passes between two ports, if none does. A machine that is off sends none.
    pub fn between(&self, from: usize, to: usize) -> Option<Rule> {
        if self.is_cut(from) || self.is_cut(to) {
            return Some(Rule::Cut);
        }
        if self.is_off(to) {
            return Some(Rule::Off);
        }
        self.are_apart(from, to).then_some(Rule::Partition)
    }
}

/// By port, whether it is among `some`, which are the field `name`.
fn marked(ports: usize, some: &[usize], name: &str) -> Result<Vec<bool>, Invalid> {
    let mut found = vec![false; ports];
    for (index, &port) in some.iter().enumerate() {
        let field = || format!("{name}[{index}]");
        let place = found.get_mut(port).ok_or_else(|| no_port(field(), port, ports))?;
        *place = true;
    }
    Ok(found)
}

fn no_port(field: String, port: usize, ports: usize) -> Invalid {
    Invalid::new(field, format!("no port {port}; ports are 0 to {}", ports.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_comes_before_a_partition() {
        let blocks = Blocks::new(3, &[2], &[vec![0], vec![1, 2]]).expect("valid");
        assert_eq!(blocks.between(0, 1), Some(Rule::Partition));
        assert_eq!(blocks.between(1, 0), Some(Rule::Partition));
        assert_eq!(blocks.between(0, 2), Some(Rule::Cut));
        assert_eq!(blocks.between(1, 2), Some(Rule::Cut));
        assert!(blocks.is_cut(2) && !blocks.is_cut(1));
    }

    #[test]
    fn nothing_passes_to_a_machine_that_is_off() {
        let blocks = Blocks::new(3, &[2], &[]).expect("valid").with_off(&[1, 2]).expect("valid");
        assert_eq!(blocks.between(0, 1), Some(Rule::Off));
        assert_eq!(blocks.between(0, 2), Some(Rule::Cut), "it does not come there");
        assert_eq!(blocks.between(1, 0), None, "its adapter has sent it before");
        assert!(blocks.is_off(1) && !blocks.is_off(0));
        let wrong = Blocks::new(2, &[], &[]).expect("valid").with_off(&[0, 2]);
        assert_eq!(wrong.expect_err("refused").field, "off[1]");
    }

    #[test]
    fn the_default_lets_everything_pass() {
        assert_eq!(Blocks::default().between(0, 1), None);
        assert_eq!(Blocks::new(2, &[], &[]).expect("valid").between(0, 1), None);
    }

    #[test]
    fn groups_are_a_partition_of_the_ports() {
        let field = |cut: &[usize], partition: &[Vec<usize>]| {
            Blocks::new(3, cut, partition).expect_err("refused").field
        };
        assert_eq!(field(&[3], &[]), "cut[0]");
        assert_eq!(field(&[], &[vec![0, 1], vec![1, 2]]), "partition[1][0]");
        assert_eq!(field(&[], &[vec![0], vec![1]]), "partition");
        assert_eq!(field(&[], &[vec![0, 1, 2, 3]]), "partition[0][3]");
    }

    #[test]
    fn changes_ascend() {
        let text = |times: &[u64]| {
            let changes: Vec<_> = times
                .iter()
                .map(|at| serde_json::json!({"at_ns": at, "note": "n", "cut": [0]}))
                .collect();
            serde_json::from_value::<Vec<Change>>(changes.into()).expect("valid")
        };
        assert_eq!(check_order(&text(&[1, 2, 5])), Ok(()));
        assert_eq!(check_order(&text(&[1, 2, 2])).expect_err("refused").field, "timeline[2].at_ns");
    }
}
