// SPDX-License-Identifier: Apache-2.0
//! A further capture of a segment: trains of records, each expanded only when it is written.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::path::Path;
use std::sync::Arc;

use sundial_core::{Direction, FurtherCapture, Segment, Span, Time, Train};

use super::{CaptureError, CaptureFile};
use crate::SegmentConfig;

/// `PATH.pcapng`, its records in order of (time, sequence of emission of their trains, index).
#[derive(Debug)]
pub(super) struct TrainCapture {
    file: CaptureFile,
    /// Those with records that are not written yet, by the first of these.
    trains: BinaryHeap<Reverse<Waiting>>,
    next_sequence: u64,
    record_lag: Span,
    /// Records that may still be written; `None`: any number.
    room: Option<u64>,
    /// The comment of the last one.
    last_words: String,
}

/// What is left of a train. Ordered by its key alone, which no two trains share.
#[derive(Debug)]
struct Waiting {
    /// Time of the record that comes next, then sequence of emission.
    key: (Time, u64),
    /// Of that record.
    index: usize,
    interface: usize,
    direction: Direction,
    train: Arc<dyn Train>,
}

impl TrainCapture {
    /// Creates the file and the folder that it is in below `directory`, which must exist.
    pub(super) fn create(
        directory: &Path,
        further: &FurtherCapture,
        segment: &SegmentConfig,
        model: &dyn Segment,
        epoch_ns: u64,
    ) -> Result<Self, CaptureError> {
        let path = directory.join(format!("{}.pcapng", further.path));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|source| CaptureError { path: folder.to_owned(), source })?;
        }
        let most = further.records_most;
        Ok(Self {
            file: CaptureFile::create(&path, further.link_type, segment, model, epoch_ns)?,
            trains: BinaryHeap::new(),
            next_sequence: 0,
            record_lag: further.record_lag,
            room: most,
            last_words: most
                .map_or_else(String::new, |most| format!("capture ends: records_most {most}")),
        })
    }

    /// Takes a train, in the order in which the model emits them.
    pub(super) fn add(&mut self, interface: usize, direction: Direction, train: Arc<dyn Train>) {
        if self.room == Some(0) {
            return;
        }
        let key = (train.at(0), self.next_sequence);
        self.next_sequence += 1;
        self.trains.push(Reverse(Waiting { key, index: 0, interface, direction, train }));
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
            && let Some(mut first) = self.trains.peek_mut()
            && first.0.key.0 < end
        {
            let Waiting { key, index, interface, direction, train } = &mut first.0;
            let put = |stamp_ns, out: &mut Vec<u8>| train.put(*index, stamp_ns, out);
            let comment = train.comment(*index).map(Cow::from);
            let comment = if self.room == Some(1) {
                let own = comment.map_or_else(String::new, |own| format!("{own}; "));
                Some(Cow::from(own + &self.last_words))
            } else {
                comment
            };
            self.file.append(key.0, *interface, *direction, put, comment.as_deref())?;
            self.room = self.room.map(|room| room - 1);
            *index += 1;
            if *index < train.records() {
                key.0 = train.at(*index);
            } else {
                PeekMut::pop(first);
            }
        }
        if self.room == Some(0) {
            self.trains.clear();
        }
        Ok(())
    }

    /// Whether there is something that the file does not have yet.
    pub(super) fn is_behind(&self) -> bool {
        !self.file.is_written() || !self.trains.is_empty()
    }

    /// As [`super::Captures::flush`].
    pub(super) fn flush(&mut self) -> Result<(), CaptureError> {
        self.file.flush()
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

#[cfg(test)]
mod tests;
