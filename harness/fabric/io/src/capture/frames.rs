// SPDX-License-Identifier: Apache-2.0
//! The main capture of a segment: frames at its ports, and their fates.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::Path;

use sundial_core::{Direction, Frame, Segment, Span, Time};

use super::{CaptureError, CaptureFile};
use crate::SegmentConfig;

/// `NAME.pcapng`, its records in order of (time, sequence of emission).
///
/// What one interface receives, or sends, is nearly always recorded in order of time. So records wait
/// in a lane for each, and only the first of every lane takes part in the sorting.
#[derive(Debug)]
pub(super) struct FrameCapture {
    file: CaptureFile,
    lanes: Vec<VecDeque<Entry>>,
    /// The first record of every lane that has one; entries that are no longer first are void.
    heads: BinaryHeap<Reverse<(Key, usize)>>,
    next_sequence: u64,
    /// [`Segment::record_lag`] of the model.
    record_lag: Span,
}

/// Order in the file: time, then order of emission.
type Key = (Time, u64);

/// A record on its way into the file.
#[derive(Debug)]
struct Entry {
    key: Key,
    frame: Frame,
    comment: Option<Box<str>>,
}

/// An interface has a lane for each, in this order.
const DIRECTIONS: [Direction; 3] = [Direction::Unknown, Direction::Inbound, Direction::Outbound];

impl FrameCapture {
    /// Creates the file in `directory`, which must exist, for what `model` records.
    pub(super) fn create(
        directory: &Path,
        segment: &SegmentConfig,
        model: &dyn Segment,
        epoch_ns: u64,
    ) -> Result<Self, CaptureError> {
        let path = directory.join(format!("{}.pcapng", segment.name));
        let lanes = (segment.ports.len() + 1) * DIRECTIONS.len();
        Ok(Self {
            file: CaptureFile::create(&path, model.link_type(), segment, model, epoch_ns)?,
            lanes: (0..lanes).map(|_| VecDeque::new()).collect(),
            heads: BinaryHeap::new(),
            next_sequence: 0,
            record_lag: model.record_lag(),
        })
    }

    /// Takes a record, in the order in which the model emits them.
    pub(super) fn record(
        &mut self,
        at: Time,
        interface: usize,
        direction: Direction,
        frame: Frame,
        comment: Option<String>,
    ) {
        let direction = match direction {
            Direction::Unknown => 0,
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        let number = interface * DIRECTIONS.len() + direction;
        let lane = &mut self.lanes[number];
        let key = (at, self.next_sequence);
        self.next_sequence += 1;
        let behind = lane.iter().rev().take_while(|entry| entry.key > key).count();
        let place = lane.len() - behind;
        lane.insert(place, Entry { key, frame, comment: comment.map(String::into_boxed_str) });
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
        while let Some(&Reverse((key, number))) = self.heads.peek()
            && key.0 < end
        {
            self.heads.pop();
            let lane = &mut self.lanes[number];
            let Some(entry) = lane.pop_front_if(|entry| entry.key == key) else { continue };
            if let Some(next) = lane.front() {
                self.heads.push(Reverse((next.key, number)));
            }
            let Entry { key: (at, _), frame, comment } = entry;
            let put = |_stamp_ns, out: &mut Vec<u8>| out.extend_from_slice(&frame);
            let direction = DIRECTIONS[number % DIRECTIONS.len()];
            let interface = number / DIRECTIONS.len();
            self.file.append(at, interface, direction, put, comment.as_deref())?;
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
