// SPDX-License-Identifier: Apache-2.0
//! Records on their way into one file, which come in roughly the order in which they are written.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use sundial_core::{Direction, Fate, Span, Time};

use super::{CaptureError, CaptureFile};

/// Records of one interface, in order of time.
pub(super) trait Records {
    /// The stamp of the record after `index`, if there is one.
    fn after(&self, index: usize) -> Option<Time>;

    /// Appends the bytes of record `index`, which is stamped `stamp_ns` (ns since 1970).
    fn put(&self, index: usize, stamp_ns: u64, out: &mut Vec<u8>);

    /// What the packet comment of record `index` says.
    fn fate(&self, index: usize) -> Option<&Fate>;

    /// Where it is a comment alone, without a packet: what it says.
    fn note(&self) -> Option<&str> {
        None
    }
}

/// A file whose records are in order of (time, sequence of emission, index).
///
/// What one interface receives, or sends, is nearly always recorded in order of time. So records wait
/// in a lane for each, and only the first of every lane takes part in the sorting.
#[derive(Debug)]
pub(super) struct Ordered<R> {
    file: CaptureFile,
    lanes: Vec<VecDeque<Waiting<R>>>,
    /// The first of every lane that has one; entries that are no longer first are void.
    heads: BinaryHeap<Reverse<(Key, usize)>>,
    next_sequence: u64,
    /// How long before the call that emits it the first of [`Records`] may be stamped.
    record_lag: Span,
    /// Records that may still be written; `None`: any number.
    room: Option<u64>,
    /// The comment of the last one.
    last_words: String,
}

/// Time of the record that comes next, then sequence of emission.
type Key = (Time, u64);

/// What is left of some records.
#[derive(Debug)]
struct Waiting<R> {
    key: Key,
    /// Of the record that comes next.
    index: usize,
    records: R,
}

/// An interface has a lane for each, in this order.
const DIRECTIONS: [Direction; 3] = [Direction::Unknown, Direction::Inbound, Direction::Outbound];

impl<R: Records> Ordered<R> {
    /// For `interfaces` interfaces. After `most` records the file ends, and the last one says so.
    pub(super) fn new(
        file: CaptureFile,
        interfaces: usize,
        record_lag: Span,
        most: Option<u64>,
    ) -> Self {
        let lanes = interfaces * DIRECTIONS.len();
        let last_words = most.map(|most| format!("capture ends: records_most {most}"));
        Self {
            file,
            lanes: (0..lanes).map(|_| VecDeque::new()).collect(),
            heads: BinaryHeap::new(),
            next_sequence: 0,
            record_lag,
            room: most,
            last_words: last_words.unwrap_or_default(),
        }
    }

    /// How many there are.
    pub(super) fn interfaces(&self) -> usize {
        self.lanes.len() / DIRECTIONS.len()
    }

    /// Takes records, the first of them stamped `at`, in the order in which the model emits them.
    pub(super) fn add(&mut self, at: Time, interface: usize, direction: Direction, records: R) {
        if self.room == Some(0) {
            return;
        }
        let direction = match direction {
            Direction::Unknown => 0,
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        let number = interface * DIRECTIONS.len() + direction;
        let lane = &mut self.lanes[number];
        let key = (at, self.next_sequence);
        self.next_sequence += 1;
        let behind = lane.iter().rev().take_while(|other| other.key > key).count();
        let place = lane.len() - behind;
        lane.insert(place, Waiting { key, index: 0, records });
        if place == 0 {
            self.heads.push(Reverse((key, number)));
        }
    }

    /// As [`super::Captures::advance`].
    pub(super) fn advance(&mut self, now: Time) -> Result<(), CaptureError> {
        self.write_before(now.back(self.record_lag))
    }

    /// As [`super::Captures::finish`].
    pub(super) fn finish(&mut self, end: Time) -> Result<(), CaptureError> {
        self.write_before(end)?;
        self.file.flush()
    }

    fn write_before(&mut self, end: Time) -> Result<(), CaptureError> {
        while self.room != Some(0)
            && let Some(mut head) = self.heads.peek_mut()
            && let Reverse((key, number)) = *head
            && key.0 < end
        {
            let lane = &mut self.lanes[number];
            let Some(first) = lane.front_mut().filter(|first| first.key == key) else {
                PeekMut::pop(head);
                continue;
            };
            write(&mut self.file, first, number, self.room == Some(1), &self.last_words)?;
            match first.records.after(first.index) {
                None => drop(lane.pop_front()),
                Some(at) => {
                    first.key.0 = at;
                    first.index += 1;
                    sink_first(lane);
                }
            }
            match lane.front() {
                Some(next) => *head = Reverse((next.key, number)),
                None => drop(PeekMut::pop(head)),
            }
            self.room = self.room.map(|room| room - 1);
        }
        if self.room == Some(0) {
            self.heads.clear();
            self.lanes.clear();
        }
        Ok(())
    }

    /// Whether there is something that the file does not have yet.
    pub(super) fn is_behind(&self) -> bool {
        !self.file.is_written() || !self.heads.is_empty()
    }

    /// As [`super::Captures::flush`].
    pub(super) fn flush(&mut self) -> Result<(), CaptureError> {
        self.file.flush()
    }
}

/// Writes the next record of `first`, which waits in lane `number`.
fn write<R: Records>(
    file: &mut CaptureFile,
    first: &Waiting<R>,
    number: usize,
    is_last: bool,
    last_words: &str,
) -> Result<(), CaptureError> {
    let Waiting { key: (at, _), index, records } = first;
    let (interface, direction) = (number / DIRECTIONS.len(), DIRECTIONS[number % DIRECTIONS.len()]);
    if let Some(text) = records.note() {
        return file.append_note(*at, interface, text);
    }
    let put = |stamp_ns, out: &mut Vec<u8>| records.put(*index, stamp_ns, out);
    let fate = records.fate(*index).map(Fate::comment);
    let comment = match fate {
        Some(fate) if is_last => Some(format!("{last_words}; {fate}")),
        None if is_last => Some(last_words.to_owned()),
        fate => fate,
    };
    file.append(*at, interface, direction, put, comment.as_deref())
}

/// Moves the first to its place in a lane that is in order but for it.
fn sink_first<R>(lane: &mut VecDeque<Waiting<R>>) {
    let key = lane[0].key;
    let before = lane.iter().skip(1).take_while(|other| other.key < key).count();
    for place in 0..before {
        lane.swap(place, place + 1);
    }
}
