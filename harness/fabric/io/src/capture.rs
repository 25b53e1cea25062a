// SPDX-License-Identifier: Apache-2.0
//! One pcapng file a segment, its records in order of (time, sequence of emission).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sundial_core::{Direction, Frame, Segment, Span, Time};
use sundial_wire::pcapng;

use crate::SegmentConfig;

/// Under virtual time the zero of the run is written as 2000-01-01T00:00:00Z.
pub const EPOCH_NS: u64 = 946_684_800_000_000_000;

/// Written to the file when this much has gathered.
const BUFFER_BYTES: usize = 256 * 1024;

/// A capture could not be written: most often the disk is full.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct CaptureError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// The capture file of one segment.
///
/// Give it each [`sundial_core::Output::Record`] as it is polled, call [`Capture::advance`] as the
/// segment gets on, and end with [`Capture::finish`].
///
/// What one interface receives, or sends, is nearly always recorded in order of time. So records wait
/// in a lane for each, and only the first of every lane takes part in the sorting.
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    file: File,
    epoch_ns: u64,
    buffer: Vec<u8>,
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

/// By number modulo their count.
const DIRECTIONS: [pcapng::Direction; 3] =
    [pcapng::Direction::Unknown, pcapng::Direction::Inbound, pcapng::Direction::Outbound];

impl Capture {
    /// Creates `NAME.pcapng` in `directory`, which must exist, for what `model` records.
    pub fn create(
        directory: &Path,
        segment: &SegmentConfig,
        model: &dyn Segment,
        epoch_ns: u64,
    ) -> Result<Self, CaptureError> {
        let path = directory.join(format!("{}.pcapng", segment.name));
        let file = match File::create(&path) {
            Ok(file) => file,
            Err(source) => return Err(CaptureError { path, source }),
        };
        let mut buffer = Vec::with_capacity(2 * BUFFER_BYTES);
        pcapng::put_section_header(&mut buffer, "sundial-fabric");
        for port in 0..segment.ports.len() {
            let name = segment.port_name(port);
            pcapng::put_interface(&mut buffer, model.link_type(), &name, model.rate_bps(port));
        }
        let fate = format!("{}:fate", segment.name);
        pcapng::put_interface(&mut buffer, model.link_type(), &fate, 0);
        let interfaces = segment.ports.len() + 1;
        let lanes = (0..interfaces * DIRECTIONS.len()).map(|_| VecDeque::new()).collect();
        let heads = BinaryHeap::new();
        let record_lag = model.record_lag();
        Ok(Self { path, file, epoch_ns, buffer, lanes, heads, next_sequence: 0, record_lag })
    }

    /// Takes a record, in the order in which the model emits them.
    pub fn record(
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

    /// Says that every later call of the model will be made at `now` or later. Writes what no later
    /// record can precede.
    pub fn advance(&mut self, now: Time) -> Result<(), CaptureError> {
        self.write_before(now.back(self.record_lag))
    }

    /// Writes what is left from before `end`; what would happen at the end does not happen.
    pub fn finish(mut self, end: Time) -> Result<(), CaptureError> {
        self.write_before(end)?;
        self.flush()
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
            self.write(number, &entry)?;
        }
        Ok(())
    }

    fn write(&mut self, lane: usize, entry: &Entry) -> Result<(), CaptureError> {
        let interface = u32::try_from(lane / DIRECTIONS.len()).expect("a segment has few ports");
        pcapng::put_packet(
            &mut self.buffer,
            interface,
            self.epoch_ns + entry.key.0.as_ns_ceil(),
            DIRECTIONS[lane % DIRECTIONS.len()],
            &entry.frame,
            entry.comment.as_deref(),
        );
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Whether there is something that the file does not have yet.
    pub fn is_behind(&self) -> bool {
        !self.buffer.is_empty() || !self.heads.is_empty()
    }

    /// Hands what has gathered to the file, whole records only.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        let written = self.file.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(|source| CaptureError { path: self.path.clone(), source })
    }
}

#[cfg(test)]
mod tests;
