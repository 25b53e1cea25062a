// SPDX-License-Identifier: Apache-2.0
//! The order of events, which both clocks keep: time; at one instant the models' own timeouts before
//! frames, those of the segment with the lower number first; frames by machine, interface and sequence.
//!
//! Nothing in it depends on when an event became known, so that a run repeats to the byte.

use std::collections::BTreeMap;

use crate::{Frame, Time};

/// Frames on their way into the models.
#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    frames: BTreeMap<Key, Frame>,
    next_sequence: u64,
}

/// Compared in the order of the fields. One interface hands frames in one after the other, so only
/// frames of the same interface are ordered by their sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    at: Time,
    machine: usize,
    nic: usize,
    sequence: u64,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The model of this segment asked to be called.
    Timeout {
        /// Its number.
        segment: usize,
    },
    /// A machine hands in a frame.
    Frame {
        /// Its number.
        machine: usize,
        /// Which of its interfaces.
        nic: usize,
        /// Destination address to end of payload.
        frame: Frame,
    },
}

impl Scheduler {
    /// No frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Interface `nic` of `machine` hands in `frame` at `at`, not before its earlier ones.
    pub fn hand_in(&mut self, at: Time, machine: usize, nic: usize, frame: Frame) {
        let key = Key { at, machine, nic, sequence: self.next_sequence };
        self.next_sequence += 1;
        self.frames.insert(key, frame);
    }

    /// The next event before `before`, and its time. `timeouts`: what each segment asks for, in order.
    pub fn pop(
        &mut self,
        timeouts: impl IntoIterator<Item = Option<Time>>,
        before: Time,
    ) -> Option<(Time, Step)> {
        let asked = timeouts.into_iter().enumerate();
        let timeout = asked.filter_map(|(segment, at)| Some((at?, segment))).min();
        let frame_at = self.frames.first_key_value().map(|(key, _)| key.at);
        match timeout {
            Some((at, segment)) if frame_at.is_none_or(|frame_at| at <= frame_at) => {
                (at < before).then_some((at, Step::Timeout { segment }))
            }
            _ => {
                let first = self.frames.first_entry().filter(|first| first.key().at < before)?;
                let (Key { at, machine, nic, .. }, frame) = first.remove_entry();
                Some((at, Step::Frame { machine, nic, frame }))
            }
        }
    }

    /// The time of the first frame of each of `machines` machines.
    pub fn earliest_by_machine(&self, machines: usize) -> Vec<Option<Time>> {
        let mut earliest = vec![None; machines];
        for key in self.frames.keys() {
            earliest[key.machine].get_or_insert(key.at);
        }
        earliest
    }

    /// Drops all frames: the run has ended before them.
    pub fn clear(&mut self) {
        self.frames.clear();
    }
}
