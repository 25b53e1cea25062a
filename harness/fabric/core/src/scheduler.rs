// SPDX-License-Identifier: Apache-2.0
//! The order of events, which both clocks keep: time; at one instant the models' own timeouts before
//! frames, those of the segment with the lower number first; then what devices receive and what they send,
//! by device and port; then what machines send, by machine and interface; at one [`Place`] in sequence.
//!
//! Nothing in it depends on when an event became known, so that a run repeats to the byte.

use std::collections::BTreeMap;

use crate::{Frame, Time};

/// Frames on their way into the models and the devices.
#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    frames: BTreeMap<Key, Frame>,
    next_sequence: u64,
}

/// Where something happens to a frame. In the order that settles ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A device has received it in full.
    DeviceReceives {
        /// Its number.
        device: usize,
        /// Which of its ports.
        port: usize,
    },
    /// A device hands it to an adapter.
    DeviceSends {
        /// Its number.
        device: usize,
        /// Which of its ports.
        port: usize,
    },
    /// A machine hands it to an adapter.
    Machine {
        /// Its number.
        machine: usize,
        /// Which of its interfaces.
        nic: usize,
    },
}

/// Compared in the order of the fields. At one place frames come one after the other, so only frames of
/// the same place are ordered by their sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    at: Time,
    place: Place,
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
    /// Something happens to a frame.
    Frame {
        /// Where.
        place: Place,
        /// Destination address to end of payload.
        frame: Frame,
    },
}

impl Scheduler {
    /// No frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// `frame` is at `place` at `at`, not before the earlier ones there.
    pub fn hand_in(&mut self, at: Time, place: Place, frame: Frame) {
        let key = Key { at, place, sequence: self.next_sequence };
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
        match timeout {
            Some((at, segment)) if self.first().is_none_or(|frame_at| at <= frame_at) => {
                (at < before).then_some((at, Step::Timeout { segment }))
            }
            _ => {
                let first = self.frames.first_entry().filter(|first| first.key().at < before)?;
                let (Key { at, place, .. }, frame) = first.remove_entry();
                Some((at, Step::Frame { place, frame }))
            }
        }
    }

    /// The time of the first frame.
    pub fn first(&self) -> Option<Time> {
        self.frames.first_key_value().map(|(key, _)| key.at)
    }

    /// Time and place of each frame, in their order.
    pub fn waiting(&self) -> impl Iterator<Item = (Time, Place)> {
        self.frames.keys().map(|key| (key.at, key.place))
    }

    /// The time of the first frame of each of `machines` machines.
    pub fn earliest_by_machine(&self, machines: usize) -> Vec<Option<Time>> {
        let mut earliest = vec![None; machines];
        for (at, place) in self.waiting() {
            if let Place::Machine { machine, .. } = place {
                earliest[machine].get_or_insert(at);
            }
        }
        earliest
    }

    /// Drops all frames: the run has ended before them.
    pub fn clear(&mut self) {
        self.frames.clear();
    }
}
